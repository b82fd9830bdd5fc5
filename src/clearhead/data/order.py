"""The order of an epoch: which pairs stand together in a batch, and which batch comes when.

    shuffle all pairs → pools of 2²⁰ → sort each pool by length → cut into batches → shuffle the batches

All of it is a function of (seed, epoch): not of workers, steps or what was drawn before. A place in the run is
two integers, a `Cursor`.

A pool is sorted by the longer side first, then by how much longer the source is, upwards and downwards in turn,
so that neighbours differ little on both sides. That pads less than sorting by the target's length and then the
source's: a batch is full when rows × longest side reaches the limit, so the longer side is what should be even.
Among pairs of equal lengths the shuffle decides, and a tenth of the pairs are sorted as if one token longer:
without them, the batches of a few thousand pairs would hold the same pairs in every epoch.

Knows lengths, limits and seeds. Refuses to know tokens, files and tensors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clearhead.errors import DataError, UsageError
from clearhead.randomness import numpy_generator, permutation

POOL = 1 << 20  # pairs sorted at once: bounds the memory of a sort; smaller data is one pool
LATE = 0.1


@dataclass(frozen=True)
class Cursor:
    """A place in the run: the next batch to train on."""

    epoch: int = 0
    index: int = 0

    def advance(self, n_batches: int) -> Cursor:
        """The place after it, in an epoch of so many batches."""
        return Cursor(self.epoch, self.index + 1) if self.index + 1 < n_batches else Cursor(self.epoch + 1)


@dataclass(frozen=True)
class Waste:
    """Share of a padded side's cells that hold padding."""

    source: float
    target: float


@dataclass(frozen=True, eq=False)
class EpochOrder:
    """One epoch: rows laid out batch after batch, where each batch begins, and which batch comes when."""

    rows: np.ndarray
    bounds: np.ndarray
    sequence: np.ndarray

    def __len__(self) -> int:
        return len(self.sequence)

    def batch(self, index: int) -> np.ndarray:
        place = self.sequence[index]
        return self.rows[self.bounds[place] : self.bounds[place + 1]].astype(np.int64)


class BatchPlan:
    """Batches of at most `batch_tokens` padded tokens on each side; every pair once per epoch."""

    def __init__(self, source_lengths: np.ndarray, target_lengths: np.ndarray, batch_tokens: int, seed: int) -> None:
        if len(source_lengths) != len(target_lengths) or not len(source_lengths):
            raise DataError(f"{len(source_lengths)} sources and {len(target_lengths)} targets cannot be paired")
        longest = int(max(source_lengths.max(), target_lengths.max())) + 1
        if longest > batch_tokens:
            shorter = f", or set data.max_tokens to {batch_tokens - 1} or less" if batch_tokens > 2 else ""
            raise UsageError(
                f"a batch of {batch_tokens} tokens cannot hold the longest sentence: {longest} with its end mark",
                field="train.batch_tokens",
                hint=f"raise it to {longest} or more{shorter}",
            )
        self.source_lengths = source_lengths
        self.target_lengths = target_lengths
        self.batch_tokens = batch_tokens
        self.seed = seed
        self._current: tuple[int, EpochOrder] | None = None

    def epoch(self, epoch: int) -> EpochOrder:
        """The order of an epoch; the last one asked for is kept."""
        if self._current is None or self._current[0] != epoch:
            self._current = None  # let the old one go first: only one is in memory
            self._current = epoch, self._make(epoch)
        return self._current[1]

    def n_batches(self, epoch: int) -> int:
        return len(self.epoch(epoch))

    def rows(self, cursor: Cursor) -> np.ndarray:
        """The pairs of one batch: their numbers in the store."""
        order = self.epoch(cursor.epoch)
        if not 0 <= cursor.index < len(order):
            raise DataError(
                f"there is no batch {cursor.index} in epoch {cursor.epoch}, which has {len(order)}",
                hint="the run was started with other data, another seed or another train.batch_tokens",
            )
        return order.batch(cursor.index)

    def advance(self, cursor: Cursor) -> Cursor:
        return cursor.advance(self.n_batches(cursor.epoch))

    def waste(self, epoch: int) -> Waste:
        order = self.epoch(epoch)
        return Waste(padding_share(order, self.source_lengths), padding_share(order, self.target_lengths))

    def _make(self, epoch: int) -> EpochOrder:
        n = len(self.source_lengths)
        rows = np.arange(n, dtype=np.min_scalar_type(n))
        numpy_generator(self.seed, "order", epoch).shuffle(rows)
        bounds = [np.zeros(1, np.int64)]
        for start in range(0, n, POOL):
            pool = rows[start : start + POOL]
            bounds.append(start + self._arrange(pool, numpy_generator(self.seed, "order.late", epoch, start)))
        starts = np.concatenate(bounds)
        return EpochOrder(rows, starts, permutation(len(starts) - 1, self.seed, "order.batches", epoch))

    def _arrange(self, pool: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """Sort a pool of rows in place; where its batches end."""
        source = self.source_lengths[pool].astype(np.int32) + 1
        target = self.target_lengths[pool].astype(np.int32) + 1
        longest = np.maximum(source, target)
        level = longest + (generator.random(len(pool)) < LATE)
        slope = np.where(level % 2, source - target, target - source)
        order = np.lexsort((slope, level))
        pool[:] = pool[order]
        return cut(longest[order], self.batch_tokens)


def cut(longest: np.ndarray, batch_tokens: int) -> np.ndarray:
    """Where batches end, each as long as rows × longest row allows."""
    ends, start = [], 0
    while start < len(longest):
        room = batch_tokens // int(longest[start])
        widest = np.maximum.accumulate(longest[start : start + room])
        start += int(np.count_nonzero(widest * np.arange(1, len(widest) + 1) <= batch_tokens))
        ends.append(start)
    return np.array(ends, dtype=np.int64)


def padding_share(order: EpochOrder, lengths: np.ndarray) -> float:
    laid_out = lengths[order.rows]
    widest = np.maximum.reduceat(laid_out, order.bounds[:-1]).astype(np.int64) + 1
    cells = int((widest * np.diff(order.bounds)).sum())
    return 1 - (int(laid_out.sum(dtype=np.int64)) + len(laid_out)) / cells
