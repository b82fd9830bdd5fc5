"""A model that is listened to gives what it gives in silence; and what is heard fits together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from clearhead.config import DecodeSettings
from clearhead.decode.decode import decode
from clearhead.nn.tap import listen

MODELS: list[dict[str, Any]] = [
    {"positions": "rotary", "n_kv_heads": 1},
    {"positions": "alibi", "norm_order": "post", "norm": "rms", "attention_window": 1},
    {"positions": "relative-shaw", "activation": "swiglu", "attention_window": 1, "attention_stride": 3},
    {"positions": "relative-t5", "bias": False, "scale_scores": False},
    {"positions": "learned", "attention_dropout": 0.3},
]


def ear() -> tuple[dict[str, torch.Tensor], Callable]:
    heard: dict[str, torch.Tensor] = {}
    return heard, lambda name, t: heard.setdefault(name, t)


@pytest.mark.parametrize("given", MODELS, ids=str)
@torch.inference_mode()
def test_the_answer_is_the_same(given: dict[str, Any], tiny_model: Callable, ids: Callable) -> None:
    model, source, target = tiny_model(**given).double(), ids(3, 7, lengths=[7, 2, 5]), ids(3, 5, seed=1)
    silent = model.logits(model(source, target))
    heard, hear = ear()
    with listen(model, hear):
        listened = model.logits(model(source, target))
    torch.testing.assert_close(listened, silent, rtol=1e-12, atol=1e-12)
    assert torch.equal(heard["logits"], listened)
    assert torch.equal(model.logits(model(source, target)), silent)


@pytest.mark.parametrize("given", MODELS, ids=str)
@torch.inference_mode()
def test_what_is_heard_fits_together(given: dict[str, Any], tiny_model: Callable, ids: Callable) -> None:
    """products · scale (+ bias) = scores, softmax = pattern, pattern · value = mixed; rows sum to 1 or are empty."""
    model, source, target = tiny_model(**given).double(), ids(3, 7, lengths=[7, 2, 5]), ids(3, 5, seed=1)
    heard, hear = ear()
    with listen(model, hear):
        model(source, target)
    for where in ("encoder.layers.0.self_attention", "decoder.layers.0.self_attention"):
        check_room(heard, where, model.get_submodule(where))
    check_room(heard, "decoder.layers.0.cross_attention", model.decoder.layers[0].cross_attention)


def check_room(heard: dict[str, torch.Tensor], where: str, attention: Any) -> None:
    room = {name.removeprefix(f"{where}."): t for name, t in heard.items() if name.startswith(f"{where}.")}
    key, value = (room[name].repeat_interleave(2 // attention.n_kv_heads, 1) for name in ("key", "value"))
    products, scores, pattern = room["products"], room["scores"], room["pattern"]
    torch.testing.assert_close(products, room["query"] @ key.transpose(-2, -1))
    open_ones = scores > -torch.inf
    bias = attention.positions.bias(room["query"], key.shape[2])
    expected = products * attention.scale + (0 if bias is None else bias)
    torch.testing.assert_close(scores[open_ones], expected[open_ones])
    assert (pattern[~open_ones] == 0).all()
    some = open_ones.any(-1)
    torch.testing.assert_close(pattern[some], torch.softmax(scores[some], -1))
    assert (pattern[~some] == 0).all()
    torch.testing.assert_close(room["mixed"], pattern @ value)
    torch.testing.assert_close(room["out"], attention.out(room["mixed"].transpose(1, 2).flatten(2)))


@pytest.mark.parametrize("method", ["greedy", "beam"])
@torch.inference_mode()
def test_decoding_is_the_same(method: str, tiny_model: Callable) -> None:
    model, settings = tiny_model(n_kv_heads=1), DecodeSettings(method=method, beam=3, n_best=1)
    sources = [[5, 6, 7], [8], [9, 10, 11, 12, 13]]
    silent = decode(model, sources, settings, max_len=61)
    with listen(model, lambda name, t: t):
        listened = decode(model, sources, settings, max_len=61)
    for a, b in zip(silent, listened, strict=True):
        assert [h.tokens for h in a] == [h.tokens for h in b]
        assert [h.rank for h in a] == pytest.approx([h.rank for h in b], rel=1e-5)


def test_gradients_are_the_same(tiny_model: Callable, ids: Callable) -> None:
    model, source, target = tiny_model(positions="relative-t5").double(), ids(3, 7, lengths=[7, 2, 5]), ids(3, 5)
    found = []
    for wants in (lambda name: True, lambda name: False):
        with listen(model, lambda name, t: t, wants):
            loss = model.logits(model(source, target)).square().mean()
        found.append(torch.autograd.grad(loss, list(model.parameters())))
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)
