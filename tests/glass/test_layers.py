"""Reading the stream early, on both sides."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from clearhead.config import DecodeSettings
from clearhead.decode.decode import decode
from clearhead.errors import UsageError
from clearhead.glass.lenses.layers import encoder_lens, logit_lens

SETTINGS = DecodeSettings(method="greedy", max_extra=6, max_ratio=0.01)


def log_softmax(x: np.ndarray) -> np.ndarray:
    lifted = x - x.max(-1, keepdims=True)
    return lifted - np.log(np.exp(lifted).sum(-1, keepdims=True))


@pytest.mark.parametrize("order", ["pre", "post"])
def test_the_decoder_read_early(order: str, float64: None, glass_model: Callable, traced: Callable) -> None:
    model = glass_model(decoder_layers=3, norm_order=order)
    trace = traced(model)
    found = logit_lens(model, trace)
    written = trace.ids("written")
    np.testing.assert_allclose(found.values[-1], trace["written_log_probabilities"], rtol=0, atol=1e-12)
    assert found.labels[0][0] == "target_embedding.sum" and len(found.values) == 4
    table = model.output_weight.detach().numpy()
    for row, name in enumerate(found.labels[0]):
        x = trace[name]
        if order == "pre":
            weight, bias = (trace[f"decoder.norm.{part}"] for part in ("weight", "bias"))
            x = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * weight + bias
        log_p = log_softmax(x @ table.T)
        own = log_p[np.arange(6), written]
        np.testing.assert_allclose(found.values[row], own, rtol=0, atol=1e-10)
        assert found.ranks[row].tolist() == (log_p > own[:, None]).sum(1).tolist()
        assert np.array_equal(found.top[row], np.argsort(-log_p, axis=1)[:, :10])
        np.testing.assert_allclose(found.top_log_probabilities[row], -np.sort(-log_p, axis=1)[:, :10], atol=1e-10)


def test_decoding_from_an_encoder_layer(
    float64: None, glass_model: Callable, traced: Callable, recompute: Callable, source: list[int]
) -> None:
    model = glass_model(encoder_layers=2)
    trace = traced(model)
    found = encoder_lens(model, trace, SETTINGS, max_len=61)
    assert found.labels[0] == (
        "source_embedding.sum",
        *(f"encoder.layers.{i}.feedforward_residual.after" for i in (0, 1)),
    )
    np.testing.assert_allclose(found.values[-1], trace["written_log_probabilities"], rtol=0, atol=1e-12)
    assert found.outputs[-1] == decode(model, [source], SETTINGS)[0][0].tokens
    silent = recompute(model, lambda name, x: x * 0 if name == "memory" else x)["written_log_probabilities"]
    assert found.control.value == pytest.approx(silent.sum())
    weight, bias = (trace[f"encoder.norm.{part}"] for part in ("weight", "bias"))
    x = trace[found.labels[0][0]]
    early = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * weight + bias
    handed = recompute(model, lambda name, x: early if name == "memory" else x)["written_log_probabilities"]
    np.testing.assert_allclose(found.values[0], handed, rtol=0, atol=1e-10)


def test_a_recurrence_has_no_stream(glass_model: Callable, traced: Callable) -> None:
    model = glass_model(kind="recurrent")
    with pytest.raises(UsageError, match="no stream that could be read early"):
        logit_lens(model, traced(model))
