"""Masks: one kind, one polarity. Boolean, True = this query may attend to this key.

Every mask broadcasts against scores (B, N, Q, K): padding is (B, 1, 1, K), the causal and sparse patterns are
(1, 1, Q, K). Masks are joined by "and". A query that may attend to nothing reads zeros (nn/attention.py).

Knows lengths and positions. Refuses to know tokens' meanings, apart from the id of padding it is given.
"""

from __future__ import annotations

import torch

from clearhead.nn.shapes import Bool, Int, Tensor


def padding(ids: Int[Tensor, "B L"], pad: int) -> Bool[Tensor, "B 1 1 L"]:
    """True at real tokens."""
    return (ids != pad)[:, None, None, :]


def from_lengths(lengths: Int[Tensor, "B"], width: int) -> Bool[Tensor, "B 1 1 L"]:
    """True at the first `lengths[b]` places of each row."""
    return (torch.arange(width, device=lengths.device) < lengths[:, None])[:, None, None, :]


def distances(queries: int, keys: int, offset: int = 0, device: torch.device | None = None) -> Int[Tensor, "Q K"]:
    """key position − query position; the first query stands at `offset`."""
    at = torch.arange(offset, offset + queries, device=device)
    return torch.arange(keys, device=device)[None, :] - at[:, None]


def causal(queries: int, keys: int, offset: int = 0, device: torch.device | None = None) -> Bool[Tensor, "1 1 Q K"]:
    """Nobody reads the future: key position ≤ query position."""
    return (distances(queries, keys, offset, device) <= 0)[None, None]


def window(
    queries: int, keys: int, reach: int, offset: int = 0, device: torch.device | None = None
) -> Bool[Tensor, "1 1 Q K"]:
    """Local attention: keys at most `reach` tokens away (Longformer, Beltagy et al. 2020)."""
    return (distances(queries, keys, offset, device).abs() <= reach)[None, None]


def strided(
    queries: int, keys: int, reach: int, stride: int, offset: int = 0, device: torch.device | None = None
) -> Bool[Tensor, "1 1 Q K"]:
    """Local, and besides every key a multiple of `stride` away (dilated attention; Child et al. 2019)."""
    away = distances(queries, keys, offset, device)
    return ((away.abs() <= reach) | (away % stride == 0))[None, None]


def sparse(
    queries: int, keys: int, reach: int | None, stride: int | None, offset: int = 0, device: torch.device | None = None
) -> Bool[Tensor, "1 1 Q K"] | None:
    """The pattern that settings ask for; None: everything."""
    if reach is None:
        return None
    if stride is None:
        return window(queries, keys, reach, offset, device)
    return strided(queries, keys, reach, stride, offset, device)


def both(*masks: Bool[Tensor, "..."] | None) -> Bool[Tensor, "..."] | None:
    """May attend where every mask says so; None stands for "everywhere"."""
    joined = None
    for mask in masks:
        if mask is not None:
            joined = mask if joined is None else joined & mask
    return joined
