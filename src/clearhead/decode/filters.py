"""Filters: what may be written next, as log-probabilities in and out; −∞ where forbidden.

Knows one step's log-probabilities and each row's history. Refuses to know how the choice is made.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from clearhead.nn.shapes import Float, Tensor


def no_repeat(
    log_p: Float[Tensor, "R V"], history: Sequence[Sequence[int]], n: int, keep: int | None = None
) -> Float[Tensor, "R V"]:
    """Forbid every token that would complete a run of n tokens already written in its row; never `keep` (EOS)."""
    if n <= 0:
        return log_p
    log_p = log_p.clone()
    for row, tokens in enumerate(history):
        tail = tuple(tokens[len(tokens) - n + 1 :]) if n > 1 else ()
        runs = zip(*(tokens[i:] for i in range(n)), strict=False)
        banned = {run[-1] for run in runs if tuple(run[:-1]) == tail} - {keep}
        log_p[row, list(banned)] = -torch.inf
    return log_p


def forced(
    allowed: Float[Tensor, "R V"], log_p: Float[Tensor, "R V"], wanted: Sequence[int | None]
) -> Float[Tensor, "R V"]:
    """Where a row's next token is given, nothing but that token, at the model's own log-probability."""
    rows = [row for row, token in enumerate(wanted) if token is not None]
    if not rows:
        return allowed
    tokens = [wanted[row] for row in rows]
    allowed = allowed.clone()
    allowed[rows] = -torch.inf
    allowed[rows, tokens] = log_p[rows, tokens]
    return allowed


def temperature(log_p: Float[Tensor, "R V"], t: float) -> Float[Tensor, "R V"]:
    return log_p if t == 1.0 else torch.log_softmax(log_p / t, -1)


def top_k(log_p: Float[Tensor, "R V"], k: int) -> Float[Tensor, "R V"]:
    """Only the k likeliest."""
    if k <= 0 or k >= log_p.shape[-1]:
        return log_p
    threshold = log_p.topk(k, -1).values[:, -1:]
    return log_p.masked_fill(log_p < threshold, -torch.inf)


def top_p(log_p: Float[Tensor, "R V"], p: float) -> Float[Tensor, "R V"]:
    """The smallest set of likeliest tokens whose probabilities sum to at least p (Holtzman et al. 2020)."""
    if p >= 1.0:
        return log_p
    ordered, places = log_p.sort(-1, descending=True)
    before = ordered.exp().cumsum(-1) - ordered.exp()
    return log_p.scatter(-1, places, ordered.masked_fill(before >= p, -torch.inf))


def min_p(log_p: Float[Tensor, "R V"], p: float) -> Float[Tensor, "R V"]:
    """Only tokens at least p times as likely as the likeliest."""
    if p <= 0.0:
        return log_p
    return log_p.masked_fill(log_p < log_p.max(-1, keepdim=True).values + math.log(p), -torch.inf)
