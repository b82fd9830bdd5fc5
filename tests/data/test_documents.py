"""Opening documents: formats, refusals, whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from clearhead.data.documents import FORMATS, open_document, translate_document
from clearhead.data.documents import content as content_room
from clearhead.errors import DataError, UsageError


def test_unknown_formats_are_refused_with_the_list(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        open_document(tmp_path / "letter.docx")
    assert all(suffix in str(caught.value) for suffix in FORMATS)
    with pytest.raises(UsageError, match="did you mean"):
        open_document(tmp_path / "a.xlif")


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.txt", b"good\nb\xe4d\n", "0xE4 at offset 6 is not UTF-8"),
        ("a.po", b'msgid "\xe4"\n', "not UTF-8"),
        ("a.po", b"nonsense\n", "is not PO"),
        ("a.tmx", b"<tmx><body>", "not well-formed"),
        ("a.tmx", b"<xliff/>", "root <xliff>, not <tmx>"),
        ("a.xlf", b'<!DOCTYPE xliff [<!ENTITY a "b">]><xliff version="1.2"/>', "declares the entity"),
        ("a.xlf", b"version https://git-lfs.github.com/spec/v1\n", "Git-LFS pointer"),
        ("a.txt", b"PK\x03\x04", "office document"),
    ],
)
def test_bad_documents_are_named(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=says):
        open_document(tmp_path / name, source="en", target="de")


def test_missing_and_enormous_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match="no such file"):
        open_document(tmp_path / "a.txt")
    monkeypatch.setattr(content_room, "LARGEST", 10)
    (tmp_path / "a.txt").write_text("eleven bytes")
    with pytest.raises(DataError, match="is larger than"):
        open_document(tmp_path / "a.txt")


def test_translations_must_be_as_many_as_segments(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\n")
    document = open_document(path)
    with pytest.raises(DataError, match="2 segments, but 1 translations"):
        document.write(["eins"], tmp_path / "b.txt")
    assert not (tmp_path / "b.txt").exists()
    with pytest.raises(ValueError, match="2 texts were given to translate, 1 came back"):
        translate_document(document, lambda texts: ["only one"])


def test_a_document_can_be_written_over_itself_and_never_half(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\n")
    document = open_document(path)
    document.write(["eins"], path)
    assert path.read_text() == "eins\n"
    assert [child.name for child in tmp_path.iterdir()] == ["a.txt"]
    with pytest.raises(UsageError, match="no such folder"):
        document.write(["eins"], tmp_path / "missing" / "b.txt")
    with pytest.raises(UsageError, match="is a folder"):
        document.write(["eins"], tmp_path)


def test_plain_text_keeps_lines_blanks_endings_and_white_space(tmp_path: Path) -> None:
    content = "\ufeffHello world.\r\n\r\n  two\u2028parts \t\n\n12:30\n%s\nlast".encode()
    path, out = tmp_path / "a.txt", tmp_path / "b.txt"
    path.write_bytes(content)
    document = open_document(path)
    document.write([segment.text for segment in document.segments], out)
    assert out.read_bytes() == content
    document.write(translate_document(document, lambda texts: texts), out)
    assert out.read_bytes() == content
    asked: list[str] = []
    document.write(translate_document(document, lambda texts: asked.extend(texts) or [t.upper() for t in texts]), out)
    assert out.read_bytes() == "\ufeffHELLO WORLD.\r\n\r\n  TWO\u2028PARTS \t\n\n12:30\n%s\nLAST".encode()
    assert asked == ["Hello world.", "two", "parts", "last"]
    assert [segment.line for segment in document.segments] == [1, 3, 5, 6, 7]
    assert document.segments[0].text == "Hello world."


def test_an_empty_text_stays_empty(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"")
    document = open_document(tmp_path / "a.txt")
    document.write(translate_document(document, lambda texts: texts), tmp_path / "b.txt")
    assert (tmp_path / "b.txt").read_bytes() == b""
