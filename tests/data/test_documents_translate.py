"""What is protected, and the ways of bringing it through."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from clearhead.data.documents.translate import translate_texts
from clearhead.data.protected import protected, split


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("%s of %(name)s, %1$d, %-5.2f and %%", ["%s", "%(name)s", "%1$d", "%-5.2f", "%%"]),
        (
            "{0} {name!r:>10} {{x}} ${HOME} $HOME %{count}",
            ["{0}", "{name!r:>10}", "{{x}}", "${HOME}", "$HOME", "%{count}"],
        ),
        ("{n, plural, one {# file} other {# files}}!", ["{n, plural, one {# file} other {# files}}"]),
        ('<a href="x">b</a><br/> <!-- c -->', ['<a href="x">', "</a>", "<br/>", "<!-- c -->"]),
        ("a &amp; b &#228; &#xE4; AT&T", ["&amp;", "&#228;", "&#xE4;"]),
        ("see http://x.org/a?b=1. or (www.y.de), mail a.b@c.org!", ["http://x.org/a?b=1", "www.y.de", "a.b@c.org"]),
        ("file %1 of %L2", ["%1", "%L2"]),
        ("a\nb\r\n\u2028c\x00", ["\n", "\r\n\u2028", "\x00"]),
        (r"a\nb", [r"\n"]),
        ("5 % of 3 < 4 and $5, a > b; 100 %", []),
    ],
)
def test_protected_pieces(text: str, pieces: list[str]) -> None:
    assert protected(text) == pieces
    assert "".join(piece.text for piece in split(text)) == text
    assert [piece.text for piece in split(text) if piece.protected] == pieces


def translated(text: str, translate: Callable[[str], str]) -> tuple[str, list[str]]:
    asked: list[str] = []

    def ask(texts: list[str]) -> list[str]:
        asked.extend(texts)
        return [translate(text) for text in texts]

    return translate_texts([text], ask)[0], asked


def test_a_whole_answer_that_keeps_the_pieces_is_taken() -> None:
    answers = {"Delete %s now": "Jetzt %s löschen"}
    assert translated("  Delete %s now ", lambda text: answers[text]) == ("  Jetzt %s löschen ", ["Delete %s now"])


def test_an_answer_that_loses_one_is_made_of_its_parts() -> None:
    result, asked = translated("Delete %s now, <b>please</b>", str.upper)
    assert result == "DELETE %s NOW, <b>PLEASE</b>"
    assert asked == ["Delete %s now, <b>please</b>", "Delete", "now,", "please"]


@pytest.mark.parametrize("answer", ["%s", "<b>x</b>", "a & b {0}", "http://evil.example", "$x", "\\n", "line\nbreak"])
def test_an_answer_that_looks_like_markup_adds_none(answer: str) -> None:
    for text in ("plain words", "two %s halves", "<i>in</i> tags"):
        result, _ = translated(text, lambda _: answer)
        assert protected(result) == protected(text)


def test_markup_characters_are_taken_out_rather_than_the_answer_lost() -> None:
    assert translated("plain words", lambda _: "schlichte <b>Wörter</b>")[0] == "schlichte bWörter/b"


def test_an_answer_over_several_lines_becomes_one() -> None:
    assert translated("plain words", lambda _: "zwei\nZeilen\x00lang")[0] == "zwei Zeilen lang"


def test_lines_that_become_markup_only_together_are_found() -> None:
    text = "one\n2 > three"
    assert protected(translated(text, lambda line: "<a" if line == "one" else "2 > drei")[0]) == ["\n"]


def test_an_empty_answer_leaves_the_source() -> None:
    assert translated(" words %s here", lambda _: " ")[0] == " words %s here"


@pytest.mark.parametrize("text", ["", "   ", "12:30", "%s", "{0}: {1}", "http://x.org", "\n\n", "— 7 €"])
def test_without_words_nothing_is_asked(text: str) -> None:
    assert translated(text, lambda _: "INVENTED") == (text, [])


def test_lines_are_asked_one_by_one_and_each_text_once() -> None:
    result, asked = translated("one\ntwo\n\none\n", str.upper)
    assert result == "ONE\nTWO\n\nONE\n"
    assert asked == ["one", "two"]


def test_a_tag_over_two_lines_is_one_piece() -> None:
    assert translated('go <a\nhref="x">there</a>', str.upper)[0] == 'GO <a\nhref="x">THERE</a>'
