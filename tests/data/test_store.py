"""The store: what goes in comes out; what is wrong is refused; what is interrupted leaves nothing."""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from clearhead.data import store_builder
from clearhead.data.store import Store, open_store
from clearhead.data.store_builder import Coding, build_store
from clearhead.errors import DataError, DiskError

FILES = ["source.tokens", "source.counts", "target.tokens", "target.counts"]


def encode(texts: list[str]) -> list[list[int]]:
    """A fake tokenizer: one id per character."""
    return [[ord(letter) for letter in text] for text in texts]


def sentences(n: int) -> list[tuple[str, str]]:
    return [("s" * (i % 7) + chr(97 + i % 26), "t" * (i % 5) + chr(65 + i % 26)) for i in range(n)]


def build(folder: Path, pairs: object = None, n_values: int = 256, max_tokens: int = 50, **options: object) -> Store:
    coding = Coding(encode, n_values)
    pairs = sentences(100) if pairs is None else pairs
    return build_store(pairs, coding, coding, folder, fingerprint="abc", max_tokens=max_tokens, **options)


def same_rows(store: Store, pairs: list[tuple[str, str]]) -> bool:
    return len(store) == len(pairs) and all(
        store.source(i).tolist() == encode([source])[0] and store.target(i).tolist() == encode([target])[0]
        for i, (source, target) in enumerate(pairs)
    )


def test_rows_come_back_as_they_went_in(tmp_path: Path) -> None:
    build(tmp_path / "store")
    store = open_store(tmp_path / "store", "abc")
    assert same_rows(store, sentences(100))
    assert store.source_lengths.tolist() == [len(source) for source, _ in sentences(100)]
    assert store.n_source_tokens == sum(len(source) for source, _ in sentences(100))
    assert store.n_target_tokens == sum(len(target) for _, target in sentences(100))


def test_many_rows_are_read_at_once_in_any_order(tmp_path: Path) -> None:
    store = build(tmp_path / "store")
    rows = np.array([99, 0, 17, 17, 16, 15, 64])
    values, counts = store.read("target", rows)
    assert counts.tolist() == [len(sentences(100)[i][1]) for i in rows]
    assert values.tolist() == [id for i in rows for id in encode([sentences(100)[i][1]])[0]]


def test_chunks_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = build(tmp_path / "whole")
    monkeypatch.setattr(store_builder, "CHUNK", 7)
    seen: list[int] = []
    too_long = ("a" * 51, "b")
    pieces = build(tmp_path / "pieces", [*sentences(100), too_long], progress=seen.append)
    assert pieces.content_hash == whole.content_hash
    assert seen == [*range(7, 101, 7), 101]


def test_an_empty_side_is_an_empty_row(tmp_path: Path) -> None:
    pairs = [("", "a"), ("b", ""), ("", "")]
    assert same_rows(build(tmp_path / "store", pairs), pairs)


def test_long_pairs_are_left_out_and_counted(tmp_path: Path) -> None:
    pairs = [("a" * 3, "b"), ("a", "b" * 4), ("c", "d" * 3), ("e" * 4, "f")]
    store = build(tmp_path / "store", pairs, max_tokens=3)
    assert store.dropped == 2
    assert same_rows(store, [pairs[0], pairs[2]])


def test_nothing_left_is_an_error_with_the_numbers(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no pairs to store: 2 read, 2 with more than 3 tokens"):
        build(tmp_path / "store", [("aaaa", "b"), ("a", "bbbb")], max_tokens=3)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("n_values", "width"), [(65_536, 2), (65_537, 4)])
def test_values_take_two_bytes_where_they_fit(tmp_path: Path, n_values: int, width: int) -> None:
    last = chr(n_values - 1)
    store = build(tmp_path / "store", [(last, last)], n_values=n_values)
    assert (tmp_path / "store" / "source.tokens").stat().st_size == width
    assert store.source(0).tolist() == [n_values - 1]


def test_a_value_outside_the_vocabulary_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"value 97 is not within 0 … 96"):
        build(tmp_path / "store", [("a", "b")], n_values=97)
    assert list(tmp_path.iterdir()) == []


def test_lengths_in_tokens_may_stand_beside_the_values(tmp_path: Path) -> None:
    words = Coding(lambda texts: [[len(word) for word in text.split()] for text in texts], 100, count_letters)
    pairs = [("a bb ccc", "dddd"), ("aa", "b b b b b b"), ("long" * 20, "x"), ("x", "long" * 20)]
    build_store(pairs, words, words, tmp_path / "store", fingerprint="abc", max_tokens=6)
    store = open_store(tmp_path / "store", "abc")
    assert store.source_lengths.tolist() == [6, 2]
    assert store.target_lengths.tolist() == [4, 6]
    assert store.source(0).tolist() == [1, 2, 3]
    assert store.target(1).tolist() == [1] * 6
    assert store.dropped == 2


def count_letters(rows: list[list[int]]) -> list[int]:
    return [sum(row) for row in rows]


def test_the_hash_is_of_the_data_alone(tmp_path: Path) -> None:
    pairs = sentences(40)
    first, again = build(tmp_path / "a", pairs), build(tmp_path / "b", pairs)
    coding = Coding(encode, 256)
    other_print = build_store(pairs, coding, coding, tmp_path / "c", fingerprint="xyz", max_tokens=50)
    swapped = build(tmp_path / "d", [pairs[1], pairs[0], *pairs[2:]])
    assert first.content_hash == again.content_hash == other_print.content_hash
    assert swapped.content_hash != first.content_hash


def test_a_row_that_is_not_there(tmp_path: Path) -> None:
    store = build(tmp_path / "store")
    for index in (-1, 100):
        with pytest.raises(IndexError, match=f"row {index} of a store of 100 pairs"):
            store.source(index)


def test_another_fingerprint_is_refused_naming_both(tmp_path: Path) -> None:
    build(tmp_path / "store")
    with pytest.raises(DataError, match=r"fingerprint abc, wanted xyz"):
        open_store(tmp_path / "store", "xyz")


def test_no_store(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(DataError, match="no store here"):
            open_store(folder, "abc")


@pytest.mark.parametrize("name", FILES)
def test_damaged_files_are_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "store" / name
    build(path.parent)
    data = path.read_bytes()
    for bad, message in [
        (data[:-1], f"has {len(data) - 1} bytes"),
        (data + b"x", f"has {len(data) + 1} bytes"),
        (bytes([data[0] ^ 1]) + data[1:], "is damaged: SHA-256"),
        (None, "is missing"),
    ]:
        path.unlink() if bad is None else path.write_bytes(bad)
        with pytest.raises(DataError, match=message) as error:
            open_store(path.parent, "abc")
        assert str(path) in str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (None, "is damaged"),
        ({"format": 2}, "has format 2, this version reads format 1"),
        ({"pairs": "100"}, "pairs: is damaged"),
        ({"colour": "red"}, "colour: is damaged"),
        ({"pairs": 99}, "has 100 rows of sources for 99 pairs"),
    ],
)
def test_damaged_headers_are_refused(tmp_path: Path, change: dict[str, object] | None, message: str) -> None:
    path = tmp_path / "store" / "store.json"
    build(path.parent)
    text = path.read_text()
    path.write_text(text[:40] if change is None else json.dumps({**json.loads(text), **change}))
    with pytest.raises(DataError, match=message):
        open_store(path.parent, "abc")


@pytest.mark.parametrize("text", ["[]", "7", "", "\udc80"])
def test_headers_of_another_kind_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "store.json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(DataError, match="is damaged"):
        open_store(tmp_path, "abc")


def test_a_file_cut_short_in_use_is_an_error_not_a_crash(tmp_path: Path) -> None:
    store = build(tmp_path / "store")
    os.truncate(tmp_path / "store" / "source.tokens", 10)
    with pytest.raises(DataError, match="cut short while it was in use"):
        store.source(99)


def broken(pairs: list[tuple[str, str]], error: BaseException) -> Iterator[tuple[str, str]]:
    yield from pairs
    raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), DataError("bad line", file="pairs.tsv", line=3)])
def test_an_interrupted_build_leaves_nothing(tmp_path: Path, error: BaseException) -> None:
    with pytest.raises(type(error)):
        build(tmp_path / "store", broken(sentences(9000), error))
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_rebuild_leaves_the_old_store(tmp_path: Path) -> None:
    build(tmp_path / "store", sentences(10))
    with pytest.raises(KeyboardInterrupt):
        build(tmp_path / "store", broken(sentences(20), KeyboardInterrupt()))
    assert same_rows(open_store(tmp_path / "store", "abc"), sentences(10))


KILLED = """
import os, signal, sys
from pathlib import Path
from clearhead.data.store_builder import Coding, build_store

def pairs():
    yield from [("a", "b")] * 9000
    os.kill(os.getpid(), signal.SIGKILL)

coding = Coding(lambda texts: [[7] for _ in texts], 8)
build_store(pairs(), coding, coding, Path(sys.argv[1]), fingerprint="abc", max_tokens=9)
"""


def test_what_a_killed_build_left_behind_is_no_store_and_in_nobodys_way(tmp_path: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "store")], check=False)
    partial = tmp_path / "store.partial"
    assert killed.returncode == -signal.SIGKILL
    assert partial.is_dir()
    with pytest.raises(DataError, match="no store here"):
        open_store(tmp_path / "store", "abc")
    assert same_rows(build(tmp_path / "store"), sentences(100))
    assert not partial.exists()


def test_an_older_store_is_replaced_and_anything_else_is_kept(tmp_path: Path) -> None:
    build(tmp_path / "store", sentences(10))
    assert len(build(tmp_path / "store", sentences(20))) == 20
    (tmp_path / "store" / "store.json").unlink()
    assert len(build(tmp_path / "store", sentences(30))) == 30
    assert [path.name for path in tmp_path.iterdir()] == ["store"]
    letters = tmp_path / "letters"
    letters.mkdir()
    (letters / "dear.txt").write_text("Dear …")
    with pytest.raises(DataError, match="is there already and is not a store"):
        build(letters)
    assert (letters / "dear.txt").read_text() == "Dear …"


def test_a_full_disk_is_a_disk_error_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync = os.fsync

    def full(descriptor: int) -> None:
        """The names still fit on the disk, the bytes do not."""
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DiskError, match=r"source.tokens: No space left on device") as error:
        build(tmp_path / "store")
    assert error.value.exit_code == 4
    assert list(tmp_path.iterdir()) == []


def test_a_readers_own_trouble_is_not_called_the_stores(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="the network drive went away"):
        build(tmp_path / "store", broken([], OSError("the network drive went away")))
