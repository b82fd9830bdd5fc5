"""What holds for every plan and every batch."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clearhead.data import order
from clearhead.data.batching import Batch, Batches, assemble, ragged
from clearhead.data.columns import BLOCK
from clearhead.data.order import BatchPlan, Cursor
from clearhead.data.store_builder import Coding, build_store
from clearhead.text.vocabulary import BOS, EOS, PAD

sides = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=120)
seeds = st.integers(0, 2**63 - 1)
epochs = st.integers(0, 50)
limits = st.integers(41, 300)
ids = st.lists(st.integers(0, 999), max_size=12)
pairs_of_ids = st.lists(st.tuples(ids, ids), min_size=1, max_size=12)


def make_plan(pairs: list[tuple[int, int]], limit: int, seed: int) -> BatchPlan:
    source, target = np.array(pairs, np.uint16).T
    return BatchPlan(source, target, limit, seed)


def rows_of(plan: BatchPlan, epoch: int) -> list[list[int]]:
    return [plan.rows(Cursor(epoch, index)).tolist() for index in range(plan.n_batches(epoch))]


@pytest.fixture(scope="module", params=[1 << 20, 16], ids=["one pool", "pools of 16"], autouse=True)
def pools(request: pytest.FixtureRequest) -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order, "POOL", request.param)
        yield


@settings(deadline=None)
@given(sides, limits, seeds, epochs)
def test_every_pair_once_per_epoch(pairs: list[tuple[int, int]], limit: int, seed: int, epoch: int) -> None:
    rows = [row for batch in rows_of(make_plan(pairs, limit, seed), epoch) for row in batch]
    assert sorted(rows) == list(range(len(pairs)))


@settings(deadline=None)
@given(sides, limits, seeds, epochs)
def test_both_sides_stay_within_the_limit(pairs: list[tuple[int, int]], limit: int, seed: int, epoch: int) -> None:
    plan = make_plan(pairs, limit, seed)
    for rows in rows_of(plan, epoch):
        assert rows
        assert len(rows) * (int(plan.source_lengths[rows].max()) + 1) <= limit
        assert len(rows) * (int(plan.target_lengths[rows].max()) + 1) <= limit


@settings(deadline=None)
@given(sides, limits, seeds, epochs)
def test_equal_seeds_give_equal_plans_whatever_was_asked_before(
    pairs: list[tuple[int, int]], limit: int, seed: int, epoch: int
) -> None:
    fresh, used = make_plan(pairs, limit, seed), make_plan(pairs, limit, seed)
    rows_of(used, epoch + 1)
    rows_of(used, 0)
    assert rows_of(fresh, epoch) == rows_of(used, epoch)


@settings(deadline=None)
@given(seeds, epochs, limits)
def test_another_epoch_or_seed_is_another_order(seed: int, epoch: int, limit: int) -> None:
    pairs = [(i % 40, i * 7 % 40) for i in range(120)]
    here = rows_of(make_plan(pairs, limit, seed), epoch)
    assert here != rows_of(make_plan(pairs, limit, seed), epoch + 1)
    assert here != rows_of(make_plan(pairs, limit, seed ^ 1), epoch)


@settings(deadline=None)
@given(sides, limits, seeds, epochs)
def test_waste_is_counted_cell_by_cell(pairs: list[tuple[int, int]], limit: int, seed: int, epoch: int) -> None:
    plan = make_plan(pairs, limit, seed)
    cells = sum(len(rows) * (max(pairs[row][0] for row in rows) + 1) for rows in rows_of(plan, epoch))
    used = sum(source + 1 for source, _ in pairs)
    assert plan.waste(epoch).source == pytest.approx(1 - used / cells)


@settings(deadline=None)
@given(pairs_of_ids)
def test_padding_is_only_at_the_end_and_the_targets_are_shifted_by_one(
    pairs: list[tuple[list[int], list[int]]],
) -> None:
    batch = assemble(ragged([p[0] for p in pairs]), ragged([p[1] for p in pairs]), np.arange(len(pairs)))
    for (source, target), row, read, written in zip(
        pairs, batch.source, batch.target_in, batch.target_out, strict=True
    ):
        assert row.tolist() == source + [EOS] + [PAD] * (len(row) - len(source) - 1)
        assert read.tolist() == [BOS, *target] + [PAD] * (len(read) - len(target) - 1)
        assert written.tolist() == target + [EOS] + [PAD] * (len(written) - len(target) - 1)
    assert batch.source.shape[1] == max(len(source) for source, _ in pairs) + 1
    assert batch.target_in.shape == batch.target_out.shape == (len(pairs), max(len(t) for _, t in pairs) + 1)


def store_batches(pairs: list[tuple[list[int], list[int]]], folder: Path, limit: int, seed: int) -> Batches:
    coding = Coding(lambda rows: rows, 1000)
    return Batches(build_store(pairs, coding, coding, folder, fingerprint="abc", max_tokens=99), limit, seed)


@settings(max_examples=25, deadline=None)
@given(pairs_of_ids, st.integers(13, 60), seeds, st.integers(0, 40))
def test_resuming_from_a_cursor_gives_the_remaining_batches(
    pairs: list[tuple[list[int], list[int]]], limit: int, seed: int, done: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        batches = store_batches(pairs, Path(folder) / "store", limit, seed)
        straight, _ = batches.take(Cursor(), done + 10)
        _, cursor = batches.take(Cursor(), done)
        resumed, _ = Batches(batches.store, limit, seed).take(Cursor(cursor.epoch, cursor.index), 10)
    assert all(same(left, right) for left, right in zip(straight[done:], resumed, strict=True))


def same(left: Batch, right: Batch) -> bool:
    names = ("source", "target_in", "target_out", "rows")
    return left.epoch == right.epoch and all(np.array_equal(getattr(left, n), getattr(right, n)) for n in names)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(st.integers(0, 70_000), max_size=9), min_size=1, max_size=3 * BLOCK), st.randoms())
def test_any_rows_come_back_from_the_store_in_any_order(rows: list[list[int]], random: object) -> None:
    asked = [random.randrange(len(rows)) for _ in range(20)]
    coding = Coding(lambda texts: texts, 70_001)
    with tempfile.TemporaryDirectory() as folder:
        pairs = zip(rows, rows[::-1], strict=True)
        store = build_store(pairs, coding, coding, Path(folder) / "store", fingerprint="abc", max_tokens=99)
        source, target = store.read("source", np.array(asked)), store.read("target", np.array(asked))
    assert source.values.tolist() == [value for i in asked for value in rows[i]]
    assert target.values.tolist() == [value for i in asked for value in rows[::-1][i]]
    assert source.counts.tolist() == [len(rows[i]) for i in asked]
