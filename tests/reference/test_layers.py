"""Encoder layer, decoder layer and whole network against loops, and against torch's own layers."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from clearhead.models.decoder import DecoderLayer
from clearhead.models.encoder import EncoderLayer
from clearhead.models.seq2seq import Seq2Seq
from clearhead.nn import masks
from clearhead.nn.attention import Attention
from clearhead.nn.norm import LayerNorm

SIZES = {"d_model": 6, "n_heads": 2, "d_head": 2, "d_value": 3, "d_ff": 5, "max_len": 13}


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


LAYERS: list[dict[str, Any]] = [
    {},
    {"norm_order": "post", "positions": "rotary"},
    {"norm": "rms", "positions": "alibi", "activation": "swiglu", "bias": False},
    {"positions": "relative-t5", "n_kv_heads": 1, "activation": "gelu"},
    {"norm": "rms", "norm_order": "post", "positions": "relative-shaw", "activation": "relu2", "scale_scores": False},
]


@pytest.mark.parametrize("given", LAYERS)
@pytest.mark.usefixtures("float64")
def test_encoder_layer(
    given: dict[str, Any],
    tiny_settings: Callable,
    oracle: ModuleType,
    same: Callable,
    weights: Callable,
    shake: Callable,
) -> None:
    s = tiny_settings(**SIZES, **given)
    layer, x, lengths = EncoderLayer(s), draw(3, 7, 6), [7, 2, 5]
    shake(layer)
    expected = oracle.encoder_layer(x.numpy(), weights(layer), s, lambda b, q, k: k < lengths[b])
    allowed = masks.from_lengths(torch.tensor(lengths), 7)
    same(layer(x, allowed), expected, 1e-12)
    same(layer.float()(x.float(), allowed), expected, 1e-5)


@pytest.mark.parametrize("given", LAYERS)
@pytest.mark.usefixtures("float64")
def test_decoder_layer(
    given: dict[str, Any],
    tiny_settings: Callable,
    oracle: ModuleType,
    same: Callable,
    weights: Callable,
    shake: Callable,
) -> None:
    s = tiny_settings(**SIZES, **given)
    layer, x, memory, lengths = DecoderLayer(s), draw(3, 5, 6), draw(3, 7, 6, seed=1), [7, 2, 5]
    shake(layer)
    expected = oracle.decoder_layer(
        x.numpy(), memory.numpy(), weights(layer), s, lambda b, q, k: k <= q, lambda b, q, k: k < lengths[b]
    )
    read = layer.cross_attention.read(memory)
    same(layer(x, masks.causal(5, 5), read, masks.from_lengths(torch.tensor(lengths), 7)), expected, 1e-12)


NETWORKS: list[dict[str, Any]] = [
    {"positions": "sinusoidal", "tie": "all"},
    {"positions": "sinusoidal-halves", "norm_order": "post", "tie": "target", "embedding_scale": False},
    {"positions": "learned", "norm": "rms", "tie": "none", "n_kv_heads": 1, "encoder_layers": 2},
    {"positions": "rotary", "attention_window": 1, "activation": "geglu", "decoder_layers": 2},
    {"positions": "alibi", "attention_window": 1, "attention_stride": 3, "norm_order": "post", "norm": "rms"},
    {"positions": "relative-t5", "bias": False, "activation": "relu2"},
    {"positions": "relative-shaw", "attention_window": 2, "scale_scores": False, "n_kv_heads": 1},
    {"positions": "none", "activation": "swiglu", "embedding_scale": False, "tie": "none"},
]


@pytest.mark.parametrize("given", NETWORKS)
@pytest.mark.usefixtures("float64")
def test_whole_network(
    given: dict[str, Any],
    tiny_settings: Callable,
    ids: Callable,
    oracle: ModuleType,
    same: Callable,
    shake: Callable,
    weights: Callable,
) -> None:
    s = tiny_settings(**SIZES, **given)
    model = Seq2Seq(s, 11, 11)
    shake(model)
    source, target = ids(3, 7, lengths=[7, 4, 5], vocab=11), ids(3, 5, seed=1, lengths=[3, 5, 4], vocab=11)
    expected = oracle.seq2seq(source.numpy(), target.numpy(), weights(model), s)
    same(model.logits(model(source, target)), expected, 1e-12)
    same(model.float().logits(model(source, target)), expected, 1e-5)


@pytest.mark.usefixtures("float64")
def test_gradients_of_a_whole_network(
    tiny_settings: Callable, ids: Callable, oracle: ModuleType, slopes: Callable, shake: Callable
) -> None:
    """One slope for each learned tensor; gelu, so that no kink lies on the way."""
    s = tiny_settings(**SIZES, activation="gelu", positions="relative-shaw", n_kv_heads=1, tie="none")
    model = Seq2Seq(s, 11, 11)
    shake(model)
    source, target = ids(2, 5, lengths=[5, 3], vocab=11), ids(2, 3, seed=1, vocab=11)

    def ours(**parameters: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(
            Logits(model), {f"model.{n}": p for n, p in parameters.items()}, (source, target)
        )

    def loops(**parameters: np.ndarray) -> np.ndarray:
        return oracle.seq2seq(source.numpy(), target.numpy(), parameters.get, s)

    slopes(ours, loops, dict(model.named_parameters()))


class Logits(nn.Module):
    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        self.model = model

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return self.model.logits(self.model(source, target))


def copy_attention(ours: Attention, theirs: nn.MultiheadAttention) -> None:
    theirs.in_proj_weight.copy_(torch.cat([ours.query.weight, ours.key.weight, ours.value.weight]))
    theirs.in_proj_bias.copy_(torch.cat([ours.query.bias, ours.key.bias, ours.value.bias]))
    copy_pair(ours.out, theirs.out_proj)


def copy_pair(ours: nn.Module, theirs: nn.Module) -> None:
    theirs.weight.copy_(ours.weight)
    theirs.bias.copy_(ours.bias)


def copy_feedforward(ours: nn.Module, theirs: nn.Module) -> None:
    copy_pair(ours.up, theirs.linear1)
    copy_pair(ours.down, theirs.linear2)


def norm_of(residual: nn.Module) -> LayerNorm:
    return residual.norm


@pytest.mark.parametrize("order", ["pre", "post"])
@pytest.mark.usefixtures("float64")
def test_as_torchs_encoder_layer(order: str, tiny_settings: Callable, shake: Callable) -> None:
    s = tiny_settings(d_value=11, d_head=11, norm_order=order, positions="none")
    ours = EncoderLayer(s)
    shake(ours)
    theirs = nn.TransformerEncoderLayer(22, 2, 17, 0.0, batch_first=True, norm_first=order == "pre")
    with torch.no_grad():
        copy_attention(ours.self_attention, theirs.self_attn)
        copy_feedforward(ours.feedforward, theirs)
        copy_pair(norm_of(ours.attention_residual), theirs.norm1)
        copy_pair(norm_of(ours.feedforward_residual), theirs.norm2)
    x, allowed = draw(3, 7, 22).requires_grad_(), masks.from_lengths(torch.tensor([7, 2, 5]), 7)
    values = ours(x, allowed), theirs(x, src_key_padding_mask=~allowed[:, 0, 0])
    agree(*values, [x], list(ours.parameters()), theirs)


@pytest.mark.parametrize("order", ["pre", "post"])
@pytest.mark.usefixtures("float64")
def test_as_torchs_decoder_layer(order: str, tiny_settings: Callable, shake: Callable) -> None:
    s = tiny_settings(d_value=11, d_head=11, norm_order=order, positions="none", activation="gelu")
    ours = DecoderLayer(s)
    shake(ours)
    theirs = nn.TransformerDecoderLayer(22, 2, 17, 0.0, "gelu", batch_first=True, norm_first=order == "pre")
    with torch.no_grad():
        copy_attention(ours.self_attention, theirs.self_attn)
        copy_attention(ours.cross_attention, theirs.multihead_attn)
        copy_feedforward(ours.feedforward, theirs)
        for part, norm in zip(
            (ours.self_residual, ours.cross_residual, ours.feedforward_residual),
            (theirs.norm1, theirs.norm2, theirs.norm3),
            strict=True,
        ):
            copy_pair(norm_of(part), norm)
    x, memory = draw(3, 5, 22).requires_grad_(), draw(3, 7, 22, seed=1).requires_grad_()
    allowed, causal = masks.from_lengths(torch.tensor([7, 2, 5]), 7), masks.causal(5, 5)
    values = (
        ours(x, causal, ours.cross_attention.read(memory), allowed),
        theirs(x, memory, tgt_mask=~causal[0, 0], memory_key_padding_mask=~allowed[:, 0, 0]),
    )
    agree(*values, [x, memory], list(ours.parameters()), theirs)


def agree(
    ours: torch.Tensor,
    theirs: torch.Tensor,
    inputs: list[torch.Tensor],
    parameters: list[nn.Parameter],
    module: nn.Module,
) -> None:
    """Equal values, equal gradients of the inputs, and the same sum of squared gradients over all weights."""
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
    weigh = draw(*ours.shape, seed=9)
    mine = torch.autograd.grad(ours, [*inputs, *parameters], weigh)
    peers = torch.autograd.grad(theirs, [*inputs, *module.parameters()], weigh)
    for a, b in zip(mine[: len(inputs)], peers[: len(inputs)], strict=True):
        torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-12)
    squares = [sum(g.square().sum() for g in found[len(inputs) :]) for found in (mine, peers)]
    torch.testing.assert_close(*squares, rtol=1e-11, atol=0)
