"""Agreement of two rankings.

    ρ = correlation of the ranks                 Spearman 1904; equal numbers share their mean rank

Knows arrays. Refuses to know what was ranked.
"""

from __future__ import annotations

import numpy as np

from clearhead.glass.layout import Array


def ranks(values: Array) -> Array:
    """Ranks from 0; equal numbers get the mean of theirs."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    middle: Array = last - (count + 1) / 2
    return middle[place]


def unit_ranks(values: Array) -> Array:
    """The ranks of each row, centred and at length 1, so that ρ is a dot product; zeros where a row is all alike."""
    centred = np.stack([ranks(row) for row in values])
    centred -= centred.mean(1, keepdims=True)
    size = np.linalg.norm(centred, axis=1, keepdims=True)
    return centred / np.where(size, size, 1.0)


def mean_spearman(a: Array, b: Array) -> float:
    """ρ row by row, then the mean of the rows that can be ranked; nan where there is none."""
    x, y = unit_ranks(a), unit_ranks(b)
    known = x.any(1) & y.any(1)
    return float((x * y).sum(1)[known].mean()) if known.any() else float("nan")


def spearman(a: Array, b: Array) -> float:
    """Between −1 and 1; nan where one side is all alike."""
    return mean_spearman(np.ravel(a)[None], np.ravel(b)[None])
