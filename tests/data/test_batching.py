"""Batches by hand: ends, padding, counts, and the hook for ids that change each epoch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from clearhead.data.batching import Batch, Batches, assemble, ragged
from clearhead.data.order import Cursor
from clearhead.data.store import Side, Store
from clearhead.data.store_builder import Coding, build_store
from clearhead.text.vocabulary import BOS, EOS, PAD


def encode(texts: list[str]) -> list[list[int]]:
    """A fake tokenizer: one id per character, clear of the special ids."""
    return [[5 + ord(letter) for letter in text] for text in texts]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    pairs = [("s" * (1 + i % 11) + chr(i), "t" * (1 + i * 7 % 13) + chr(i)) for i in range(200)]
    coding = Coding(encode, 300)
    return build_store(pairs, coding, coding, tmp_path / "store", fingerprint="abc", max_tokens=50)


def test_a_batch_by_hand() -> None:
    batch = assemble(ragged([[7, 8, 9], [6]]), ragged([[11], [12, 13]]), np.array([40, 2]), epoch=3)
    assert batch.source.tolist() == [[7, 8, 9, EOS], [6, EOS, PAD, PAD]]
    assert batch.target_in.tolist() == [[BOS, 11, PAD], [BOS, 12, 13]]
    assert batch.target_out.tolist() == [[11, EOS, PAD], [12, 13, EOS]]
    assert batch.rows.tolist() == [40, 2]
    assert (len(batch), batch.epoch, batch.n_source_tokens, batch.n_target_tokens) == (2, 3, 6, 5)


def test_empty_rows_are_only_their_ends() -> None:
    batch = assemble(ragged([[], []]), ragged([[], [9]]), np.arange(2))
    assert batch.source.tolist() == [[EOS], [EOS]]
    assert batch.target_in.tolist() == [[BOS, PAD], [BOS, 9]]
    assert batch.target_out.tolist() == [[EOS, PAD], [9, EOS]]


def test_ids_equal_to_special_ones_stay_in_place() -> None:
    batch = assemble(ragged([[EOS, PAD]]), ragged([[EOS, BOS]]), np.arange(1))
    assert batch.source.tolist() == [[EOS, PAD, EOS]]
    assert batch.target_in.tolist() == [[BOS, EOS, BOS]]
    assert batch.target_out.tolist() == [[EOS, BOS, EOS]]


def test_a_batch_holds_its_rows_of_the_store(store: Store) -> None:
    batch = Batches(store, 100, seed=1).at(Cursor(0, 1))
    for place, row in enumerate(batch.rows):
        n = int(store.source_lengths[row])
        assert batch.source[place, :n].tolist() == store.source(row).tolist()
        assert batch.source[place, n:].tolist() == [EOS] + [PAD] * (batch.source.shape[1] - n - 1)
    for array in (batch.source, batch.target_in, batch.target_out, batch.rows):
        assert array.dtype == np.int64 and array.flags["C_CONTIGUOUS"] and array.flags["WRITEABLE"]


def same(left: Batch, right: Batch) -> bool:
    return all(
        np.array_equal(getattr(left, name), getattr(right, name))
        for name in ("source", "target_in", "target_out", "rows", "epoch")
    )


def test_taking_goes_over_the_end_of_the_epoch(store: Store) -> None:
    batches = Batches(store, 100, seed=1)
    n = batches.plan.n_batches(0)
    taken, cursor = batches.take(Cursor(0, n - 1), 3)
    assert cursor == Cursor(1, 2)
    assert [batch.epoch for batch in taken] == [0, 1, 1]
    assert all(same(a, batches.at(b)) for a, b in zip(taken, [Cursor(0, n - 1), Cursor(1), Cursor(1, 1)], strict=True))


def test_an_epoch_is_its_batches_in_turn(store: Store) -> None:
    batches = Batches(store, 100, seed=1)
    whole = list(batches.epoch(2))
    assert len(whole) == batches.plan.n_batches(2)
    assert all(same(batch, batches.at(Cursor(2, index))) for index, batch in enumerate(whole))


class Doubling:
    """A fake sampler: in odd epochs every id comes twice."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def ids(self, side: Side, row: int, epoch: int) -> np.ndarray:
        return np.repeat(self.store.row(side, row), 1 + epoch % 2)


def test_a_sampler_gives_the_ids_and_the_batch_grows_to_hold_them(store: Store) -> None:
    plain, sampled = Batches(store, 100, seed=1), Batches(store, 100, seed=1, sampler=Doubling(store))
    assert same(plain.at(Cursor(0, 4)), sampled.at(Cursor(0, 4)))
    before, after = plain.at(Cursor(1, 4)), sampled.at(Cursor(1, 4))
    assert after.rows.tolist() == before.rows.tolist()
    assert after.source.shape[1] == 2 * before.source.shape[1] - 1
    assert after.n_target_tokens == 2 * before.n_target_tokens - len(before)
