"""The loss: how surprised the model is by each next word, without ever keeping the logits.

    logits = h Eᵀ,  p = softmax(logits)
    L(y) = −(1−ε) log p_y − ε/V Σ_v log p_v                      label smoothing, Szegedy et al. 2016
    ∂L/∂logits = p − (1−ε) e_y − ε/V

The logits are the largest thing in a small model: rows × vocabulary. They are made in chunks of rows, turned into
gradients of h and E on the spot, in the forward pass, and forgotten. The ε/V terms need no pass over them:
Σ_v logits_v = h · Σ_v E_v. R-Drop (Liang et al. 2021) runs each row twice under different dropout and adds
α/4 (KL(p‖q) + KL(q‖p)) to the mean of both losses.

Knows hidden states, the output layer and targets. Refuses to know which network made them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from clearhead.native import loops
from clearhead.nn.linear import product_dtype
from clearhead.nn.shapes import Float, Int, Tensor

CHUNK = 512
"""Rows at a time: enough for fast products, few enough for their probabilities to stay in the processor's cache."""
SHORTEST = 32
"""Rows left over at the end are not cut further than this."""
UNDERFLOW = 1e-30
"""A smaller probability may have lost its logarithm."""


def smoothed_cross_entropy(
    hidden: Float[Tensor, "R D"], weight: Float[Tensor, "V D"], targets: Int[Tensor, "R"], smoothing: float
) -> Float[Tensor, ""]:
    """The loss summed over rows."""
    return SmoothedCrossEntropy.apply(hidden, weight, targets, smoothing, product_dtype())


def rdrop_cross_entropy(
    hidden: Float[Tensor, "R2 D"],
    weight: Float[Tensor, "V D"],
    targets: Int[Tensor, "R"],
    smoothing: float,
    alpha: float,
) -> Float[Tensor, ""]:
    """The R-Drop loss summed over rows; `hidden` holds the first passes of all rows, then the second ones."""
    return RDropCrossEntropy.apply(hidden, weight, targets, smoothing, alpha, product_dtype())


def looped(logits: Tensor) -> bool:
    """Are there compiled loops for these?"""
    return logits.dtype == torch.bfloat16 and logits.device.type == "cpu" and loops.loops() is not None


def wide(x: Tensor) -> Tensor:
    """At least float32."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def anchors(p: Tensor, targets: Tensor) -> Tensor:
    """For each row a token whose probability is far from underflow: its target, or else the likeliest."""
    return p.argmax(1) if (p.gather(1, targets[:, None]) < UNDERFLOW).any() else targets


def log_normalisers(hidden: Tensor, weight: Tensor, p: Tensor, targets: Tensor) -> Tensor:
    """log Σ exp(logits) of each row, had from one logit and its probability."""
    known = anchors(p, targets)
    return (hidden * weight[known]).sum(1) - wide(p.gather(1, known[:, None]))[:, 0].log()


def row_losses(known: Tensor, normaliser: Tensor, mean_logit: Tensor, smoothing: float) -> Tensor:
    """L(y) for each row, of its target's logit, its normaliser and the mean of its logits."""
    return (1 - smoothing) * (normaliser - known) + smoothing * (normaliser - mean_logit)


def runs(rows: int, most: int) -> Iterator[slice]:
    """0 … rows in runs of `most`, then of half as many, and so on: few different shapes, whatever the number of rows,
    because a new shape is slow (nn/linear.py)."""
    start = 0
    while start < rows:
        while most > SHORTEST and start + most > rows:
            most //= 2
        yield slice(start, min(start + most, rows))
        start += most


class SmoothedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, targets: Tensor, smoothing: float, products: torch.dtype
    ) -> Tensor:
        low = products if hidden.dtype == torch.float32 else hidden.dtype
        weight_low, mean_row = weight.to(low), weight.mean(0)
        to_hidden, to_weight, total = torch.empty_like(hidden), torch.zeros_like(weight), hidden.new_zeros(())
        for rows in runs(len(targets), CHUNK):
            h, y, out = hidden[rows], targets[rows], to_hidden[rows]
            h_low, known = h.to(low), (h * weight[y]).sum(1)
            to_logits = h_low @ weight_low.T
            if looped(to_logits):
                normaliser = loops.surprise(to_logits, y, wide(known), 1 - smoothing)
            else:
                p = to_logits = torch.softmax(to_logits, -1)
                normaliser = log_normalisers(h, weight, p, y)
                p[torch.arange(len(y), device=y.device), y] -= 1 - smoothing
            total += row_losses(known, normaliser, h @ mean_row, smoothing).sum()
            out.copy_(to_logits @ weight_low).sub_(smoothing * mean_row)
            to_weight += to_logits.T @ h_low
        to_weight -= smoothing / len(weight) * hidden.sum(0)
        ctx.save_for_backward(to_hidden, to_weight)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        to_hidden, to_weight = ctx.saved_tensors
        return to_hidden * gradient, to_weight * gradient, None, None, None


class RDropCrossEntropy(torch.autograd.Function):
    """∂KL(p‖q)/∂a = p (r − KL(p‖q)) and ∂KL(q‖p)/∂a = p − q, with a the logits of p and r = log p − log q."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        targets: Tensor,
        smoothing: float,
        alpha: float,
        products: torch.dtype,
    ) -> Tensor:
        low = products if hidden.dtype == torch.float32 else hidden.dtype
        weight_low, mean_row = weight.to(low), weight.mean(0)
        to_hidden, to_weight, total = torch.empty_like(hidden), torch.zeros_like(weight), hidden.new_zeros(())
        (first, second), (to_first, to_second) = hidden.chunk(2), to_hidden.chunk(2)
        for rows in runs(len(targets), CHUNK // 2):
            y, both = targets[rows], torch.cat((first[rows], second[rows]))
            both_low, y2 = both.to(low), torch.cat((y, y))
            known = (both * weight[y2]).sum(1)
            to_logits = both_low @ weight_low.T
            if looped(to_logits):
                normaliser, divergences = loops.disagree(to_logits, y, wide(known), 1 - smoothing, alpha / 4)
                disagreement = divergences.sum()
            else:
                logits, p = to_logits, torch.softmax(to_logits, -1)
                normaliser = log_normalisers(both, weight, p, y2)
                disagreement, to_logits = rdrop_gradient(logits, p, normaliser, alpha)
                p[torch.arange(len(y2), device=y.device), y2] -= 1 - smoothing
                to_logits.add_(p, alpha=0.5)
            total += 0.5 * row_losses(known, normaliser, both @ mean_row, smoothing).sum()
            total += alpha / 4 * disagreement
            gradient = (to_logits @ weight_low).to(hidden.dtype).sub_(0.5 * smoothing * mean_row)
            to_first[rows], to_second[rows] = gradient.chunk(2)
            to_weight += to_logits.T @ both_low
        to_weight -= 0.5 * smoothing / len(weight) * hidden.sum(0)
        ctx.save_for_backward(to_hidden, to_weight)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        to_hidden, to_weight = ctx.saved_tensors
        return to_hidden * gradient, to_weight * gradient, None, None, None, None


def rdrop_gradient(logits: Tensor, p: Tensor, normaliser: Tensor, alpha: float) -> tuple[Tensor, Tensor]:
    """KL(p‖q) + KL(q‖p) summed over rows, and α/4 of its gradient by the logits of p, then of q."""
    first, second = p.chunk(2)
    a, b = logits.chunk(2)
    of_a, of_b = normaliser[:, None].chunk(2)
    r = (a - b).add_((of_b - of_a).to(p.dtype))  # log p − log q
    weighted_first, weighted_second = first * r, second * r
    forward = weighted_first.sum(1, keepdim=True)
    backward = -weighted_second.sum(1, keepdim=True)
    difference = first - second
    to_first = weighted_first.sub_(first * forward).add_(difference)
    to_second = weighted_second.add_(second * backward).add_(difference).neg_()
    return wide(forward + backward).sum(), torch.cat((to_first, to_second)).mul_(alpha / 4)
