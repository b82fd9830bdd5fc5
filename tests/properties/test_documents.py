"""Whatever a translator answers, every protected piece comes out once, in its place; what is written opens again."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from clearhead.config import DataSettings
from clearhead.data.documents import open_document, translate_document
from clearhead.data.documents.translate import translate_texts
from clearhead.data.protected import protected, split
from clearhead.data.readers import open_pairs
from clearhead.data.readers.lines import read_lines
from clearhead.data.readers.po import entries

PIECES = ["%s", "%(name)s", "{0}", "{{x}}", "<b>", "</b>", "&amp;", "http://x.org/a", "a@b.org", "$x", "\n", r"\n"]
WORDS = ["word", " two words ", "grün", "漢字", "5 %", "www", "://", *"<&{}%$@\\. \u2028\x00"]
texts = st.lists(st.sampled_from(PIECES + WORDS) | st.text(max_size=5), max_size=8).map("".join)
answers = texts | st.just("") | st.text(alphabet="<>&%{}$@\\/;s0 a\n\ud800\x00", max_size=12)
nasty = st.functions(like=lambda text: ..., returns=answers, pure=True)


def by_one(translate):
    return lambda given: [translate(text) for text in given]


@settings(deadline=None)
@given(texts)
def test_the_pieces_of_a_text_are_the_text(text: str) -> None:
    assert "".join(piece.text for piece in split(text)) == text


@settings(deadline=None)
@given(st.lists(texts, max_size=4), nasty)
def test_every_protected_piece_survives_every_translator(given_texts: list[str], translate) -> None:
    results = translate_texts(given_texts, by_one(translate))
    assert [protected(result) for result in results] == [protected(text) for text in given_texts]


@settings(deadline=None)
@given(st.lists(texts, max_size=4))
def test_the_identity_changes_nothing(given_texts: list[str]) -> None:
    assert translate_texts(given_texts, lambda asked: asked) == given_texts


@settings(deadline=None)
@given(st.lists(texts, max_size=4), nasty)
def test_white_space_around_the_words_stays(given_texts: list[str], translate) -> None:
    for text, result in zip(given_texts, translate_texts(given_texts, by_one(translate)), strict=True):
        assert text[: len(text) - len(text.lstrip())] == result[: len(result) - len(result.lstrip())]
        assert text[len(text.rstrip()) :] == result[len(result.rstrip()) :]


ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})
plain = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\t\r\v\x85\u2028\x00"), max_size=20)


@settings(max_examples=60, deadline=None)
@given(st.lists(plain, max_size=6).map("\n".join), nasty)
def test_plain_text_keeps_its_lines(content: str, translate) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.txt")
        path.write_bytes(content.encode())
        document = open_document(path)
        document.write([segment.text for segment in document.segments], path)
        assert path.read_bytes() == content.encode()
        document.write(translate_document(document, by_one(translate)), path)
        written = path.read_bytes().decode()
        assert written.count("\n") == content.count("\n")
        blank = [not line.strip() for line in content.removeprefix("\ufeff").split("\n")]
        assert [not line.strip() for line in written.removeprefix("\ufeff").split("\n")] == blank


@settings(max_examples=60, deadline=None)
@given(st.lists(texts.filter(bool), min_size=1, max_size=4), nasty)
def test_a_written_catalogue_holds_what_was_put_in(messages: list[str], translate) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.po")
        escaped = [text.translate(ESCAPES) for text in messages]
        path.write_bytes("\n\n".join(f'msgid "{text}"\nmsgstr ""' for text in escaped).encode())
        document = open_document(path)
        assert [segment.text for segment in document.segments] == messages
        translations = translate_document(document, by_one(translate))
        document.write(translations, path)
        parsed = list(entries(read_lines(path), path))
        assert [(entry.msgid, entry.msgstr[0]) for entry in parsed] == list(zip(messages, translations, strict=True))


inline = st.recursive(
    st.sampled_from(["words here", "a &amp; b", "%s", " ", "12", '<x id="1"/>', "<ph id='2'>code</ph>", "<!-- c -->"]),
    lambda parts: st.lists(parts, max_size=3).map(lambda inner: f'<g id="3">{"".join(inner)}</g>'),
    max_leaves=6,
)


def skeleton(element: etree._Element) -> list[object]:
    """All elements with their attributes, in order, and the content of codes."""
    inner = [(child.tag, dict(child.attrib), child.text if child.tag == "ph" else "") for child in element.iter()]
    return inner[1:]


@settings(max_examples=60, deadline=None)
@given(st.lists(inline, min_size=1, max_size=4).map("".join), nasty)
def test_inline_elements_survive_every_translator(source: str, translate) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder, "a.xlf"), Path(folder, "b.xlf")
        path.write_text(
            '<xliff version="1.2"><file source-language="en" target-language="de"><body><trans-unit id="1">'
            f"<source>{source}</source></trans-unit></body></file></xliff>"
        )
        document = open_document(path)
        document.write(translate_document(document, by_one(translate)), out)
        unit = etree.parse(str(out)).find(".//trans-unit")
        before, after = unit.find("source"), unit.find("target")
        if after is None:
            assert not source.strip()
            return
        assert skeleton(before) == skeleton(after)
        assert protected("".join(before.itertext())) == protected("".join(after.itertext())) or "<g" in source
        if "".join(after.itertext()).strip() and "<ph" not in source and "<!--" not in source:
            (pair,) = open_pairs([out], DataSettings())
            assert (pair.source, pair.target) == ("".join(before.itertext()), "".join(after.itertext()))
