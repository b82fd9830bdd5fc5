"""Cut a text into sentences and join it again without loss.

    join_sentences(split_sentences(text)) == text

A sentence carries the white space after it as its separator, so a document can be taken apart, each sentence
changed, and put together with its spaces and line breaks in place.

Rules and tables (abbreviations.py), no model: a mark that ends sentences, with the quotes and brackets closing
after it, ends one when space and no small letter follow; not after initials, abbreviations, enumerators and, where
the language writes them so, ordinal numbers. Full stops of scripts without spaces always do. In doubt two sentences
stay together: a translator suffers less from a long sentence than from half of one.

Knows punctuation. Refuses to know tokens and documents' formats.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from clearhead.text.abbreviations import (
    AFTER_ORDINAL,
    BEFORE_NUMBER,
    CLOSERS,
    HARD_ENDS,
    MAY_END,
    NEVER_LAST,
    OPENERS,
    ORDINAL_DOT,
    SOFT_ENDS,
    table,
)

LOOK_BACK = LOOK_AHEAD = 48  # characters looked at around a mark, so that time grows with the text only
QUOTING = ("と", "って")  # Japanese: a quotation goes on after its closing bracket

SPACE = re.compile(r"\s+")
LINE_BREAK = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")
MARK = re.compile(
    rf"(?P<mark>[{re.escape(SOFT_ENDS + HARD_ENDS)}]+)"
    rf"(?P<closers>[{re.escape(CLOSERS)}]*(?:[ \u00a0\u202f]»(?=\s|$))?)(?P<space>\s*)"  # French: « Oui ! »
)
DOTTED_LETTERS = re.compile(r"[^\W\d_](?:\.[- ]?[^\W\d_])*")
ROMAN = re.compile(r"[IVXLC]{2,}\b")


class Sentence(NamedTuple):
    """A sentence and the white space after it. White space before the first sentence has an empty sentence."""

    text: str
    separator: str


def join_sentences(sentences: Iterable[Sentence]) -> str:
    return "".join(text + separator for text, separator in sentences)


def split_sentences(text: str, language: str | None = None, line_breaks: bool = True) -> list[Sentence]:
    """Sentences with their separators. `line_breaks`: a line break ends a sentence (off for hard-wrapped text,
    where only an empty line does). `language`: a code such as "de"; without it all tables count."""
    rules = Rules.of(language)
    sentences = []
    for start, end, following in blocks(text, line_breaks):
        for stop, resume in inner_ends(text, start, end, rules):
            sentences.append(Sentence(text[start:stop], text[stop:resume]))
            start = resume
        sentences.append(Sentence(text[start:end], text[end:following]))
    return sentences


def blocks(text: str, line_breaks: bool) -> Iterator[tuple[int, int, int]]:
    """(start, end, start of the next) of the stretches between line breaks."""
    start, needed = 0, 1 if line_breaks else 2
    for space in SPACE.finditer(text):
        if space.start() == 0 or space.end() == len(text) or len(LINE_BREAK.findall(space[0])) >= needed:
            yield start, space.start(), space.end()
            start = space.end()
    if start < len(text):
        yield start, len(text), len(text)


def inner_ends(text: str, start: int, end: int, rules: Rules) -> Iterator[tuple[int, int]]:
    """(end of a sentence, start of the next) inside one stretch."""
    for found in MARK.finditer(text, start, end):
        if found.end() < end and rules.ends(found, start):
            yield found.end("closers"), found.end()
            start = found.end()


@dataclass(frozen=True)
class Rules:
    """The tables of a language, and what they say about one mark."""

    never_last: frozenset[str]
    before_number: frozenset[str]
    ordinal_dot: bool

    @classmethod
    def of(cls, language: str | None) -> Rules:
        code = None if language is None else re.split("[-_]", language.casefold())[0]
        return cls(table(NEVER_LAST, code), table(BEFORE_NUMBER, code), code in ORDINAL_DOT)

    def ends(self, found: re.Match[str], start: int) -> bool:
        """Does the sentence that began at `start` end with this mark?"""
        ahead = found.string[found.end() : found.end() + LOOK_AHEAD]
        if any(character in HARD_ENDS for character in found["mark"]):
            quoted = bool(found["closers"]) and ahead.startswith(QUOTING)
            return not quoted and not (found["mark"] == "．" and ahead[0].isdigit())
        following = ahead.lstrip(OPENERS + " ")
        if not found["space"] or following[:1].islower():
            return False
        if found["mark"] != ".":
            return True
        return self.dot_ends(found.string[max(start, found.start() - LOOK_BACK) : found.start()], following)

    def dot_ends(self, before: str, following: str) -> bool:
        """The same for a single dot, from what stands before it in its sentence and what follows."""
        word = (SPACE.split(before)[-1]).lstrip(OPENERS)
        folded = word.casefold()
        if folded in MAY_END:
            return True
        if folded in self.never_last or DOTTED_LETTERS.fullmatch(word):
            return False
        if word.isdecimal():
            return not ((len(word) <= 3 and before.strip(OPENERS + " ") == word) or self.is_ordinal(word, following))
        return not (folded in self.before_number and (following[:1].isdigit() or ROMAN.match(following)))

    def is_ordinal(self, number: str, following: str) -> bool:
        noun = re.match(r"\w*", following)
        return len(number) <= 2 and (self.ordinal_dot or (noun is not None and noun[0].casefold() in AFTER_ORDINAL))
