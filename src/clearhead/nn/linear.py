"""Linear maps, and the precision their products are taken in.

    y = x Wᵀ + β          W: output × input, β: output          (the notes' Ω x + β)

Products run in float32, or — inside `with products_in(torch.bfloat16)` — in bfloat16, three to four times faster
on processors that know it. Then both factors are rounded to 8 bits of mantissa and the sum is kept in float32 by
the processor; weights, gradients and the residual stream stay float32 (nn/rounded.py). Without gradients the weights
are rounded once and remembered, and int8 can be had too (nn/packed.py).

Knows two tensors and a precision. Refuses to know what they mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import nn

from clearhead.nn.packed import packed
from clearhead.nn.rounded import RoundedHeads, RoundedLinear, taken_apart
from clearhead.nn.shapes import Float, Tensor

_products: ContextVar[torch.dtype] = ContextVar("products", default=torch.float32)


@contextmanager
def products_in(dtype: torch.dtype) -> Iterator[None]:
    """The precision of matrix products while the block runs."""
    token = _products.set(dtype)
    try:
        yield
    finally:
        _products.reset(token)


def product_dtype() -> torch.dtype:
    return _products.get()


def rounding(weight: Tensor) -> bool:
    """Are products of these weights rounded, in a pass that is learned from?"""
    return not (torch.is_inference_mode_enabled() or weight.dtype != torch.float32 or product_dtype() == torch.float32)


def linear(
    x: Float[Tensor, "... I"],
    weight: Float[Tensor, "O I"],
    bias: Float[Tensor, "O"] | None = None,
    *,
    widen: bool = True,
) -> Float[Tensor, "... O"]:
    """x Wᵀ + β in the current precision. Not widened, what was rounded stays so for the next product."""
    if torch.is_inference_mode_enabled() and x.dtype == torch.float32:
        return packed(weight, bias, product_dtype())(x)
    if rounding(weight):
        return RoundedLinear.apply(x, weight, bias, widen)
    return torch.nn.functional.linear(x, weight, bias)


def in_heads(x: Float[Tensor, "B L D"], maps: Sequence[tuple[Linear, int]]) -> tuple[Tensor, ...]:
    """Several maps of the same x, each split into so many heads: (B, L, D) → (B, N, L, H)."""
    if rounding(maps[0][0].weight):
        weights, biases = [m.weight for m, _ in maps], [m.bias for m, _ in maps]
        return RoundedHeads.apply(x, [n for _, n in maps], *weights, *biases)
    return tuple(taken_apart(m(x), n) for m, n in maps)


class Linear(nn.Module):
    """A learned linear map. Starts uniform in ±√(6 / (input + output)) (Glorot & Bengio 2010), times `gain`; β = 0."""

    def __init__(self, d_in: int, d_out: int, *, bias: bool = True, gain: float = 1.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(d_out, d_in))
        self.bias = nn.Parameter(torch.zeros(d_out)) if bias else None
        bound = gain * math.sqrt(6.0 / (d_in + d_out))
        nn.init.uniform_(self.weight, -bound, bound)

    def forward(self, x: Float[Tensor, "... I"], *, widen: bool = True) -> Float[Tensor, "... O"]:
        return linear(x, self.weight, self.bias, widen=widen)
