"""Cut normalised text into the units that tokens never cross: sentences, words or characters.

    split(text, level)  →  pieces whose concatenation is mark(text, level)

At the levels of words and sub-words every text gets one space in front (`mark`), and a space belongs to the
word after it: "Guten Tag!" → " Guten", " Tag", "!". So a word is the same unit wherever it stands, and joining the
pieces is the whole of detokenisation. Letters keep their combining marks; punctuation stands alone (dots and
dashes in runs); at the sub-word level each digit stands alone, without its space, so that numbers are composed.

A unit has at most a few hundred characters whatever the text, so nothing downstream grows with its square.

Knows Unicode categories. Refuses to know vocabularies and languages. New letters of a later Unicode version may
be cut differently under a later Python; text still comes back unchanged.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache

JOINERS = "\u200c\u200d"  # between letters they are spelling (Persian, Hindi), not punctuation
LONGEST = 64
MARK_BLOCKS = (range(0x300, 0x1F000), range(0xE0100, 0xE01F0))  # no combining mark lies elsewhere


def mark(text: str, level: str) -> str:
    """The text with the space in front that makes its first word like any other."""
    return " " + text if text and level in ("word", "subword") else text


def unmark(text: str, level: str) -> str:
    """What `mark` added is taken away."""
    return text[1:] if level in ("word", "subword") and text.startswith(" ") else text


def splitter(level: str) -> Callable[[str], list[str]]:
    """The function that cuts marked text at this level."""
    if level == "sentence":
        return lambda text: [text] if text else []
    if level == "character":
        return list
    return word_pattern(digits_alone=level == "subword").findall


def split(text: str, level: str) -> list[str]:
    """The units of a normalised text."""
    return splitter(level)(mark(text, level))


@cache
def word_pattern(digits_alone: bool) -> re.Pattern[str]:
    letter = r"[^\W\d_]" if digits_alone else r"[^\W_]"
    # No mark is ASCII: looking at that first spares the long class after every word of plain text.
    marked = rf"(?:(?![\x00-\x7f])[{combining_marks()}]{{1,4}}{letter}{{0,16}}){{0,32}}"
    word = rf" ?{letter}{{1,{LONGEST}}}{marked}"
    punctuation = rf" ?(?:\.{{1,{LONGEST}}}|-{{1,{LONGEST}}}|[^\w\s]|_)"
    spaces = rf" {{1,{LONGEST}}}(?= )"  # all but the last of a run: that one belongs to the next word
    return re.compile("|".join([word, r"\d", punctuation, spaces, r"\s"]))


def combining_marks() -> str:
    """Combining marks and joiners, as the inside of a character class."""
    codes = [code for block in MARK_BLOCKS for code in block if unicodedata.category(chr(code))[0] == "M"]
    ranges: list[list[int]] = []
    for code in codes:
        if ranges and code == ranges[-1][1] + 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return JOINERS + "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)
