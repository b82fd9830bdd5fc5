"""Lines: what ends one, what is not text, and where the bad byte is."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pytest

from clearhead.data.readers import lines as lines_room
from clearhead.data.readers.lines import count_lines, read_lines
from clearhead.data.readers.opening import read_head
from clearhead.errors import DataError


@pytest.fixture
def write(tmp_path: Path):
    def put(content: bytes, name: str = "text") -> Path:
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return put


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"one\ntwo\n", ["one", "two"]),
        (b"one\ntwo", ["one", "two"]),
        (b"one\r\ntwo\r\n", ["one", "two"]),
        (b"one\r\r\ntwo", ["one\r", "two"]),
        (b"\xef\xbb\xbfone\n", ["one"]),
        (b"\n\n", ["", ""]),
        (b"a\x0bb\x0cc\x85\n".replace(b"\x85", "\x85".encode()), ["a\x0bb\x0cc\x85"]),
        ("a\u2028b\u2029c\rd\n".encode(), ["a\u2028b\u2029c\rd"]),
        (b"nul\x00here\x1b\n", ["nul\x00here\x1b"]),
    ],
)
def test_only_a_newline_ends_a_line(write, content: bytes, lines: list[str]) -> None:
    path = write(content)
    assert list(read_lines(path)) == lines
    assert count_lines(path) == len(lines)
    assert list(read_lines(write(gzip.compress(content), "packed"))) == lines


@pytest.mark.parametrize("block", [1, 2, 3, 7])
def test_the_size_of_blocks_does_not_matter(write, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    path = write("\ufeffgrün\r\n\nлес\n\U0001f600".encode())
    monkeypatch.setattr(lines_room, "BLOCK", block)
    assert list(read_lines(path)) == ["grün", "", "лес", "\U0001f600"]
    assert count_lines(path) == 4


def test_a_bad_byte_is_named_with_line_and_offset(write) -> None:
    path = write(b"\xef\xbb\xbfgood\r\nba\xe4d\n")
    with pytest.raises(DataError) as caught:
        list(read_lines(path))
    assert caught.value.line == 2
    assert "0xE4 at offset 11" in caught.value.message
    assert path.read_bytes()[11] == 0xE4
    assert "iconv" in str(caught.value)


def test_the_offset_counts_over_blocks(write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines_room, "BLOCK", 5)
    path = write(b"one\ntwo\nthree\nfo\xffur\n")
    with pytest.raises(DataError, match="0xFF at offset 16") as caught:
        list(read_lines(path))
    assert caught.value.line == 4


def test_bad_bytes_are_replaced_or_skipped_as_asked(write) -> None:
    path = write(b"a\nb\xffc\nd\n")
    counts: Counter[str] = Counter()
    assert list(read_lines(path, "replace", counts)) == ["a", "b\ufffdc", "d"]
    assert list(read_lines(path, "skip", counts)) == ["a", None, "d"]
    assert counts == {"line that is not UTF-8, repaired": 1, "line that is not UTF-8, skipped": 1}


def test_surrogates_in_bytes_are_not_utf8(write) -> None:
    with pytest.raises(DataError, match="0xED at offset 1"):
        list(read_lines(write(b"a\xed\xa0\x80\n")))


def test_an_endless_line_is_refused(write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines_room, "BLOCK", 10)
    monkeypatch.setattr(lines_room, "LONGEST", 100)
    assert len(list(read_lines(write(b"x" * 90 + b"\n" + b"y" * 90)))) == 2
    with pytest.raises(DataError, match="a line is longer than"):
        list(read_lines(write(b"x" * 150)))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git-LFS pointer"),
        (b"\n <!DOCTYPE html>\n<html>", "web page"),
        (b"<HTML><body>", "web page"),
        (b"PK\x03\x04rest", "zip archive or an office document"),
        (b"%PDF-1.7", "PDF"),
        (b"BZh9", "bzip2"),
        (bytes(range(256)) * 4, "binary"),
        (b"\x93NUMPY" + bytes(100), "binary"),
    ],
)
def test_what_is_no_text_is_named(write, content: bytes, says: str) -> None:
    with pytest.raises(DataError, match=says):
        read_head(write(content))


def test_a_text_with_some_odd_bytes_is_still_text(write) -> None:
    assert read_head(write(b"a sentence with \x00 and \x07 in it\n"))
    assert read_head(write(b"\x1b[1m\x07 \x1b\x01" * 20))


def test_missing_files_folders_and_damage_are_named(write, tmp_path: Path) -> None:
    write(b"a\tb\n", "pairs.tsv")
    with pytest.raises(DataError, match="no such file") as caught:
        list(read_lines(tmp_path / "pair.tsv"))
    assert "did you mean" in str(caught.value) and "pairs.tsv" in str(caught.value)
    with pytest.raises(DataError, match="is a folder"):
        list(read_lines(tmp_path))
    with pytest.raises(DataError, match="damaged gzip"):
        list(read_lines(write(gzip.compress(b"text " * 1000)[:-9])))
