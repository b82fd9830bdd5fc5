"""Head maps and patch maps, cell by cell, against the other path with that one number changed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from clearhead.errors import UsageError
from clearhead.glass.lenses.ablation import head_map, patch_map
from clearhead.glass.passes import Sentence, under
from clearhead.randomness import numpy_generator

CLEAN, CORRUPT, OUTPUT = [7, 11, 8, 23, 11, 19, 30], [7, 11, 29, 23, 11, 19, 30], [9, 27, 9, 14, 5]


@pytest.mark.parametrize("how", ["zero", "mean", "resample"])
def test_every_head_replaced_in_turn(
    how: str, transformer: dict, float64: None, glass_model: Callable, traced: Callable, recompute: Callable
) -> None:
    model = glass_model(**transformer)
    trace, others = traced(model), [] if how == "zero" else [traced(model, CORRUPT, OUTPUT[:3])]
    found = head_map(model, trace, how, others)
    base = recompute(model)["written_log_probabilities"]
    paths = trace.attentions()
    assert found.values.shape == (len(paths), 4, 6) and found.labels == (tuple(paths), None, trace.written)
    for row, path in enumerate(paths):
        for head in range(4):
            pool = np.concatenate([t[f"{path}.mixed"][head] for t in (trace, *others)])
            draws = numpy_generator(1, "glass resample", 4 * row + head)

            def change(name: str, numbers: np.ndarray, path=path, head=head, pool=pool, draws=draws) -> np.ndarray:
                if name != f"{path}.mixed":
                    return numbers
                numbers = numbers.copy()
                drawn = pool[draws.integers(len(pool), size=numbers.shape[1])]
                numbers[head] = {"zero": 0.0, "mean": pool.mean(0), "resample": drawn}[how]
                return numbers

            lost = base - recompute(model, change)["written_log_probabilities"]
            np.testing.assert_allclose(found.values[row, head], lost, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.totals, found.values.sum(2))
    assert found.control.value < 1e-12, "ablation of nothing is nothing"


def test_ablation_of_nothing_is_nothing_in_single_precision(
    kind: dict, glass_model: Callable, traced: Callable
) -> None:
    model = glass_model(**kind)
    trace = traced(model)
    alone = under(model, Sentence.of(model, trace), [])
    assert alone.shape == (1, 6)
    np.testing.assert_allclose(alone[0].detach(), trace["written_log_probabilities"], rtol=0, atol=1e-5)


def test_a_head_is_replaced_in_one_of_three_ways(glass_model: Callable, traced: Callable) -> None:
    model = glass_model()
    with pytest.raises(UsageError, match="mean, zero or resample, not 'median'"):
        head_map(model, traced(model), "median")


@pytest.mark.parametrize("direction", ["denoising", "noising"])
def test_every_place_of_every_layer_patched_in_turn(
    direction: str, transformer: dict, float64: None, glass_model: Callable, traced: Callable, recompute: Callable
) -> None:
    model, position, instead = glass_model(**transformer), 3, 17
    runs = [CLEAN, CORRUPT] if direction == "noising" else [CORRUPT, CLEAN]
    trace, donor = (traced(model, source, OUTPUT) for source in runs)
    found = patch_map(model, trace, donor, position, instead, direction)
    word, theirs = trace.ids("written")[position], recompute(model, source=runs[1])

    def difference(change: Callable | None, source: list[int]) -> float:
        logits = recompute(model, change, source=source)["logits"][position]
        return logits[word] - logits[instead]

    start, end = difference(None, runs[0]), difference(None, runs[1])
    assert (found.from_difference, found.to_difference) == pytest.approx((start, end), abs=1e-10)
    for row, name in enumerate(found.labels[0]):
        for place in range(len(trace[name])):

            def change(at: str, numbers: np.ndarray, name=name, place=place) -> np.ndarray:
                if at != name:
                    return numbers
                numbers = numbers.copy()
                numbers[place] = theirs[name][place]
                return numbers

            share = (difference(change, runs[0]) - start) / (end - start)
            assert found.values[row, place] == pytest.approx(share, abs=1e-9)
        assert np.isnan(found.values[row, len(trace[name]) :]).all()
    assert found.control.value < 1e-10, "patching a sentence with itself changes nothing"


def test_sentences_that_cannot_be_patched(glass_model: Callable, traced: Callable) -> None:
    model = glass_model()
    trace = traced(model)
    with pytest.raises(UsageError, match=r"equal length \(8 and 5 tokens here\)"):
        patch_map(model, trace, traced(model, CLEAN[:4]), 1, 17)
    with pytest.raises(UsageError, match="same words of the output"):
        patch_map(model, trace, traced(model, CORRUPT, OUTPUT[:4]), 1, 17)
    with pytest.raises(UsageError, match="nothing to carry over"):
        patch_map(model, trace, trace, 1, 17)
    with pytest.raises(UsageError, match="position 6 does not exist"):
        patch_map(model, trace, trace, 6, 17)
