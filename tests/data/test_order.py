"""The order of an epoch, on cases one can check by hand and on real lengths."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from clearhead.data import order
from clearhead.data.order import BatchPlan, Cursor, Waste, cut
from clearhead.errors import DataError, UsageError


def lengths(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Lengths like those of short sentences and their translations."""
    generator = np.random.default_rng(seed)
    source = generator.integers(3, 30, n)
    target = np.maximum(1, source + generator.integers(-4, 5, n))
    return source.astype(np.uint16), target.astype(np.uint16)


def all_rows(plan: BatchPlan, epoch: int) -> list[list[int]]:
    return [plan.rows(Cursor(epoch, i)).tolist() for i in range(plan.n_batches(epoch))]


def test_batches_are_cut_where_rows_times_longest_reaches_the_limit() -> None:
    assert cut(np.array([2, 2, 2, 3, 3, 5, 6]), 6).tolist() == [3, 5, 6, 7]
    assert cut(np.array([3, 3, 2, 2, 2, 2]), 6).tolist() == [2, 5, 6]


def test_the_cursor_goes_through_the_epoch_and_on_to_the_next() -> None:
    assert Cursor(3, 0).advance(2) == Cursor(3, 1)
    assert Cursor(3, 1).advance(2) == Cursor(4, 0)


def test_lengths_count_their_end_mark() -> None:
    nine = np.full(10, 9, np.uint16)
    assert [len(rows) for rows in all_rows(BatchPlan(nine, nine, 50, seed=1), 0)] == [5, 5]
    assert sorted(len(rows) for rows in all_rows(BatchPlan(nine, nine, 49, seed=1), 0)) == [2, 4, 4]


def test_a_sentence_longer_than_a_batch_is_refused_with_the_way_out() -> None:
    source, target = np.array([3, 99], np.uint16), np.array([3, 3], np.uint16)
    assert len(BatchPlan(source, target, 100, seed=1).epoch(0)) == 2
    with pytest.raises(UsageError, match=r"99 tokens cannot hold the longest sentence: 100 with its end mark") as error:
        BatchPlan(source, target, 99, seed=1)
    assert "raise it to 100 or more, or set data.max_tokens to 98 or less" in str(error.value)


def test_the_longest_possible_length_does_not_overflow() -> None:
    longest, short = np.full(3, 65_535, np.uint16), np.full(3, 1, np.uint16)
    for sides in ((longest, short), (short, longest)):
        plan = BatchPlan(*sides, 65_536, seed=1)
        assert plan.n_batches(0) == 3
        assert plan.waste(0) == Waste(0.0, 0.0)


def test_no_pairs_and_unpaired_lengths_are_refused() -> None:
    with pytest.raises(DataError, match="0 sources and 0 targets"):
        BatchPlan(np.zeros(0, np.uint16), np.zeros(0, np.uint16), 100, seed=1)
    with pytest.raises(DataError, match="2 sources and 3 targets"):
        BatchPlan(np.ones(2, np.uint16), np.ones(3, np.uint16), 100, seed=1)


@pytest.mark.parametrize("index", [-1, 10_000])
def test_a_batch_that_is_not_there(index: int) -> None:
    plan = BatchPlan(*lengths(500), 400, seed=1)
    with pytest.raises(DataError, match=rf"no batch {index} in epoch 2, which has {plan.n_batches(2)}"):
        plan.rows(Cursor(2, index))


def test_companions_change_from_epoch_to_epoch_even_in_small_data() -> None:
    plan = BatchPlan(*lengths(2000), 4096, seed=1)
    first, second = ({frozenset(rows) for rows in all_rows(plan, epoch)} for epoch in (0, 1))
    assert len(first) >= 8
    assert not first & second


def test_equal_lengths_are_shuffled_anew_in_each_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order, "LATE", 0.0)
    plan = BatchPlan(np.full(100, 9, np.uint16), np.full(100, 9, np.uint16), 100, seed=1)
    first, second = ({frozenset(rows) for rows in all_rows(plan, epoch)} for epoch in (0, 1))
    assert not first & second


def test_batches_take_turns_anew_in_each_epoch() -> None:
    plan = BatchPlan(*lengths(2000), 1024, seed=1)
    assert plan.epoch(0).sequence.tolist() != plan.epoch(1).sequence.tolist()


def test_batches_come_in_no_order_of_length() -> None:
    source, target = lengths(5000)
    plan = BatchPlan(source, target, 1024, seed=1)
    means = [float(target[rows].mean()) for rows in all_rows(plan, 0)]
    assert abs(np.corrcoef(means, np.arange(len(means)))[0, 1]) < 0.3


def test_pools_keep_every_pair_and_cost_little(monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = lengths(20_000)
    whole = BatchPlan(source, target, 1024, seed=1).waste(0)
    monkeypatch.setattr(order, "POOL", 4096)
    plan = BatchPlan(source, target, 1024, seed=1)
    assert sorted(row for rows in all_rows(plan, 0) for row in rows) == list(range(20_000))
    assert plan.waste(0).target < whole.target + 0.05


def test_waste_is_the_share_of_padding() -> None:
    plan = BatchPlan(np.array([3, 1], np.uint16), np.array([7, 7], np.uint16), 100, seed=1)
    assert plan.waste(0).source == pytest.approx(2 / 8)
    assert plan.waste(0).target == 0


def test_little_padding_on_made_up_lengths() -> None:
    waste = BatchPlan(*lengths(29_000), 4096, seed=1).waste(0)
    assert max(waste.source, waste.target) < 0.05


@pytest.mark.skipif("CLEARHEAD_DATA" not in os.environ, reason="CLEARHEAD_DATA names no folder of real data")
def test_little_padding_on_real_lengths() -> None:
    folder = Path(os.environ["CLEARHEAD_DATA"]) / "multi30k"
    source, target = (
        np.array([len(line.split()) for line in (folder / name).read_text(encoding="utf-8").splitlines()], np.uint16)
        for name in ("train.en", "train.de")
    )
    waste = BatchPlan(source, target, 4096, seed=1).waste(0)
    assert max(waste.source, waste.target) < 0.05
