"""The one entry: formats, several files, and what is refused before any work."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from clearhead.config import DataSettings
from clearhead.data.readers import FORMATS, Pairs, open_pairs
from clearhead.data.readers.languages import is_code, same_language
from clearhead.errors import DataError, UsageError


def put(folder: Path, **files: str) -> list[Path]:
    paths = []
    for name, text in files.items():
        paths.append(folder / name.replace("_", "."))
        paths[-1].write_text(text, encoding="utf-8")
    return paths


def sides(pairs: Pairs) -> list[tuple[str, str]]:
    return [(pair.source, pair.target) for pair in pairs]


@pytest.mark.parametrize(
    ("text", "format"),
    [
        ("good\tgut\n", "TSV"),
        ('{"en": "good", "de": "gut"}\n', "JSON lines"),
        ('["good", "gut"]\n', "JSON lines"),
        ('msgid "good"\nmsgstr "gut"\n', "PO"),
        (
            '<tmx><body><tu><tuv lang="en"><seg>good</seg></tuv><tuv lang="de"><seg>gut</seg></tuv></tu></body></tmx>',
            "TMX",
        ),
        (
            '<xliff version="1.2"><file source-language="en"><body><trans-unit><source>good</source>'
            "<target>gut</target></trans-unit></body></file></xliff>",
            "XLIFF 1.2",
        ),
    ],
)
def test_the_format_is_known_by_its_content(tmp_path: Path, text: str, format: str) -> None:
    path = tmp_path / "data"
    path.write_bytes(gzip.compress(text.encode()))
    pairs = open_pairs([path], DataSettings())
    assert sides(pairs) == [("good", "gut")]
    assert f": {format}" in pairs.said[0]


def test_several_files_follow_one_another(tmp_path: Path) -> None:
    paths = put(tmp_path, a_tsv="en\tde\na\tA\n", b_jsonl='{"de": "B", "en": "b"}\n', c_po='msgid "c"\nmsgstr "C"\n')
    pairs = open_pairs(paths, DataSettings(source="en", target="de"))
    assert sides(pairs) == [("a", "A"), ("b", "B"), ("c", "C")]
    assert [Path(pair.file).name for pair in pairs] == ["a.tsv", "b.jsonl", "c.po"]
    assert len(pairs.said) == 3
    assert (pairs.source, pairs.target) == ("en", "de")


def test_pairs_can_be_read_again_and_twice_at_once(tmp_path: Path) -> None:
    pairs = open_pairs(put(tmp_path, a_tsv="a\tA\n\nb\tB\n"), DataSettings())
    assert list(pairs) == list(pairs)
    assert pairs.skipped == {"blank line": 1}
    assert [(x.source, y.source) for x, y in zip(pairs, pairs, strict=True)] == [("a", "a"), ("b", "b")]


def test_files_must_agree_on_their_languages(tmp_path: Path) -> None:
    paths = put(tmp_path, a_tsv="en\tde\na\tA\n", b_tsv="de\tfr\nx\tX\n")
    with pytest.raises(DataError, match=r"is de → fr, but .*a\.tsv is en → de"):
        open_pairs(paths, DataSettings())


def test_plain_files_must_be_two(tmp_path: Path) -> None:
    paths = put(tmp_path, a_en="one\n", a_de="eins\n", a_fr="un\n")
    with pytest.raises(DataError, match="one side only") as caught:
        open_pairs(paths, DataSettings())
    assert "exactly two" in str(caught.value)


def test_what_cannot_be_read_twice_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="not an ordinary file"):
        open_pairs([tmp_path / "pipe"], DataSettings())


def test_nothing_given_and_wrong_encodings(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no file") as caught:
        open_pairs([], DataSettings())
    assert all(name in str(caught.value) for name in FORMATS)
    wide, old = tmp_path / "wide.tsv", tmp_path / "old.tsv"
    wide.write_bytes("good\tgut\n".encode("utf-16"))
    with pytest.raises(DataError, match="UTF-16") as caught:
        open_pairs([wide], DataSettings())
    assert "iconv" in str(caught.value)
    old.write_bytes(b"a\tb\rc\td\re\tf\r")
    with pytest.raises(DataError, match="carriage return alone"):
        open_pairs([old], DataSettings())


@pytest.mark.parametrize(
    ("name", "code"), [("en", True), ("en-US", True), ("deu_Latn", True), ("text", False), ("xx", False)]
)
def test_codes(name: str, code: bool) -> None:
    assert is_code(name) is code


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [("en", "en-US", True), ("en_us", "EN", True), ("en-GB", "en-US", False), ("e", "en", False), (None, "en", False)],
)
def test_same_language(one: str | None, other: str, same: bool) -> None:
    assert same_language(one, other) is same
