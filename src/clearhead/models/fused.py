"""The decoder's step, written for speed: the same numbers as `Decoder.step`, in a third of the operations.

Against the plain step: queries, keys and values in one product; weights packed once in their precision; the past as a
tree that is never copied (nn/branches.py); nothing that could be listened to. Whoever listens, edits or trains gets
the plain step (decode/step.py decides). tests/parity/test_fused.py ties the two for every setting.

Knows the bricks of a Seq2Seq. Refuses to know taps, dropout and gradients.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from torch import nn

from clearhead.models.decoder import DecoderLayer
from clearhead.models.protocol import Memory
from clearhead.models.seq2seq import Seq2Seq
from clearhead.nn import masks
from clearhead.nn.attention import Attention, KeyValue
from clearhead.nn.branches import Branches
from clearhead.nn.linear import Linear
from clearhead.nn.norm import LayerNorm
from clearhead.nn.packed import Product, pack
from clearhead.nn.positions import ScorePositions
from clearhead.nn.shapes import Float, Int, Tensor

Norm = Callable[[Tensor], Tensor]


class Maps:
    """An attention's four linear maps; those that read the same are one product."""

    def __init__(self, attention: Attention, products: torch.dtype, *, across: bool) -> None:
        self.heads, self.groups, self.scale = attention.n_heads, attention.n_kv_heads, attention.scale
        own, read = (attention.query,), (attention.key, attention.value)
        self.query = joined(own, products) if across else None
        self.read = joined(read if across else own + read, products)
        self.out = pack(attention.out.weight, attention.out.bias, products)
        widths = (attention.n_heads * attention.d_head, attention.n_kv_heads * attention.d_head)
        self.widths = [*([] if across else widths[:1]), widths[1], attention.n_kv_heads * attention.d_value]
        self.positions = attention.positions
        self.turns = type(attention.positions).rotate is not ScorePositions.rotate
        self.biased = type(attention.positions).bias is not ScorePositions.bias

    def split(self, x: Float[Tensor, "B L _"], heads: int) -> Float[Tensor, "B _ L _"]:
        return x.view(*x.shape[:2], heads, -1).transpose(1, 2)


def joined(maps: tuple[Linear, ...], products: torch.dtype) -> Product:
    """Several linear maps of the same input as one."""
    if len(maps) == 1:
        return pack(maps[0].weight, maps[0].bias, products)
    biases: list[Tensor] = [m.bias for m in maps if m.bias is not None]
    return pack(torch.cat([m.weight for m in maps]), torch.cat(biases) if biases else None, products)


def mix(query: Tensor, read: KeyValue, scale: float, bias: Tensor | None, blocked: Tensor | None) -> Tensor:
    """(B, N, rows, H) reading keys and values of G heads → (B, N, rows, U). `bias` is added to the scores."""
    sources, heads, rows, _ = query.shape
    groups = read.key.shape[1]
    if rows == 1 and blocked is None and groups == heads:
        mask = None if bias is None else bias.expand(sources, heads, 1, -1)
        return F.scaled_dot_product_attention(query, read.key, read.value, attn_mask=mask, scale=scale)
    query = query.reshape(sources, groups, -1, query.shape[3])
    scores = torch.matmul(query, read.key.transpose(-2, -1)).mul_(scale).view(sources, heads, rows, -1)
    if bias is not None:
        scores.add_(bias)
    if blocked is not None:
        scores.masked_fill_(blocked, -math.inf)
    pattern = torch.softmax(scores, -1).view(sources, groups, query.shape[2], -1)
    return torch.matmul(pattern, read.value).view(sources, heads, rows, -1)


class FusedLayer:
    def __init__(self, layer: DecoderLayer, products: torch.dtype) -> None:
        self.pre = layer.self_residual.pre
        self.own = Maps(layer.self_attention, products, across=False)
        self.across = Maps(layer.cross_attention, products, across=True)
        residuals = (layer.self_residual, layer.cross_residual, layer.feedforward_residual)
        self.norms = [plain_norm(residual.norm) for residual in residuals]
        ff = layer.feedforward
        self.gated, self.activation = ff.gate is not None, ff.activation
        self.up = joined((ff.up,), products)
        self.gate = None if ff.gate is None else joined((ff.gate,), products)
        self.down = joined((ff.down,), products)

    def __call__(self, x: Tensor, index: int, tree: Branches, sparse: Tensor | None) -> Float[Tensor, "B R D"]:
        x = self.add(x, self.norms[0], lambda h: self.read_past(h, index, tree, sparse))
        x = self.add(x, self.norms[1], lambda h: self.read_memory(h, tree.memory[index], tree.readable))
        return self.add(x, self.norms[2], self.feed)

    def add(self, x: Tensor, norm: Norm, part: Callable[[Tensor], Tensor]) -> Tensor:
        return part(norm(x)).add_(x) if self.pre else norm(part(x).add_(x))

    def read_past(self, h: Tensor, index: int, tree: Branches, sparse: Tensor | None) -> Tensor:
        maps, rows = self.own, h.shape[1]
        query, key, value = maps.read(h).split(maps.widths, -1)
        query, key = maps.split(query, maps.heads), maps.split(key, maps.groups)
        if maps.turns:
            query, key = self.turned(query, tree.length), self.turned(key, tree.length)
        read = tree.write(index, key, maps.split(value, maps.groups))
        bias = self.score_bias(query, tree, rows, sparse)
        mixed = mix(query, read, maps.scale, bias, tree.blocked())
        return maps.out(mixed.transpose(1, 2).reshape(*h.shape[:2], -1))

    def turned(self, heads: Float[Tensor, "B N R H"], at: int) -> Float[Tensor, "B N R H"]:
        """All hypotheses stand at the same position."""
        return self.own.positions.rotate(heads.reshape(-1, 1, 1, heads.shape[3]), at).view(heads.shape)

    def score_bias(self, query: Tensor, tree: Branches, rows: int, sparse: Tensor | None) -> Tensor | None:
        """What positions add to the scores, by slot: the slots of one word stand side by side."""
        bias = None
        if self.own.biased:
            sources, heads, _, width = query.shape
            alone = query.transpose(1, 2).reshape(-1, heads, 1, width)  # each hypothesis a sequence of one query
            bias = self.own.positions.bias(alone, tree.length + 1, tree.length)
            assert bias is not None
            shape = (sources, rows, heads, -1) if bias.dim() == 4 else (1, 1, heads, -1)
            bias = tree.by_slot(bias.reshape(shape).transpose(1, 2))
        if sparse is None:
            return bias
        out_of_reach = tree.by_slot(sparse)
        return out_of_reach if bias is None else bias + out_of_reach

    def read_memory(self, h: Tensor, memory: KeyValue, readable: Tensor | None) -> Tensor:
        maps = self.across
        assert maps.query is not None
        mixed = mix(maps.split(maps.query(h), maps.heads), memory, maps.scale, readable, None)
        return maps.out(mixed.transpose(1, 2).reshape(*h.shape[:2], -1))

    def feed(self, h: Tensor) -> Tensor:
        hidden = self.activation(self.up(h))
        if self.gate is not None:
            hidden = hidden * self.gate(h)
        return self.down(hidden)

    def memory(self, states: Float[Tensor, "B S D"]) -> KeyValue:
        maps = self.across
        key, value = (maps.split(x, maps.groups) for x in maps.read(states).split(maps.widths, -1))
        return KeyValue(key.contiguous(), value.contiguous())


def plain_norm(norm: nn.Module) -> Norm:
    if not isinstance(norm, LayerNorm):
        return norm
    shape, weight, bias, eps = (norm.weight.shape[0],), norm.weight, norm.bias, norm.eps
    return lambda x: torch.layer_norm(x, shape, weight, bias, eps)


class Fused:
    """The decoding half of a Seq2Seq, with its weights in one precision."""

    def __init__(self, model: Seq2Seq, products: torch.dtype) -> None:
        self.embedding = model.target_embedding
        self.layers = [FusedLayer(layer, products) for layer in model.decoder.stack]
        self.norm = plain_norm(model.decoder.norm)
        self.output = pack(model.output_weight, model.output_bias, products)
        windowed = type(model)._pattern is Seq2Seq._pattern  # a convolution's window is its filter's
        self.reach = model.settings.attention_window if windowed else None
        self.stride = model.settings.attention_stride

    def start(self, memory: Memory) -> Branches:
        every = bool(memory.allowed.all())
        states = memory.states
        readable = None if every else states.new_zeros(memory.allowed.shape).masked_fill_(~memory.allowed, -math.inf)
        return Branches([layer.memory(states) for layer in self.layers], readable)

    def step(self, tokens: Int[Tensor, "R"], tree: Branches) -> Float[Tensor, "R V"]:
        """The next word's logits for every live hypothesis; the tree moves on."""
        spread = tree.spread(tokens)
        rows = spread.shape[1]
        tree.grow(rows)
        e = self.embedding
        x = F.embedding(spread, e.table.weight).mul_(e.scale)
        if e.positions is not None:
            x.add_(e.positions(1, tree.length))
        sparse = self.out_of_reach(tree.length, x)
        for index, layer in enumerate(self.layers):
            x = layer(x, index, tree, sparse)
        tree.written()
        return self.output(self.norm(tree.gather(x)))

    def out_of_reach(self, at: int, x: Tensor) -> Tensor | None:
        allowed = masks.sparse(1, at + 1, self.reach, self.stride, at, x.device)
        return None if allowed is None else x.new_zeros(allowed.shape).masked_fill_(~allowed, -math.inf)


Made = WeakKeyDictionary[Seq2Seq, dict[torch.dtype, tuple[tuple[int, ...], Any]]]
"""What was made of a model: by precision, the weights' versions it was made of, and it."""
_made: Made = WeakKeyDictionary()


def versions(model: Seq2Seq) -> tuple[int, ...] | None:
    """Changes with every change of a weight; None where that cannot be told."""
    tensors = [*model.parameters(), *model.buffers()]
    if any(t.is_inference() for t in tensors):
        return None
    return tuple(number for t in tensors for number in (t.data_ptr(), t._version))


def fused(model: Seq2Seq, products: torch.dtype) -> Fused:
    """The model's fused half, remembered for as long as its weights stay as they are."""
    made: Fused = remembered(_made, model, products, lambda: Fused(model, products))
    return made


def remembered(made: Made, model: Seq2Seq, products: torch.dtype, make: Callable[[], Any]) -> Any:
    """What was made of these very weights before, or else it is made now."""
    now = versions(model)
    if now is None:
        return make()
    known = made.setdefault(model, {})
    if products not in known or known[products][0] != now:
        known[products] = (now, make())
    return known[products][1]
