"""Linear maps learned with products in bfloat16: every factor, forward and backward, rounded to 8 bits of mantissa.

    y = x Wᵀ + β        ∂x = ∂y W        ∂W = ∂yᵀ x        sums kept in float32 by the processor

What stands between the products costs memory traffic, a seventh of a step of the base size (docs/log.md). So hidden
units that are rounded anyway stay so from one product to the next, several maps of the same x are one product, and
their heads are taken apart in the pass that widens the numbers again.

Knows tensors. Refuses to know what they mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from clearhead.nn.shapes import Float, Tensor

ROWS = 256
"""Rounded products come in multiples of so many rows. The processor's library writes a kernel for every new shape,
which takes about four milliseconds and two thirds of a megabyte: with shapes as varied as batches are, an eighth of
the training time and gigabytes of memory (docs/log.md)."""


def empty_rows(rows: int, width: int, device: torch.device) -> Tensor:
    """Room for bfloat16 rows, and zeros after them up to a multiple of ROWS."""
    found = torch.empty(rows + -rows % ROWS, width, dtype=torch.bfloat16, device=device)
    found[rows:] = 0
    return found


def rounded_rows(x: Tensor) -> Tensor:
    """x as bfloat16 rows, zeros added at the end up to a multiple of ROWS."""
    rows = x.reshape(-1, x.shape[-1])
    if x.dtype == torch.bfloat16 and not len(rows) % ROWS:
        return rows
    padded = empty_rows(len(rows), rows.shape[1], x.device)
    padded[: len(rows)] = rows
    return padded


class RoundedLinear(torch.autograd.Function):
    """One map. x may be rounded already; y is widened to float32, or left rounded for the next product."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, widen: bool) -> Tensor:
        rounded_x, rounded_weight = rounded_rows(x), weight.bfloat16()
        ctx.save_for_backward(rounded_x, rounded_weight)
        ctx.has_bias, ctx.dtype, ctx.wide = bias is not None, x.dtype, weight.dtype
        y = torch.nn.functional.linear(rounded_x, rounded_weight, None if bias is None else bias.bfloat16())
        y = y[: x.numel() // x.shape[-1]].view(*x.shape[:-1], len(weight))
        return y.to(weight.dtype) if widen else y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        rows = gradient.reshape(-1, len(weight))
        rounded = rounded_rows(rows)
        to_x = (rounded @ weight)[: len(rows)].to(ctx.dtype).view(*gradient.shape[:-1], weight.shape[1])
        to_bias = rows.sum(0, dtype=ctx.wide) if ctx.has_bias else None
        return to_x, (rounded.T @ x).to(ctx.wide), to_bias, None


class RoundedHeads(torch.autograd.Function):
    """Several maps of the same x, each split into heads: (B, L, D) → (B, N, L, H) for each."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, heads: Sequence[int], *parameters: Tensor | None) -> tuple[Tensor, ...]:
        weights, biases = parameters[: len(heads)], parameters[len(heads) :]
        rounded_x = rounded_rows(x)
        weight = torch.cat([w.bfloat16() for w in weights if w is not None])
        bias = None if biases[0] is None else torch.cat([b.bfloat16() for b in biases if b is not None])
        ctx.save_for_backward(rounded_x, weight)
        ctx.heads, ctx.shape, ctx.dtype, ctx.has_bias = heads, x.shape, x.dtype, bias is not None
        ctx.widths = [len(w) for w in weights if w is not None]
        y = torch.nn.functional.linear(rounded_x, weight, bias)[: x.shape[0] * x.shape[1]]
        parts = y.view(*x.shape[:2], -1).split(ctx.widths, -1)
        return tuple(
            taken_apart(part, n).to(x.dtype, memory_format=torch.contiguous_format)
            for part, n in zip(parts, heads, strict=True)
        )

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        x, weight = ctx.saved_tensors
        rows = ctx.shape[0] * ctx.shape[1]
        rounded = empty_rows(rows, len(weight), x.device)
        parts = rounded[:rows].view(*ctx.shape[:2], -1).split(ctx.widths, -1)
        for part, n, gradient in zip(parts, ctx.heads, gradients, strict=True):
            taken_apart(part, n).copy_(gradient)
        to_x = (rounded @ weight)[:rows].to(ctx.dtype).view(ctx.shape)
        to_weights = (rounded.T @ x).to(ctx.dtype).split(ctx.widths)
        to_biases = [g.sum((0, 2)).flatten() if ctx.has_bias else None for g in gradients]
        return to_x, None, *to_weights, *to_biases


def taken_apart(y: Float[Tensor, "B L _"], heads: int) -> Float[Tensor, "B {heads} L _"]:
    return y.unflatten(-1, (heads, -1)).transpose(1, 2)
