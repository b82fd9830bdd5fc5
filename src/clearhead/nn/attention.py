"""Scaled dot-product attention and its many heads.

    products = q kᵀ
    scores   = products · scale + bias, −∞ where not allowed           scale = 1/√d_k
    pattern  = softmax over the keys (zeros where a query may attend to nothing)
    mixed    = pattern v
    out      = concat(heads) W_o                                       Vaswani et al. 2017, eq. 1 and §3.2.2

In the notes' words (one column per token): Sa[X] = V[X] · softmax(K[X]ᵀ Q[X]), with v = Ω_v x + β_v and so on.

`attend` is a seam. `attend_explicit` shows every step to a tap; `attend_fast` gives the same `mixed` without
keeping more than the way back needs. Listening to products, bias, scores or pattern selects the explicit form for that
call only; tests/parity ties the two. Knows queries, keys, values and a mask. Refuses to know who made them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd.function import once_differentiable

from clearhead.nn.dropout import dropout, dropping
from clearhead.nn.linear import Linear, in_heads
from clearhead.nn.positions import ScorePositions
from clearhead.nn.shapes import Bool, Float, Tensor
from clearhead.nn.tap import heard, tap

LONG = 256 * 256
"""Above this many scores per head, torch's blocked kernel saves more memory than our own saves time."""


class KeyValue(NamedTuple):
    """What is read from: keys (B, G, K, H) and values (B, G, K, U) of G heads."""

    key: Tensor
    value: Tensor


def silent(name: str, tensor: Tensor) -> Tensor:
    return tensor


def masked_softmax(scores: Float[Tensor, "B N Q K"], allowed: Bool[Tensor, "..."] | None) -> Float[Tensor, "B N Q K"]:
    """Softmax over allowed keys; forbidden ones get exactly 0, and so does a row with nothing allowed."""
    if allowed is None:
        return scores.softmax(-1)
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~allowed, lowest).softmax(-1).masked_fill(~allowed, 0.0)


def attend_explicit(
    query: Float[Tensor, "B N Q H"],
    key: Float[Tensor, "B N K H"],
    value: Float[Tensor, "B N K U"],
    allowed: Bool[Tensor, "..."] | None,
    bias: Float[Tensor, "..."] | None,
    scale: float,
    rate: float = 0.0,
    hear: Callable[[str, Tensor], Tensor] = silent,
) -> Float[Tensor, "B N Q U"]:
    """The equation, step by step, each step open to a tap."""
    scores = hear("products", query @ key.transpose(-2, -1)) * scale
    if bias is not None:
        scores = scores + hear("bias", bias)
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -math.inf)
    pattern = hear("pattern", masked_softmax(hear("scores", scores), allowed))
    return dropout(pattern, rate) @ value


class ShortAttention(torch.autograd.Function):
    """`attend_explicit` with its gradient written out: fewer passes over the scores, and only the pattern kept."""

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, blocked: Tensor | None, bias: Tensor | None, scale: float
    ) -> Tensor:
        scores = torch.matmul(query, key.transpose(-2, -1)).mul_(scale)
        if bias is not None:
            scores.add_(bias)
        if blocked is not None:
            scores.masked_fill_(blocked, torch.finfo(scores.dtype).min)
        pattern = torch.softmax(scores, -1)
        if blocked is not None:
            pattern.masked_fill_(blocked, 0.0)
        ctx.save_for_backward(query, key, value, pattern)
        ctx.scale, ctx.bias_shape = scale, None if bias is None else bias.shape
        return torch.matmul(pattern, value)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, pattern = ctx.saved_tensors
        to_value = torch.matmul(pattern.transpose(-2, -1), gradient)
        to_pattern = torch.matmul(gradient, value.transpose(-2, -1))
        to_scores = torch._softmax_backward_data(to_pattern, pattern, -1, pattern.dtype)
        to_bias = to_scores.sum_to_size(ctx.bias_shape) if ctx.bias_shape is not None else None
        to_query = torch.matmul(to_scores, key).mul_(ctx.scale)
        to_key = torch.matmul(to_scores.transpose(-2, -1), query).mul_(ctx.scale)
        return to_query, to_key, to_value, None, to_bias, None


def attend_fast(
    query: Float[Tensor, "B N Q H"],
    key: Float[Tensor, "B N K H"],
    value: Float[Tensor, "B N K U"],
    allowed: Bool[Tensor, "..."] | None,
    bias: Float[Tensor, "..."] | None,
    scale: float,
) -> Float[Tensor, "B N Q U"]:
    """The same `mixed`, faster; nothing in between can be seen."""
    if query.shape[2] * key.shape[2] <= LONG:
        return ShortAttention.apply(query, key, value, None if allowed is None else ~allowed, bias, scale)
    mask: Tensor | None = allowed
    if bias is not None:
        mask = bias if allowed is None else bias.masked_fill(~allowed, -math.inf)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scale)


class Attention(nn.Module):
    """Multi-head attention. Self-attention reads from its own input, cross-attention from the encoder's memory.

    d_model is D, each of n_heads (N) queries and keys is d_head (H) wide, values d_value (U); n_kv_heads (G) key
    and value heads are shared by N/G query heads each (Ainslie et al. 2023).
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_head: int,
        d_value: int,
        n_kv_heads: int,
        positions: ScorePositions,
        *,
        bias: bool = True,
        scale: float | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.n_heads, self.n_kv_heads, self.d_head, self.d_value = n_heads, n_kv_heads, d_head, d_value
        self.query = Linear(d_model, n_heads * d_head, bias=bias)
        self.key = Linear(d_model, n_kv_heads * d_head, bias=bias)
        self.value = Linear(d_model, n_kv_heads * d_value, bias=bias)
        self.out = Linear(n_heads * d_value, d_model, bias=bias)
        self.positions = positions
        self.scale = d_head**-0.5 if scale is None else scale
        self.rate = dropout

    def read(self, x: Float[Tensor, "B K D"], offset: int = 0) -> KeyValue:
        """Keys and values of x, whose first token stands at `offset`."""
        return self._to_read(in_heads(x, ((self.key, self.n_kv_heads), (self.value, self.n_kv_heads))), offset)

    def forward(
        self,
        x: Float[Tensor, "B Q D"],
        read: KeyValue | None = None,
        allowed: Bool[Tensor, "..."] | None = None,
        offset: int = 0,
    ) -> Float[Tensor, "B Q D"]:
        """Each token of x reads from `read` (from x itself when None)."""
        asking, asked = (self.query, self.n_heads), ((self.key, self.n_kv_heads), (self.value, self.n_kv_heads))
        query, *own = in_heads(x, (asking, *asked) if read is None else (asking,))
        query = tap(self, "query", self.positions.rotate(query, offset))
        read = read or self._to_read(own, offset)
        key, value = (self._repeat(heads) for heads in read)
        bias = self.positions.bias(query, key.shape[2], offset)
        mixed = tap(self, "mixed", self._attend(query, key, value, allowed, bias))
        return tap(self, "out", self.out(mixed.transpose(1, 2).flatten(2)))

    def _attend(self, query: Tensor, key: Tensor, value: Tensor, allowed: Tensor | None, bias: Tensor | None) -> Tensor:
        if (self.rate and dropping()) or heard(self, "products", "bias", "scores", "pattern"):
            return attend_explicit(query, key, value, allowed, bias, self.scale, self.rate, partial(tap, self))
        return attend_fast(query, key, value, allowed, bias, self.scale)

    def _to_read(self, heads: Sequence[Float[Tensor, "B G K _"]], offset: int) -> KeyValue:
        key, value = heads
        return KeyValue(tap(self, "key", self.positions.rotate(key, offset)), tap(self, "value", value))

    def _repeat(self, x: Float[Tensor, "B G K _"]) -> Float[Tensor, "B N K _"]:
        return x if self.n_kv_heads == self.n_heads else x.repeat_interleave(self.n_heads // self.n_kv_heads, 1)
