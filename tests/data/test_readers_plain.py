"""Two plain files: pairing is checked before anything is read, and no side ever slips."""

from __future__ import annotations

from pathlib import Path

import pytest

from clearhead.config import DataSettings
from clearhead.data.readers import Pairs, open_pairs
from clearhead.errors import DataError, UsageError


@pytest.fixture
def read(tmp_path: Path):
    def opened(first: bytes, second: bytes, names: tuple[str, str] = ("t.en", "t.de"), **settings: str) -> Pairs:
        paths = [tmp_path / name for name in names]
        for path, content in zip(paths, (first, second), strict=True):
            path.write_bytes(content)
        return open_pairs(paths, DataSettings(**settings))

    return opened


def sides(pairs: Pairs) -> list[tuple[str, str]]:
    return [(pair.source, pair.target) for pair in pairs]


def test_line_by_line_blank_lines_and_all(read) -> None:
    pairs = read(b"one\n\nthree", b"eins\nzwei\n\n")
    assert sides(pairs) == [("one", "eins"), ("", "zwei"), ("three", "")]
    assert "t.en (en) → t.de (de)" in pairs.said[0]


def test_languages_asked_for_turn_the_files(read) -> None:
    assert sides(read(b"one\n", b"eins\n", source="de")) == [("eins", "one")]
    assert sides(read(b"one\n", b"eins\n", ("en.txt", "news_de.txt"), target="en")) == [("eins", "one")]
    assert sides(read(b"one\n", b"eins\n", ("a.txt", "b.txt"), source="de", target="en")) == [("one", "eins")]


def test_tabs_do_not_make_two_sides_into_tables(read) -> None:
    assert sides(read(b"a\tb\n", b"c\td\n")) == [("a\tb", "c\td")]


def test_line_separators_do_not_slip_a_side(read) -> None:
    source, target = "a\u2028b\x0b\x0c\x85c\nd\n", "A\nD\n"
    assert sides(read(source.encode(), target.encode())) == [("a\u2028b\x0b\x0c\x85c", "A"), ("d", "D")]


LONG = [f"sentence number {i} with {'many ' * (i % 5)}words" for i in range(40)]


@pytest.mark.parametrize("lost", [0, 17, 39])
@pytest.mark.parametrize("side", [0, 1])
def test_unequal_counts_are_refused_with_both_and_the_place(read, lost: int, side: int) -> None:
    files = [list(LONG), list(LONG)]
    del files[side][lost]
    with pytest.raises(DataError) as caught:
        read(*("\n".join(lines).encode() + b"\n" for lines in files))
    message = str(caught.value)
    assert f"{len(files[0])} lines" in message and f"has {len(files[1])}" in message
    slip = int(message.split("slip at line ")[1].split(":")[0])
    assert abs(slip - (lost + 1)) <= 1
    assert "“" in message


@pytest.mark.parametrize("extra", [1, 2, 5])
def test_one_line_more_is_never_passed_over(read, extra: int) -> None:
    with pytest.raises(DataError, match=f"{40 + extra} lines, but .* has 40"):
        read("\n".join(LONG + ["x"] * extra).encode(), "\n".join(LONG).encode())


def test_a_file_that_changes_after_it_was_counted_is_refused(read, tmp_path: Path) -> None:
    pairs = read(b"a\nb\n", b"c\nd\n")
    (tmp_path / "t.de").write_bytes(b"c\n")
    with pytest.raises(DataError, match=r"2 lines, but .* has 1"):
        list(pairs)


def test_a_skipped_line_takes_its_partner_along(read) -> None:
    pairs = read(b"one\ntw\xffo\nthree\n", b"eins\nzwei\ndr\xffei\n", bad_utf8="skip")
    assert sides(pairs) == [("one", "eins")]
    assert pairs.skipped["line that is not UTF-8, skipped"] == 2


def test_the_end_of_the_longer_file_is_left_out_where_that_is_asked_for(read) -> None:
    longer, shorter = "\n".join([*LONG, "x", "y"]).encode(), "\n".join(LONG).encode()
    for pairs in (read(longer, shorter, drop_unpaired=True), read(shorter, longer, drop_unpaired=True)):
        assert sides(pairs) == list(zip(LONG, LONG, strict=True))
        assert pairs.passed_over == ["2 × line without a partner, passed over while reading"]
        assert "after line 40 of t." in pairs.said[0]
        assert pairs.said[0].endswith("up to line 42, has no partner and is left out")
    assert sides(read(shorter, shorter, drop_unpaired=True)) == sides(read(shorter, shorter))
    assert read(shorter, shorter, drop_unpaired=True).said == read(shorter, shorter).said


def test_where_the_pairing_slips_is_told_though_the_end_is_left_out(read) -> None:
    pairs = read("\n".join(LONG).encode(), "\n".join(LONG[:17] + LONG[18:]).encode(), drop_unpaired=True)
    assert len(sides(pairs)) == 39 and pairs.skipped == {"line without a partner": 1}
    assert "after line 39 of t.en, up to line 40" in pairs.said[0]
    assert "seems to slip at line 18: “sentence number 17" in pairs.said[0]


def test_blank_files_single_files_and_columns_are_refused(read, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="blank lines") as caught:
        read(b"one\n", b"\n \n")
    assert str(caught.value.file).endswith("t.de")
    with pytest.raises(DataError, match="one side only"):
        open_pairs([tmp_path / "t.en"], DataSettings())
    with pytest.raises(UsageError, match="no columns"):
        read(b"one\n", b"eins\n", columns="1,2")
