"""JSON lines: where the sides are, and what is no text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clearhead.config import DataSettings
from clearhead.data.readers import Pairs, open_pairs
from clearhead.errors import DataError, UsageError


@pytest.fixture
def read(tmp_path: Path):
    def opened(*lines: object, **settings: str) -> Pairs:
        path = tmp_path / "pairs.jsonl"
        texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
        path.write_text("\n".join(texts), encoding="utf-8")
        return open_pairs([path], DataSettings(**settings))

    return opened


def sides(pairs: Pairs) -> list[tuple[str, str]]:
    return [(pair.source, pair.target) for pair in pairs]


@pytest.mark.parametrize(
    "record",
    [
        {"source": "good", "target": "gut"},
        {"id": 3, "tgt": "gut", "src": "good"},
        {"en": "good", "de": "gut"},
        {"translation": {"en": "good", "de": "gut"}, "id": "x"},
        {"english": "good", "german": "gut", "score": 0.5},
        ["good", "gut"],
    ],
)
def test_the_sides_are_found(read, record: object) -> None:
    pairs = read(record, "", record)
    assert sides(pairs) == [("good", "gut")] * 2
    assert [pair.line for pair in pairs] == [1, 3]
    assert pairs.skipped == {"blank line": 1}


def test_fields_and_languages_asked_for(read) -> None:
    record = {"translation": {"en": "good", "de": "gut"}, "note": "bon", "a.b": "bien"}
    assert sides(read(record, source="de", target="en")) == [("gut", "good")]
    assert sides(read(record, columns="note,translation.de")) == [("bon", "gut")]
    assert sides(read(record, columns="a.b,note")) == [("bien", "bon")]
    assert sides(read(["x", "good", "gut"], columns="3,2")) == [("gut", "good")]
    assert "fields translation.en (en) → translation.de (de)" in read(record).said[0]


def test_fields_have_names_and_lists_have_numbers(read) -> None:
    with pytest.raises(UsageError, match="the lines are objects: give fields by name"):
        read({"en": "good", "de": "gut"}, columns="1,2")
    with pytest.raises(UsageError, match="the lines are lists: give columns by number"):
        read(["good", "gut"], columns="en,de")


def test_a_side_of_the_first_line_that_is_no_text_is_named(read) -> None:
    with pytest.raises(DataError, match="de: is null, not a text"):
        read({"en": "good", "de": None})
    assert sides(read({"en": None, "source": "good", "target": "gut"})) == [("good", "gut")]


def test_fields_that_cannot_be_guessed_are_asked_for(read) -> None:
    with pytest.raises(UsageError, match="There are: a, b, c") as caught:
        read({"a": "x", "b": "y", "c": "z"})
    assert caught.value.field == "data.columns"


@pytest.mark.parametrize(
    ("line", "says", "field"),
    [
        ('{"en": "a", "de": null}', "is null, not a text", "de"),
        ('{"en": 5, "de": "b"}', "is a number, not a text", "en"),
        ('{"en": "a"}', "is missing; the fields are en", "de"),
        ('["a", "b"]', "an object expected, a list found", None),
        ('"ab"', "an object expected, a text found", None),
        ('{"en": "a", ', "is not JSON", None),
        ('{"en": "a", "de": "b\\ud800"}', r"character 2 is half of a surrogate pair \(U\+D800\)", "de"),
        ("[" * 100_000, "is not usable JSON", None),
        ('{"en": ' + "9" * 5000 + ', "de": "x"}', "is not usable JSON", None),
    ],
)
def test_every_bad_line_is_named_with_line_and_field(read, line: str, says: str, field: str | None) -> None:
    pairs = read({"en": "a", "de": "b"}, line)
    with pytest.raises(DataError, match=says) as caught:
        list(pairs)
    assert caught.value.line == 2
    assert caught.value.field == field


def test_lists_must_keep_their_length(read) -> None:
    with pytest.raises(DataError, match="a list of 2 expected, 3 found") as caught:
        list(read(["a", "b"], ["a", "b", "c"]))
    assert caught.value.line == 2
    with pytest.raises(DataError, match="a list of 2 texts expected, 3 found"):
        read(["a", "b", "c"])


def test_whole_surrogate_pairs_are_characters(read) -> None:
    assert sides(read('{"en": "\\ud83d\\ude00", "de": "\\n"}')) == [("\U0001f600", "\n")]


def test_a_json_list_over_several_lines_gets_its_own_hint(tmp_path: Path) -> None:
    path = tmp_path / "pairs.json"
    path.write_text('[\n {"en": "a"}\n]\n')
    with pytest.raises(DataError, match="is not JSON") as caught:
        open_pairs([path], DataSettings())
    assert "jq" in str(caught.value)
