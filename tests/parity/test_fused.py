"""The fused step = the plain step, for every setting; also when hypotheses move and sources leave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from clearhead.config import DecodeSettings
from clearhead.decode.decode import decode
from clearhead.decode.step import Eager, Plain, Stepper, begin
from clearhead.models.fused import Fused, fused
from clearhead.models.protocol import EncoderDecoder
from clearhead.nn.branches import Branches
from clearhead.nn.tap import listen

POSITIONS = ("sinusoidal", "sinusoidal-halves", "learned", "relative-shaw", "relative-t5", "rotary", "alibi", "none")
SHAPES: tuple[dict[str, Any], ...] = (
    {"norm_order": "post", "decoder_layers": 2},
    {"norm": "rms", "n_kv_heads": 1, "activation": "swiglu"},
    {"norm": "batch", "bias": False, "scale_scores": False},
    {"attention_window": 2, "tie": "target", "embedding_scale": False},
    {"attention_window": 1, "attention_stride": 3, "n_kv_heads": 1, "tie": "none"},
)
GIVEN = [{"positions": p, **SHAPES[(i + j) % len(SHAPES)]} for i, p in enumerate(POSITIONS) for j in range(2)]


Sources = tuple[list[int], ...]


def words(given: dict[str, Any]) -> str:
    return " ".join(str(value) for value in given.values())


@pytest.mark.parametrize("given", GIVEN, ids=words)
@torch.inference_mode()
def test_fused_is_plain(given: dict[str, Any], tiny_model: Callable, walk: Callable, sources: Sources) -> None:
    model = tiny_model(**given)
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.float64, 1e-12)):
        model = model.to(dtype)
        quick, slow = Stepper(model, sources), Stepper(model, sources, fast=False)
        assert isinstance(quick.batch.state, Branches) and not isinstance(slow.batch.state, Branches)
        for a, b in zip(walk(quick), walk(slow), strict=True):
            real = b.isfinite()
            assert torch.equal(real, a.isfinite())
            scale = b[real].abs().max().item()
            torch.testing.assert_close(a[real], b[real], rtol=0, atol=tolerance * max(1.0, scale))


@pytest.mark.parametrize("settings", [DecodeSettings(method="greedy"), DecodeSettings(beam=4, n_best=3)], ids=str)
def test_searches_agree(settings: DecodeSettings, tiny_model: Callable, sources: Sources) -> None:
    model = tiny_model(positions="rotary", decoder_layers=2)
    quick = decode(model, sources, settings, max_len=61)
    slow = decode(model, sources, settings.model_copy(update={"fast": False}), max_len=61)
    for a, b in zip(quick, slow, strict=True):
        assert [h.tokens for h in a] == [h.tokens for h in b]
        assert [h.log_probability for h in a] == pytest.approx([h.log_probability for h in b], rel=1e-5, abs=1e-5)


def test_a_changed_weight_is_noticed(tiny_model: Callable, sources: Sources) -> None:
    model = tiny_model()
    first = fused(model, torch.float32)
    assert fused(model, torch.float32) is first
    with torch.no_grad():
        model.decoder.layers[0].self_attention.key.weight += 0.5
    assert fused(model, torch.float32) is not first
    with torch.inference_mode():
        torch.testing.assert_close(
            Stepper(model, sources).next(torch.ones(4, dtype=torch.long)),
            Stepper(model, sources, fast=False).next(torch.ones(4, dtype=torch.long)),
        )


def test_who_gets_the_plain_step(tiny_model: Callable, ids: Callable) -> None:
    """Listeners, models being trained, whoever asks for it, and models that have no other."""
    source = ids(2, 3)

    def way(model: EncoderDecoder, fast: bool) -> type:
        batch = begin(model, source, fast, compiled=True)
        assert isinstance(batch, Eager)
        return type(batch.steps)

    model: EncoderDecoder = tiny_model()
    assert way(model, True) is Fused
    assert way(model, False) is Plain
    with listen(model, lambda name, tensor: tensor):
        assert way(model, True) is Plain
    assert way(model.train(), True) is Plain
    assert way(tiny_model(kind="recurrent").eval(), True) is Plain


def test_nothing_keeps_a_model_alive(tiny_model: Callable, sources: Sources) -> None:
    import gc
    import weakref

    model = tiny_model()
    decode(model, sources, DecodeSettings(precision="int8"), max_len=61)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None
