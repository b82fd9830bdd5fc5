"""The four ways to look at what attention read, each recomputed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from clearhead.errors import UsageError
from clearhead.glass.lenses.attention import rollout, value_zeroing, weighted_norms, weights

PATHS = [
    "encoder.layers.0.self_attention",
    "decoder.layers.0.self_attention",
    "decoder.layers.0.cross_attention",
]


@pytest.mark.parametrize("path", PATHS)
def test_weights_are_the_pattern_and_even_reading_stands_beside(
    path: str, glass_model: Callable, traced: Callable
) -> None:
    trace = traced(glass_model())
    found = weights(trace, path)
    assert np.array_equal(found.values, trace[f"{path}.pattern"])
    assert found.axes == ("head", "query", "key") and found.labels == trace.labels(f"{path}.pattern")
    readable = [q + 1 if path == PATHS[1] else 8 for q in range(found.values.shape[1])]
    assert found.control.value == pytest.approx(np.mean([1 / n for n in readable]))


@pytest.mark.parametrize("path", PATHS)
def test_how_long_what_was_read_is(
    path: str, transformer: dict, float64: None, glass_model: Callable, traced: Callable
) -> None:
    model = glass_model(**transformer)
    trace = traced(model)
    found = weighted_norms(model, trace, path)
    pattern, value = trace[f"{path}.pattern"], trace[f"{path}.value"]
    w_o, u = model.get_submodule(path).out.weight.detach().numpy(), value.shape[2]
    for q in range(pattern.shape[1]):
        for k in range(pattern.shape[2]):
            given = [pattern[h, q, k] * (w_o[:, h * u : (h + 1) * u] @ value[h * len(value) // 4, k]) for h in range(4)]
            np.testing.assert_allclose(found.values[:, q, k], [np.linalg.norm(g) for g in given], atol=1e-12)
            assert found.together[q, k] == pytest.approx(np.linalg.norm(np.sum(given, 0)), abs=1e-12)


@pytest.mark.parametrize("path", PATHS)
def test_value_zeroing_is_exact(
    path: str, transformer: dict, float64: None, glass_model: Callable, traced: Callable, recompute: Callable
) -> None:
    model = glass_model(**transformer)
    trace = traced(model)
    found = value_zeroing(model, trace, path)
    end = f"{path.rsplit('.', 1)[0]}.feedforward_residual.after"
    before = recompute(model)[end]
    for key in range(found.values.shape[1]):

        def gone(name: str, numbers: np.ndarray, key: int = key) -> np.ndarray:
            if name == f"{path}.value":
                numbers = numbers.copy()
                numbers[:, key] = 0.0
            return numbers

        after = recompute(model, gone)[end]
        lengths = np.linalg.norm(after, axis=1) * np.linalg.norm(before, axis=1)
        np.testing.assert_allclose(found.values[:, key], 1 - (after * before).sum(1) / lengths, rtol=0, atol=1e-10)
    assert found.control.value < 1e-12


def test_value_zeroing_of_a_recurrence_s_attention(
    float64: None, glass_model: Callable, traced: Callable, recompute: Callable
) -> None:
    """There the layer's output is what goes to the logits."""
    model = glass_model(kind="recurrent")
    found = value_zeroing(model, traced(model), "decoder.attention")
    assert found.values.shape == (6, 8) and found.values.max() > 1e-6 and found.control.value < 1e-12


def test_rollout_by_plain_loops(float64: None, glass_model: Callable, traced: Callable) -> None:
    trace = traced(glass_model(encoder_layers=2, decoder_layers=2))
    found = rollout(trace)
    mean = {path: trace[f"{path}.pattern"].mean(0) for path in trace.attentions()}
    encoder = np.eye(8)
    for i in range(2):
        encoder = (0.5 * mean[f"encoder.layers.{i}.self_attention"] + 0.5 * np.eye(8)) @ encoder
    source, target = np.zeros((6, 8)), np.eye(6)
    for i in range(2):
        step = 0.5 * mean[f"decoder.layers.{i}.self_attention"] + 0.5 * np.eye(6)
        source, target = step @ source, step @ target
        source = 0.5 * source + 0.5 * mean[f"decoder.layers.{i}.cross_attention"] @ encoder
        target = 0.5 * target
    np.testing.assert_allclose(found.encoder, encoder, atol=1e-12)
    np.testing.assert_allclose(found.values, np.concatenate((source, target), 1), atol=1e-12)
    np.testing.assert_allclose(found.values.sum(1), 1)
    np.testing.assert_allclose(found.encoder.sum(1), 1)
    assert -1 <= found.control.value < 1


@pytest.mark.parametrize("kind", ["recurrent", "convolutional"])
def test_rollout_needs_attention_in_every_layer(kind: str, glass_model: Callable, traced: Callable) -> None:
    with pytest.raises(UsageError, match="layers are not all attention"):
        rollout(traced(glass_model(kind=kind)))
