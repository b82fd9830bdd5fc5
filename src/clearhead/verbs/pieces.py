"""Texts of any length for a model that reads so many tokens: cut at sentences, then at words, joined again.

Whitespace around pieces is kept as it was. What holds neither letter nor digit is not translated at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from clearhead.text.segment import split_sentences
from clearhead.text.tokenizer import Tokenizer

LINES = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True)
class Pieces:
    """`ids` of what is to be translated; `frame` has a text to keep, or None where a translation goes."""

    ids: tuple[list[int], ...]
    frame: tuple[str | None, ...]

    def join(self, translations: Sequence[str]) -> str:
        remaining = iter(translations)
        return "".join(next(remaining) if kept is None else kept for kept in self.frame)


def cut(text: str, tokenizer: Tokenizer, longest: int) -> Pieces:
    """The pieces of a text, each at most `longest` tokens."""
    ids: list[list[int]] = []
    frame: list[str | None] = []
    for piece in fitting(text, tokenizer, longest):
        core = piece.strip()
        if not any(c.isalnum() for c in core):
            frame.append(piece)
            continue
        start = piece.index(core)
        frame += [piece[:start], None, piece[start + len(core) :]]
        ids.append(tokenizer.encode(core))
    return Pieces(tuple(ids), tuple(frame))


def fitting(text: str, tokenizer: Tokenizer, longest: int) -> Iterator[str]:
    """Runs of text that fit, as few as sentence ends allow."""
    for line in LINES.findall(text):
        if len(tokenizer.encode(line)) <= longest:
            yield line
            continue
        for sentence in split_sentences(line):
            yield from halves(sentence.text + sentence.separator, tokenizer, longest)


def halves(text: str, tokenizer: Tokenizer, longest: int) -> Iterator[str]:
    """A sentence that is still too long is cut in the middle, at a space if there is one, until it fits."""
    if len(tokenizer.encode(text)) <= longest or len(text) < 2:
        yield text
        return
    middle = len(text) // 2
    spaces = [at for at, c in enumerate(text) if c.isspace() and at > 0]
    at = min(spaces, key=lambda i: abs(i - middle)) if spaces else middle
    yield from halves(text[:at], tokenizer, longest)
    yield from halves(text[at:], tokenizer, longest)
