"""How long the texts of a side are: exact percentiles from counts, in memory that does not grow."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

LARGEST = 1 << 16  # longer texts are counted together; their longest is kept


class Lengths(BaseModel):
    """Of one side, in characters or words."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mean: float
    percentiles: dict[int, int]
    """5, 25, 50, 75, 95, 99 → a length at least that share of texts does not exceed."""
    longest: int


class LengthTally:
    def __init__(self) -> None:
        self.counts: NDArray[np.int64] = np.zeros(LARGEST + 1, np.int64)
        self.total = self.longest = 0

    def add(self, lengths: NDArray[np.int64]) -> None:
        self.counts += np.bincount(np.minimum(lengths, LARGEST), minlength=LARGEST + 1)
        self.total += int(lengths.sum())
        self.longest = max(self.longest, int(lengths.max(initial=0)))

    def result(self) -> Lengths:
        reached = np.cumsum(self.counts)
        texts = int(reached[-1])
        percentiles = {p: int(np.searchsorted(reached, np.ceil(texts * p / 100))) for p in (5, 25, 50, 75, 95, 99)}
        return Lengths(mean=self.total / max(texts, 1), percentiles=percentiles, longest=self.longest)
