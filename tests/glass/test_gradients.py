"""Slopes against small differences by the other path; integrated gradients add up to the difference they explain."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from clearhead.decode.step import UNK
from clearhead.errors import UsageError
from clearhead.glass.lenses.gradients import gradient_input, integrated_gradients

STEP = 1e-5


def log_probability(model: object, recompute: Callable, inputs: dict[str, np.ndarray]) -> np.ndarray:
    """Of the written words, given these embedded tokens."""
    change = lambda name, numbers: inputs.get(name, numbers)  # noqa: E731
    return recompute(model, change)["written_log_probabilities"]


@pytest.mark.parametrize("given", [{}, {"kind": "recurrent"}, {"positions": "rotary", "norm_order": "post"}], ids=str)
def test_the_slope_is_a_small_difference(
    given: dict, float64: None, glass_model: Callable, traced: Callable, recompute: Callable
) -> None:
    """Along the input itself: x · ∂/∂x is the change when x grows by a small part of itself."""
    model = glass_model(activation="gelu", **given)
    trace = traced(model)
    found = gradient_input(model, trace)
    whole = {name: trace[name] for name in ("source_embedding.tokens", "target_embedding.tokens")}
    for name, slopes in (("source_embedding.tokens", found.values), ("target_embedding.tokens", found.prefix)):
        for place in range(len(whole[name])):
            if name.startswith("target") and place == 0:
                continue
            moved = []
            for size in (1 + STEP, 1 - STEP):
                numbers = whole[name].copy()
                numbers[place] *= size
                moved.append(log_probability(model, recompute, {**whole, name: numbers}))
            np.testing.assert_allclose(slopes[:, place], (moved[0] - moved[1]) / (2 * STEP), rtol=0, atol=1e-7)
    assert not found.prefix[:, 0].any(), "the start token stays as it is"
    assert np.triu(np.abs(found.prefix), 1).max() < 1e-12, "no word depends on a later one"


@pytest.mark.parametrize("baseline", ["unknown", "zero"])
def test_integrated_gradients_are_complete(
    baseline: str, transformer: dict, float64: None, glass_model: Callable, traced: Callable, recompute: Callable
) -> None:
    """Their sum is the change of the log-probability from the baseline to the sentence, by the other path."""
    model = glass_model(**{**transformer, "activation": "gelu"})
    trace = traced(model)
    found = integrated_gradients(model, trace, range(6), steps=96, baseline=baseline)
    ends, starts = {}, {}
    for side in ("source", "target"):
        name = f"{side}_embedding.tokens"
        table = model.get_parameter(f"{side}_embedding.table.weight").detach().numpy() * np.sqrt(12)
        ends[name] = trace[name]
        starts[name] = np.tile(table[UNK], (len(ends[name]), 1)) if baseline == "unknown" else 0.0 * ends[name]
    starts["target_embedding.tokens"][0] = ends["target_embedding.tokens"][0]
    change = log_probability(model, recompute, ends) - log_probability(model, recompute, starts)
    np.testing.assert_allclose(found.values.sum(1) + found.prefix.sum(1) - found.gap, change, rtol=0, atol=1e-10)
    scale = np.abs(change).max()
    # where a norm meets a vector of zeros the path is steep, and its middle needs many points
    assert np.abs(found.gap).max() < (1e-3 if baseline == "unknown" else 0.1) * scale
    coarse = integrated_gradients(model, trace, range(6), steps=4, baseline=baseline)
    assert np.abs(coarse.gap).max() > np.abs(found.gap).max()
    assert np.abs(gradient_input(model, trace, baseline).gap).max() > np.abs(found.gap).max()


def test_the_gap_is_printed_with_the_finding(float64: None, glass_model: Callable, traced: Callable) -> None:
    """Where few points of the path are too few, the finding says by how much; with many it has nothing to advise."""
    model = glass_model()
    trace = traced(model)
    few, many = (integrated_gradients(model, trace, [0, 3], steps=steps) for steps in (1, 256))
    worst = np.abs(few.gap).max()
    assert f"miss the change from the baseline by at most {worst:.3g} (of " in str(few) and "more steps" in str(few)
    assert np.abs(many.gap).max() < worst / 10 and "more steps" not in str(many)


def test_some_positions_alone(glass_model: Callable, traced: Callable) -> None:
    model = glass_model()
    trace = traced(model)
    both = integrated_gradients(model, trace, [1, 4], steps=8)
    every = integrated_gradients(model, trace, range(6), steps=8)
    np.testing.assert_allclose(both.values, every.values[[1, 4]], rtol=0, atol=1e-5)
    assert both.labels[0] == (trace.written[1], trace.written[4])
    assert -1 <= both.control.value <= 1


def test_nothing_is_left_on_the_weights(glass_model: Callable, traced: Callable) -> None:
    model = glass_model()
    trace = traced(model)
    gradient_input(model, trace)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert np.array_equal(traced(model)["logits"], trace["logits"])


def test_what_cannot_be_asked(glass_model: Callable, traced: Callable) -> None:
    model = glass_model()
    with pytest.raises(UsageError, match="unknown or zero, not from 'mean'"):
        gradient_input(model, traced(model), "mean")
    with pytest.raises(UsageError, match="position 9 does not exist"):
        integrated_gradients(model, traced(model), [9])
