"""A training pass of a Transformer in bf16 over rows: every token of a batch is a row, padding is left out.

    x = drop(√D · E[source] + P)                                   encoder, pre-norm (post-norm likewise)
    x, h = join(x, part)          x ← x + drop(part),  h = norm(x)        after every part
    part = attend(products(h)) W_o,  or  products(activate(products(h)))

The same equations as models/seq2seq.py and nn/, with the same masks of dropout; between two matrix products the memory
is passed over once (docs/log.md has what each way cost). Taken where the compiled loops are built, know the model,
products are in bf16 and nobody listens to a tap; elsewhere the bricks themselves are called.
tests/parity/test_learning.py ties the two.

Knows a Seq2Seq. Refuses to know losses and optimisers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from clearhead.models.decoder import DecoderLayer
from clearhead.models.encoder import EncoderLayer
from clearhead.models.seq2seq import Seq2Seq
from clearhead.native.loops import Activate, Apart, Attend, Drop, Dropped, Heads, Join, Norm, Products, loops
from clearhead.native.rows import Rows, rows_of
from clearhead.nn.attention import Attention
from clearhead.nn.dropout import Draws, current_draws, share_dropped
from clearhead.nn.embedding import Embedding
from clearhead.nn.feedforward import FeedForward, relu2
from clearhead.nn.linear import Linear, product_dtype
from clearhead.nn.norm import LayerNorm, RMSNorm
from clearhead.nn.positions import Rotary
from clearhead.nn.residual import Residual
from clearhead.nn.shapes import Float, Int, Tensor
from clearhead.nn.tap import listening

POSITIONS = ("sinusoidal", "sinusoidal-halves", "learned", "rotary", "none")
WHOLE = 16
"""Widths are multiples of the widest register."""

Part = tuple[Residual, Callable[[Tensor], Tensor], Tensor | None]
"""How it is added, what it makes of the stream, and the β of its last map, which is added by the join."""


def knows(model: Seq2Seq) -> bool:
    """Do the loops have everything this model is made of, and is it trained in their precision?"""
    return (
        product_dtype() == torch.bfloat16
        and model.output_weight.dtype == torch.float32
        and model.output_weight.device.type == "cpu"
        and known(model)
        and not heard(model)
        and loops() is not None
    )


def heard(model: Seq2Seq) -> bool:
    """Is there anybody who would see or change what passes between the bricks?"""
    return listening() or any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def known(model: Seq2Seq) -> bool:
    s = model.settings
    return (
        type(model) is Seq2Seq  # not one with another encoder
        and s.positions in POSITIONS
        and s.norm in ("layer", "rms")
        and s.activation in ("relu", "relu2")
        and s.attention_window is None
        and not (s.attention_dropout or s.activation_dropout or s.word_dropout)
        and not any(width % WHOLE for width in (s.d_model, s.d_ff))
    )


def hidden_rows(model: Seq2Seq, source: Int[Tensor, "B S"], target: Int[Tensor, "B T"]) -> Float[Tensor, "R D"]:
    """The hidden states before the output layer, of every real token of the targets, one sequence after the other."""
    asked, asking = rows_of(source, model.pad), rows_of(target, model.pad)
    memory = encoded(model, asked)
    return decoded(model, asking, memory, asked)[: asking.count]


def encoded(model: Seq2Seq, rows: Rows) -> Tensor:
    """The memory, rounded."""
    drops = Drops(rows)
    x = embedded(model.source_embedding, rows, drops)
    parts: list[Part] = []
    for layer in model.encoder.layers:
        assert isinstance(layer, EncoderLayer)
        parts += [
            reading_itself(layer.attention_residual, layer.self_attention, rows, causal=False),
            feeding(layer.feedforward_residual, layer.feedforward, rows),
        ]
    return through(x, parts, model.encoder.norm, rows, drops, "h")


def decoded(model: Seq2Seq, rows: Rows, memory: Tensor, asked: Rows) -> Tensor:
    """The hidden states, in float32."""
    drops = Drops(rows)
    x = embedded(model.target_embedding, rows, drops)
    layers: Sequence[DecoderLayer] = list(model.decoder.stack)
    reads = [linear for layer in layers for linear in (layer.cross_attention.key, layer.cross_attention.value)]
    every = Apart.apply(products(memory, *reads), len(layers))  # every layer's keys and values, as one product
    parts: list[Part] = []
    for layer, read in zip(layers, every, strict=True):
        parts += [
            reading_itself(layer.self_residual, layer.self_attention, rows, causal=True),
            reading(layer.cross_residual, layer.cross_attention, rows, read, asked),
            feeding(layer.feedforward_residual, layer.feedforward, rows),
        ]
    return through(x, parts, model.decoder.norm, rows, drops, "y")


def through(x: Tensor, parts: list[Part], last: nn.Module, rows: Rows, drops: Drops, wanted: str) -> Tensor:
    """Part after part, each added to the stream. Normalised before each part and at the end, or after each."""
    pre = parts[0][0].pre
    norms = [residual.norm for residual, _, _ in parts]
    before, after = (norms[0], [*norms[1:], last]) if pre else (None, norms)
    (h,) = join(x, None, None, before, rows, None, "h")
    for place, ((residual, part, bias), norm) in enumerate(zip(parts, after, strict=True)):
        added, drop = part(h), drops.next(residual.dropout.rate)
        if place == len(parts) - 1:
            return join(x, added, bias, norm, rows, drop, wanted)[0]
        x, h = join(x, added, bias, norm, rows, drop, "sh" if pre else "yh")
    raise AssertionError("no layers")


def join(
    x: Tensor, part: Tensor | None, bias: Tensor | None, norm: nn.Module | None, rows: Rows, drop: Drop | None,
    wanted: str,
) -> list[Tensor]:  # fmt: skip
    gamma, beta, about = None, None, None
    if norm is not None:
        assert isinstance(norm, LayerNorm | RMSNorm)
        gamma, beta = norm.weight, norm.bias if isinstance(norm, LayerNorm) else None
        about = Norm(norm.eps, isinstance(norm, RMSNorm))
    found = Join.apply(x, part, bias, gamma, beta, rows, about, drop, wanted)
    return [tensor for tensor in found if tensor is not None]


def reading_itself(residual: Residual, attention: Attention, rows: Rows, *, causal: bool) -> Part:
    maps, heads = (attention.query, attention.key, attention.value), heads_of(attention, causal)

    def part(h: Tensor) -> Tensor:
        asking = products(h, *maps)
        return products(Attend.apply(asking, None, heads, rows, rows, *(m.bias for m in maps)), attention.out)

    return residual, part, attention.out.bias


def reading(residual: Residual, attention: Attention, rows: Rows, read: Tensor, asked: Rows) -> Part:
    maps, heads = (attention.query, attention.key, attention.value), heads_of(attention, False)

    def part(h: Tensor) -> Tensor:
        asking = products(h, attention.query)
        return products(Attend.apply(asking, read, heads, rows, asked, *(m.bias for m in maps)), attention.out)

    return residual, part, attention.out.bias


def feeding(residual: Residual, feed: FeedForward, rows: Rows) -> Part:
    squared = feed.activation is relu2

    def part(h: Tensor) -> Tensor:
        return products(Activate.apply(products(h, feed.up), feed.up.bias, rows, squared), feed.down)

    return residual, part, feed.down.bias


def heads_of(a: Attention, causal: bool) -> Heads:
    return Heads(a.n_heads, a.n_kv_heads, a.d_head, a.d_value, a.scale, causal, isinstance(a.positions, Rotary))


def products(h: Tensor, *maps: Linear) -> Tensor:
    return Products.apply(h, *(m.weight for m in maps))


def embedded(embedding: Embedding, rows: Rows, drops: Drops) -> Tensor:
    x = F.embedding(rows.ids, embedding.table.weight) * embedding.scale
    if embedding.positions is not None:
        table = embedding.positions(rows.longest)
        x = x + F.embedding(rows.at, table)
    drop = drops.next(embedding.dropout.rate)
    return x if drop is None else Dropped.apply(x, drop)


@dataclass
class Drops:
    """The draws of the pass that is under way, in the order in which the bricks ask for them."""

    rows: Rows

    def next(self, rate: float) -> Drop | None:
        drawn: Draws | None = current_draws()
        share = share_dropped(rate)
        if drawn is None or share == 0:
            return None
        return Drop(self.rows, drawn.places, drawn.next_key(), share)
