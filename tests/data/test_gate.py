"""The gate: what it lets through, what it says, and that it spares a clean corpus."""

from __future__ import annotations

import os
import tracemalloc
from itertools import pairwise
from pathlib import Path

import pytest

from clearhead.config import DataSettings
from clearhead.data import gate as gate_room
from clearhead.data.gate import Gate, blocks, sample_pairs, spread
from clearhead.data.readers import Pair, open_pairs

GOOD = [Pair(f"a good sentence number {i}", f"ein guter Satz Nummer {i}", "f", i) for i in range(60)]
BAD = [
    Pair("", "leer", "f", 100),
    Pair("one two three four", "one two three four", "f", 101),
    Pair("kurz", "lang " * 20, "f", 102),
    Pair("\x00\x01", "nichts zu sehen", "f", 103),
]
ODD = Pair("a good\x00 sentence", "ein\u2028guter Satz", "f", 104)


def test_drop_keeps_the_order_cleans_and_counts() -> None:
    pairs = [*GOOD[:30], *BAD, ODD, *GOOD[30:], *GOOD[:2]]
    gate = Gate.learn(pairs, DataSettings())
    kept = list(gate(pairs))
    assert kept == [*GOOD[:30], Pair("a good sentence", "ein guter Satz", "f", 104), *GOOD[30:], *GOOD[:2]]
    assert gate.dropped == {"empty side": 2, "copy": 1, "length ratio": 1}
    assert (gate.read, gate.kept, gate.cleaned) == (67, 63, 1)
    assert gate.said[0] == "2 of 67 pairs dropped: empty side"
    assert "1 pairs cleaned" in gate.said[-1]


def test_counts_are_those_of_the_latest_call() -> None:
    gate = Gate.learn(GOOD, DataSettings())
    list(gate([*GOOD, *BAD]))
    assert list(gate(GOOD)) == GOOD
    assert (gate.read, gate.dropped.total()) == (60, 0)
    assert gate.said == []


def test_warn_changes_nothing_and_counts() -> None:
    pairs = [*GOOD, *BAD, ODD]
    gate = Gate.learn(pairs, DataSettings(gate="warn"))
    assert list(gate(pairs)) == pairs
    assert gate.dropped.total() == 4
    assert "would be dropped" in gate.said[0]


def test_off_looks_at_nothing() -> None:
    gate = Gate.learn([*GOOD, *BAD], DataSettings(gate="off"))
    assert list(gate([*BAD, ODD])) == [*BAD, ODD]
    assert gate.dropped == {} and gate.said == []


def test_the_scripts_are_learned_from_the_whole_corpus() -> None:
    cyrillic = Pair("this is only English", "this was never translated", "f", 1)
    pairs = [Pair(f"sentence {i}", f"предложение номер {i}", "f", i) for i in range(99)]
    assert Gate.learn([*pairs, cyrillic], DataSettings()).reasons([cyrillic]) == {0: "wrong script"}
    half = [*pairs, *(cyrillic for _ in range(50))]
    assert Gate.learn(half, DataSettings()).reasons([cyrillic]) == {}


def test_one_pair_is_judged_as_among_many() -> None:
    gate = Gate.learn(GOOD, DataSettings(max_ratio=3.0))
    long = Pair("twelve chars", "mehr als dreimal so lange Sätze wie zuvor", "f", 1)
    assert gate.reasons([GOOD[0], long, BAD[3]]) == {1: "length ratio", 2: "empty side"}
    assert gate.reasons([long]) == {0: "length ratio"}


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_blocks_hold_everything_once(size: int) -> None:
    parts = list(blocks(GOOD, size))
    assert [pair for part in parts for pair in part] == GOOD
    assert all(len(part) <= size for part in parts)


def test_long_pairs_make_small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_room, "BLOCK_CHARACTERS", 1000)
    assert [len(part) for part in blocks([Pair("x" * 600, "y" * 600, "f", 1)] * 3, 4096)] == [1, 1, 1]


@pytest.mark.parametrize("size", [0, 5, 19, 20, 1000, 12_345])
def test_a_spread_sample_is_even_and_bounded(size: int) -> None:
    sample = spread(range(size), 10, lambda number: number)
    assert min(size, 10) <= len(sample) < 20 or size < 20
    steps = {after - before for before, after in pairwise(sample)}
    assert len(steps) <= 1
    assert size < 20 or sample[-1] >= size * 0.8


def test_the_sample_of_long_texts_is_small() -> None:
    tracemalloc.start()
    sample = sample_pairs(Pair("x" * 1_000_000 + str(i), "y", "f", i) for i in range(50))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(sample) == 50 and peak < 10_000_000


def test_a_clean_corpus_passes_whole() -> None:
    folder = Path(os.environ.get("CLEARHEAD_DATA", "none")) / "multi30k"
    if not folder.is_dir():
        pytest.skip("CLEARHEAD_DATA does not hold multi30k")
    pairs = open_pairs([folder / "train.en", folder / "train.de"], DataSettings())
    gate = Gate.learn(pairs, DataSettings())
    assert sum(1 for _ in gate(pairs)) == 28_998
    assert gate.dropped == {"length ratio": 2}  # two sentences whose translation is "@@"
