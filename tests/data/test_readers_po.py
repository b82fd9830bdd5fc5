"""Gettext catalogues as pairs."""

from __future__ import annotations

from pathlib import Path

import pytest

from clearhead.config import DataSettings
from clearhead.data.readers import Pairs, open_pairs
from clearhead.errors import DataError

HEADER = 'msgid ""\nmsgstr ""\n"Project: x\\n"\n"Language: de\\n"\n\n'


@pytest.fixture
def read(tmp_path: Path):
    def opened(text: str, header: str = HEADER, **settings: str) -> Pairs:
        path = tmp_path / "de.po"
        path.write_text(header + text, encoding="utf-8")
        return open_pairs([path], DataSettings(**settings))

    return opened


def sides(pairs: Pairs) -> list[tuple[str, str]]:
    return [(pair.source, pair.target) for pair in pairs]


def test_entries_become_pairs_with_their_line(read) -> None:
    pairs = read('#: a.c:1\nmsgctxt "menu"\nmsgid "Open"\nmsgstr "Öffnen"\n')
    assert list(pairs) == [("Open", "Öffnen", pairs.guesses[0].file, 8)]
    assert pairs.said[0].endswith("de.po: PO, msgid → msgstr (de)")


def test_texts_over_several_lines_and_escapes(read) -> None:
    text = 'msgid ""\n"one\\n"\n"\\ttwo \\"q\\" \\\\ \\101 \\x42"\nmsgstr "eins"\n'
    assert sides(read(text)) == [('one\n\ttwo "q" \\ A B', "eins")]


@pytest.mark.parametrize(
    ("forms", "expected"),
    [
        (["eine"], [("files", "eine")]),
        (["eine", "viele"], [("file", "eine"), ("files", "viele")]),
        (["a", "b", "c"], [("file", "a"), ("files", "b"), ("files", "c")]),
    ],
)
def test_plurals_give_a_pair_per_form(read, forms: list[str], expected: list[tuple[str, str]]) -> None:
    lines = "".join(f'msgstr[{i}] "{form}"\n' for i, form in enumerate(forms))
    assert sides(read(f'msgid "file"\nmsgid_plural "files"\n{lines}')) == expected


def test_fuzzy_and_empty_entries_are_counted_and_obsolete_ones_are_comments(read) -> None:
    pairs = read(
        '#, c-format, fuzzy\nmsgid "a"\nmsgstr "b"\n\nmsgid "c"\nmsgstr ""\n\n'
        'msgid "d"\nmsgstr "D"\n# a comment begins an entry\nmsgid "e"\nmsgstr "E"\n#~ msgid "o"\n#~ msgstr "p"\n'
    )
    assert sides(pairs) == [("d", "D"), ("e", "E")]
    assert pairs.skipped == {"fuzzy entry": 1, "entry without a translation": 1}


def test_the_catalogues_language_decides_the_direction(read) -> None:
    pairs = read('msgid "good"\nmsgstr "gut"\n', source="de", target="en")
    assert sides(pairs) == [("gut", "good")]
    assert "msgstr (de) → msgid (en)" in pairs.said[0]


def test_what_is_not_po_is_named_with_its_line(read) -> None:
    with pytest.raises(DataError, match="is not PO: 'nonsense'") as caught:
        list(read('msgid "a"\nmsgstr "b"\nnonsense\n'))
    assert caught.value.line == 8
    with pytest.raises(DataError, match="msgstr without a msgid"):
        read('msgstr "b"\n', header="")
    with pytest.raises(DataError, match="holds no pairs"):
        read('msgid "a"\nmsgstr ""\n')


def test_a_damaged_line_takes_only_its_entry(tmp_path: Path) -> None:
    path = tmp_path / "de.po"
    path.write_bytes(b'msgid "a"\nmsgstr "A and"\n"\xff"\n\nmsgid "b"\nmsgstr "B"\n')
    assert sides(open_pairs([path], DataSettings(bad_utf8="skip"))) == [("b", "B")]
    with pytest.raises(DataError, match="not UTF-8"):
        open_pairs([path], DataSettings())
