"""PO documents: only the msgstr of filled entries changes."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from clearhead.config import DataSettings
from clearhead.data.documents import Document, open_document, translate_document
from clearhead.data.readers import open_pairs

CATALOGUE = """# A translator's note
# another
msgid ""
msgstr ""
"Project-Id-Version: x\\n"
"Language: pl\\n"
"Plural-Forms: nplurals=3; plural=(n==1 ? 0 : n%10>=2 && n%10<=4 ? 1 : 2);\\n"

#. for the menu
#: src/a.c:12
msgctxt   "menu"
msgid "Open"
msgstr ""

#: src/a.c:13
#, c-format
msgid "%d file in \\"%s\\""
msgid_plural "%d files in \\"%s\\""
msgstr[0] ""
msgstr[1] ""
msgstr[2] ""

#, fuzzy
#| msgid "Old"
msgid "Doubtful"
msgstr "Wątpliwe"

msgid ""
"one\\n"
"  two\\ttabs\\n"
msgstr ""

msgid "Done"
msgstr   "Gotowe"

#~ msgid "Gone"
#~ msgstr "Nie ma"
"""


@pytest.fixture
def catalogue(tmp_path: Path) -> Path:
    path = tmp_path / "pl.po"
    path.write_text(CATALOGUE, encoding="utf-8")
    return path


def upper(document: Document, out: Path) -> str:
    document.write(translate_document(document, lambda texts: [text.upper() for text in texts]), out)
    return out.read_bytes().decode()


def changes(before: str, after: str) -> list[str]:
    lines = difflib.unified_diff(before.split("\n"), after.split("\n"), n=0, lineterm="")
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]


def test_empty_entries_are_filled_and_nothing_else_moves(catalogue: Path, tmp_path: Path) -> None:
    written = upper(open_document(catalogue), tmp_path / "out.po")
    assert changes(CATALOGUE, written) == [
        '-msgstr ""',
        '+msgstr "OPEN"',
        '-msgstr[0] ""',
        '-msgstr[1] ""',
        '-msgstr[2] ""',
        '+msgstr[0] "%d FILE IN \\"%s\\""',
        '+msgstr[1] "%d FILES IN \\"%s\\""',
        '+msgstr[2] "%d FILES IN \\"%s\\""',
        '+"ONE\\n"',
        '+"  TWO\\tTABS\\n"',
    ]


def test_it_opens_again_with_its_pairs(catalogue: Path, tmp_path: Path) -> None:
    upper(open_document(catalogue), tmp_path / "out.po")
    pairs = [(pair.source, pair.target) for pair in open_pairs([tmp_path / "out.po"], DataSettings())]
    assert ("Open", "OPEN") in pairs
    assert ("one\n  two\ttabs\n", "ONE\n  TWO\tTABS\n") in pairs
    assert pairs.count(('%d files in "%s"', '%d FILES IN "%s"')) == 2


def test_nothing_to_fill_means_the_same_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a.po"
    content = b'\xef\xbb\xbfmsgid ""\r\nmsgstr ""\r\n\r\nmsgid "a"\r\nmsgstr "b"   \r\n\r\n\r\n'
    path.write_bytes(content)
    document = open_document(path)
    assert document.segments == []
    document.write([], tmp_path / "b.po")
    assert (tmp_path / "b.po").read_bytes() == content


def test_line_endings_are_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.po"
    path.write_bytes(b'msgid "a\\n"\r\n"b"\r\nmsgstr ""\r\n')
    assert upper(open_document(path), path) == 'msgid "a\\n"\r\n"b"\r\nmsgstr ""\r\n"A\\n"\r\n"B"\r\n'


def test_overwriting_and_marking(catalogue: Path, tmp_path: Path) -> None:
    marked = upper(open_document(catalogue, mark=True), tmp_path / "out.po")
    assert '#: src/a.c:12\n#, fuzzy\nmsgctxt   "menu"' in marked
    assert "#, fuzzy, c-format\n" in marked
    assert 'msgstr   "Gotowe"' in marked
    replaced = upper(open_document(catalogue, overwrite=True), tmp_path / "out.po")
    assert 'msgid "Done"\nmsgstr "DONE"' in replaced
    assert '\n#| msgid "Old"\nmsgid "Doubtful"\nmsgstr "DOUBTFUL"' in replaced
    assert "fuzzy" not in replaced


@pytest.mark.parametrize(
    ("header", "target", "forms"),
    [
        ("Plural-Forms: nplurals=1; plural=0;", "pl", 1),
        ("Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;", "pl", 3),
        ("Plural-Forms: nplurals=900000;", None, 2),
        ("Language: ja", None, 1),
        ("Language: no-such-language", None, 2),
    ],
)
def test_the_number_of_plural_forms(tmp_path: Path, header: str, target: str | None, forms: int) -> None:
    path = tmp_path / "a.pot"
    path.write_text(f'msgid ""\nmsgstr "{header}\\n"\n\nmsgid "a"\nmsgid_plural "many"\nmsgstr[0] ""\nmsgstr[1] ""\n')
    written = upper(open_document(path, target=target), tmp_path / "out.po")
    expected = ["MANY"] if forms == 1 else ["A"] + ["MANY"] * (forms - 1)
    filled = [line.split(" ")[1] for line in written.split("\n") if line.startswith("msgstr[")]
    assert filled == [f'"{text}"' for text in expected]


def test_forms_that_were_there_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.po"
    path.write_text('msgid "a"\nmsgid_plural "many"\nmsgstr[0] "jeden"\nmsgstr[1] ""\n')
    assert 'msgstr[0] "jeden"\nmsgstr[1] "MANY"' in upper(open_document(path), tmp_path / "b.po")
