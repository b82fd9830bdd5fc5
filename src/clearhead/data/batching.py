"""Batches: padded arrays of token ids, from the rows of a store.

    source      [B, S]   ids, EOS, PAD …
    target_in   [B, T]   BOS, ids, PAD …            what the decoder reads
    target_out  [B, T]   ids, EOS, PAD …            what it should write: the same, one to the left

Which rows stand together is `order.py`'s business. A batch is made from its rows by whole-array operations, in
about half a millisecond for 2 × 4,096 tokens: far less than a training step, so no thread works ahead.

With BPE-dropout a `Sampler` gives the ids, cut anew each epoch. They may be more than the plan counted on;
the batch is then as wide as its longest row.

Knows ids, padding and cursors. Refuses to know text, tensors and devices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from clearhead.data.columns import Ragged
from clearhead.data.order import BatchPlan, Cursor
from clearhead.data.store import Side, Store
from clearhead.text.vocabulary import BOS, EOS, PAD


class Sampler(Protocol):
    """Gives a row's ids anew in each epoch: a function of (side, row, epoch) alone, so that resume is exact."""

    def ids(self, side: Side, row: int, epoch: int) -> np.ndarray: ...


@dataclass(frozen=True, eq=False)
class Batch:
    """Padded int64 arrays; `rows` are the pairs' numbers in the store."""

    source: np.ndarray
    target_in: np.ndarray
    target_out: np.ndarray
    rows: np.ndarray
    epoch: int
    n_source_tokens: int
    """Tokens that are not padding, ends included."""
    n_target_tokens: int
    """Tokens to be predicted, ends included."""

    def __len__(self) -> int:
        return len(self.rows)


class Batches:
    """The batches of a store, in the order of the run."""

    def __init__(self, store: Store, batch_tokens: int, seed: int, sampler: Sampler | None = None) -> None:
        self.store = store
        self.plan = BatchPlan(store.source_lengths, store.target_lengths, batch_tokens, seed)
        self.sampler = sampler

    def at(self, cursor: Cursor) -> Batch:
        rows = self.plan.rows(cursor)
        source, target = self._read("source", rows, cursor.epoch), self._read("target", rows, cursor.epoch)
        return assemble(source, target, rows, cursor.epoch)

    def take(self, cursor: Cursor, n: int) -> tuple[list[Batch], Cursor]:
        """The next n batches, over the end of the epoch if need be, and the place after them."""
        batches = []
        for _ in range(n):
            batches.append(self.at(cursor))
            cursor = self.plan.advance(cursor)
        return batches, cursor

    def epoch(self, epoch: int) -> Iterator[Batch]:
        """One epoch from its beginning."""
        for index in range(self.plan.n_batches(epoch)):
            yield self.at(Cursor(epoch, index))

    def _read(self, side: Side, rows: np.ndarray, epoch: int) -> Ragged:
        if self.sampler is None:
            return self.store.read(side, rows)
        return ragged([self.sampler.ids(side, row, epoch) for row in rows.tolist()])


def ragged(rows: Sequence[Sequence[int] | np.ndarray]) -> Ragged:
    """Rows of ids as one flat array and their lengths."""
    counts = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    return Ragged(np.concatenate([np.asarray(row, dtype=np.int64) for row in rows]), counts)


def assemble(source: Ragged, target: Ragged, rows: np.ndarray, epoch: int = 0) -> Batch:
    """Pad, and mark beginnings and ends."""
    each = np.arange(len(rows))
    source_ids, target_in, target_out = lay_out(source, 0), lay_out(target, 1), lay_out(target, 0)
    source_ids[each, source.counts] = EOS
    target_in[:, 0] = BOS
    target_out[each, target.counts] = EOS
    n_source, n_target = (int(side.counts.sum()) + len(rows) for side in (source, target))
    return Batch(source_ids, target_in, target_out, rows, epoch, n_source, n_target)


def lay_out(ids: Ragged, first: int) -> np.ndarray:
    """[rows, longest + 1]: each row's ids from column `first`, PAD elsewhere."""
    columns = np.arange(int(ids.counts.max()) + 1) - first
    inside = (columns >= 0) & (columns < ids.counts[:, None])
    padded = np.full(inside.shape, PAD, dtype=np.int64)
    padded[inside] = ids.values
    return padded
