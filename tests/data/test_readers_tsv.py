"""Tab-separated pairs: headers, columns, widths."""

from __future__ import annotations

from pathlib import Path

import pytest

from clearhead.config import DataSettings
from clearhead.data.readers import Pairs, open_pairs
from clearhead.errors import DataError, UsageError


@pytest.fixture
def read(tmp_path: Path):
    def opened(text: str, name: str = "pairs.tsv", **settings: str) -> Pairs:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8", newline="")
        return open_pairs([path], DataSettings(**settings))

    return opened


def sides(pairs: Pairs) -> list[tuple[str, str]]:
    return [(pair.source, pair.target) for pair in pairs]


def test_two_columns_without_a_header(read) -> None:
    pairs = read("good\tgut\nyes\tja\n")
    assert sides(pairs) == [("good", "gut"), ("yes", "ja")]
    assert [pair.line for pair in pairs] == [1, 2]
    assert pairs.said[0].endswith("pairs.tsv: TSV, columns 1 → 2")


@pytest.mark.parametrize("header", ["en\tde", "source\ttarget", "src\ttrg", "en-US\tde_DE", "eng_Latn\tdeu_Latn"])
def test_a_header_is_recognised_and_not_a_pair(read, header: str) -> None:
    pairs = read(f"{header}\ngood\tgut\n")
    assert sides(pairs) == [("good", "gut")]
    assert "header" in pairs.said[0]


def test_a_header_names_the_languages(read) -> None:
    assert "columns 1 (en) → 2 (de)" in read("en\tde\ngood\tgut\n").said[0]


def test_languages_asked_for_choose_and_turn_the_columns(read) -> None:
    text = "id\ten\tfr\tde\n7\tgood\tbon\tgut\n"
    assert sides(read(text)) == [("good", "bon")]
    assert sides(read(text, target="de")) == [("good", "gut")]
    assert sides(read(text, source="de", target="en")) == [("gut", "good")]
    with pytest.raises(UsageError, match="no column pt; the columns are en, fr, de"):
        read(text, target="pt")


def test_named_and_numbered_columns_decide(read) -> None:
    text = "en\tde\tfr\ngood\tgut\tbon\n"
    assert sides(read(text, columns="fr,en")) == [("bon", "good")]
    assert sides(read(text, columns="3,2")) == [("bon", "gut")]
    assert sides(read("good\tgut\n", columns="2,1", source="de")) == [("gut", "good")]


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ("1", "does not name two columns"),
        ("1,1", "does not name two columns"),
        ("0,1", "counted from 1"),
        ("1,4", "column 4 asked for, 2 there"),
        ("en,dde", "no column 'dde'"),
    ],
)
def test_columns_that_are_not_there(read, columns: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        read("en\tde\ngood\tgut\n", columns=columns)


def test_sentence_columns_are_found_among_others(read) -> None:
    rows = [f"{i}\teng\tsentence {i}\thttps://x.org/{i}\tSatz {i}\tCC-BY\n" for i in range(6)]
    pairs = read("".join(rows))
    assert sides(pairs)[0] == ("sentence 0", "Satz 0")
    assert "columns 3 → 5; guessed from 6 columns" in pairs.said[0]


def test_columns_that_cannot_be_guessed_are_asked_for(read) -> None:
    with pytest.raises(UsageError, match="which of the 3 columns") as caught:
        read("1\t2\tword\n3\t4\tword two\n")
    assert caught.value.field == "data.columns"


def test_a_wrong_number_of_columns_is_an_error_with_its_place(read) -> None:
    pairs = read("a\tb\nc\td\ne\tf\tg\n")
    with pytest.raises(DataError, match="2 columns expected as on the first line, 3 found") as caught:
        list(pairs)
    assert caught.value.line == 3


def test_blank_lines_are_passed_over_and_counted_and_empty_sides_are_not(read) -> None:
    pairs = read("\n\nen\tde\n\na\tb\n\t\nc\t\n   \n")
    assert sides(pairs) == [("a", "b"), ("", ""), ("c", "")]
    assert [pair.line for pair in pairs] == [5, 6, 7]
    assert pairs.skipped == {"blank line": 4}


def test_nothing_is_quoted(read) -> None:
    assert sides(read('"a\tb"\n""\t"\n')) == [('"a', 'b"'), ('""', '"')]


QUOTED = '"en"\t"de"\n"a ""b"", c"\t"ja"\n"x"\tnein\n'


def test_quotes_of_a_spreadsheet_are_told_and_taken_off_where_that_is_asked_for(read) -> None:
    pairs = read(QUOTED)
    assert sides(pairs)[1] == ('"a ""b"", c"', '"ja"') and len(sides(pairs)) == 3
    assert pairs.said[0].endswith(
        "; cells of column 1 in quotation marks, read as text: --set data.quotes=csv takes them off"
    )
    pairs = read(QUOTED, quotes="csv")
    assert sides(pairs) == [('a "b", c', "ja"), ("x", "nein")]
    assert "columns 1 (en) → 2 (de)" in pairs.said[0] and "are taken off" in pairs.said[0]
    assert sides(read(QUOTED, quotes="csv", columns="de,en")) == [("ja", 'a "b", c'), ("nein", "x")]


@pytest.mark.parametrize(
    ("rows", "noticed"),
    [
        (['"a"', '"b"', '"c"'], True),
        (['"a"', '"b"'], False),
        (['"a"', '"b"', '"c"', "d"], False),
        (["a", 'say "b"', '"c", he said', '""', '"'], False),
        (["a"] * 150 + ['"5"" pipe"'], True),
    ],
    ids=["all", "two may be meant", "not all", "ordinary marks", "one doubled"],
)
def test_quotes_that_no_author_wrote_are_noticed(read, rows: list[str], noticed: bool) -> None:
    assert ("quotation marks" in read("".join(f"{row}\tx\n" for row in rows)).said[0]) is noticed


def test_a_break_inside_quotes_is_refused_with_its_place(read) -> None:
    with pytest.raises(DataError, match="2 columns expected as on the first line, 1 found") as caught:
        list(read('a\tb\nc\t"d\ne"\n', quotes="csv"))
    assert caught.value.line == 3 and "line break" in str(caught.value)


def test_the_files_name_tells_the_languages(read) -> None:
    pairs = read("gut\tgood\n", name="opus.de-en.tsv")
    assert (pairs.source, pairs.target) == ("de", "en")
    assert sides(read("gut\tgood\n", name="opus.de-en.tsv", source="en")) == [("good", "gut")]


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
@pytest.mark.parametrize("last", ["", "END"])
def test_mark_endings_and_last_newline_do_not_matter(read, ending: str, start: str, last: str) -> None:
    text = start + ending.join(["en\tde", "good\tgut", "yes\tja"]) + (ending if last else "")
    assert sides(read(text)) == [("good", "gut"), ("yes", "ja")]


def test_comma_separated_and_one_column_files_are_named(read) -> None:
    with pytest.raises(DataError, match="comma-separated"):
        read("good,gut\n", name="pairs.csv")
    with pytest.raises(DataError, match="2 columns expected, 1 found"):
        read("good gut\n")
    with pytest.raises(DataError, match="blank lines"):
        read("\n \n\n")
    with pytest.raises(DataError, match="holds no pairs"):
        read("en\tde\n")
