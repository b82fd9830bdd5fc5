"""What can be wrong with a pair: one small rule per kind, shared by the data report and the gate.

A rule looks at a block of pairs and names those it hits. Rules that drop are conservative: each spares whatever a clean
corpus holds, short texts above all. Knows single pairs. Refuses to know the corpus (see `duplicates`) and to change
text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from clearhead.data.block import Block, normal
from clearhead.data.cleaning import BREAKS, CONTROLS
from clearhead.data.protected import LINE_BREAK, protected
from clearhead.data.readers.quotes import is_doubled
from clearhead.data.scripts import letters, other_letters

EMPTY = "empty side"
LONGEST = 1_000_000  # bytes of UTF-8: what is longer is no sentence
SHORT = 30  # characters: up to this, one side may be many times as long as the other ("OK", "Das ist in Ordnung")
COPIED_WORDS = 3  # names and numbers translate to themselves; more words than this do not
FOREIGN_LETTERS = 20  # a line may hold names in another script, or be one
OWN_SHARE = 0.2  # of its letters must be of its side's script

Severity = Literal["note", "warning", "serious"]
Verdict = Literal["drop", "clean", "keep"]


Rule = Callable[[Block], Iterable[int]]


@dataclass(frozen=True)
class Kind:
    """One thing that can be wrong, and what the gate does about it."""

    name: str
    meaning: str
    severity: Severity
    verdict: Verdict
    rule: Rule


def empty_side(block: Block) -> Iterable[int]:
    both = zip(block.sources, block.targets, strict=True)
    return [i for i, (s, t) in enumerate(both) if not s or not t or s.isspace() or t.isspace()]


def overlong(block: Block) -> Iterable[int]:
    may_be = np.maximum(*block.lengths) > LONGEST // 4  # a character has at most 4 bytes
    sides = ((i, block.sources[i], block.targets[i]) for i in np.flatnonzero(may_be).tolist())
    return [i for i, source, target in sides if max(len(source.encode()), len(target.encode())) > LONGEST]


def length_ratio(block: Block) -> Iterable[int]:
    longer, shorter = np.maximum(*block.lengths), np.minimum(*block.lengths)
    return np.flatnonzero((longer > block.standards.max_ratio * shorter) & (longer > SHORT)).tolist()


def copies(block: Block) -> list[int]:
    return [i for i, (s, t) in enumerate(zip(block.sources, block.targets, strict=True)) if s == t]


def long_copy(block: Block) -> Iterable[int]:
    return [i for i in copies(block) if len(block.sources[i].split()) > COPIED_WORDS]


def short_copy(block: Block) -> Iterable[int]:
    return [i for i in copies(block) if len(block.sources[i].split()) <= COPIED_WORDS]


def wrong_script(block: Block) -> Iterable[int]:
    """Copies have their own rules: names are written alike everywhere."""
    source = in_other_script(block.sources, block.standards.source_script)
    target = in_other_script(block.targets, block.standards.target_script)
    return [i for i in sorted({*source, *target}) if block.sources[i] != block.targets[i]]


def in_other_script(texts: Sequence[str], script: str | None) -> list[int]:
    if script is None:
        return []
    search = other_letters(script).search
    if script == "Latin":
        return [i for i, text in enumerate(texts) if not text.isascii() and search(text) and is_foreign(text, script)]
    return [i for i, text in enumerate(texts) if search(text) and is_foreign(text, script)]


def is_foreign(text: str, script: str) -> bool:
    own, other = len(letters(script).findall(text)), len(other_letters(script).findall(text))
    return other >= FOREIGN_LETTERS and own < OWN_SHARE * (own + other)


def control_characters(block: Block) -> Iterable[int]:
    return block.odd_with(CONTROLS)


def breaks_inside(block: Block) -> Iterable[int]:
    return block.odd_with(BREAKS)


def invisible(block: Block) -> Iterable[int]:
    return block.odd_with(re.compile("[\u00ad\u200b\u2060]"))


def direction_marks(block: Block) -> Iterable[int]:
    return block.odd_with(re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"))


def not_composed(block: Block) -> Iterable[int]:
    both = zip(block.sources, block.targets, strict=True)
    return [i for i, (s, t) in enumerate(both) if not (is_composed(s) and is_composed(t))]


def is_composed(text: str) -> bool:
    return text.isascii() or unicodedata.is_normalized("NFC", text)


def garbled(block: Block) -> Iterable[int]:
    """U+FFFD, and UTF-8 that was once read as Latin-1 ("Ã¼" for "ü")."""
    both = zip(block.sources, block.targets, strict=True)
    return [
        i for i, (s, t) in enumerate(both) if (not s.isascii() and is_garbled(s)) or (not t.isascii() and is_garbled(t))
    ]


def is_garbled(text: str) -> bool:
    return "\ufffd" in text or "â€" in text or ("Ã" in text and re.search("Ã[\x80-\xbf]", text) is not None)


def csv_quoted(block: Block) -> Iterable[int]:
    both = zip(block.sources, block.targets, strict=True)
    return [i for i, (s, t) in enumerate(both) if is_doubled(s) or is_doubled(t)]


# The next two rules ask a quick question of all pairs, in plain sets of characters, then a careful one of a few.
ASCII_NUMBERS = re.compile("[0-9][0-9]*").findall
ASCII_ENDS = re.compile("[.?!] ").findall


def numbers_differ(block: Block) -> Iterable[int]:
    both = zip(map(ASCII_NUMBERS, block.sources), map(ASCII_NUMBERS, block.targets), strict=True)
    differ = (i for i, (s, t) in enumerate(both) if s != t)
    return [i for i in differ if numbers(block.sources[i]) != numbers(block.targets[i])]


def numbers(text: str) -> list[str]:
    """Runs of digits of any script, in no order."""
    return sorted("".join(str(unicodedata.decimal(digit)) for digit in run) for run in re.findall(r"\d+", text))


def sentences_differ(block: Block) -> Iterable[int]:
    """By two or more: one may be joined or split, or end in an abbreviation."""
    both = zip(map(len, map(ASCII_ENDS, block.sources)), map(len, map(ASCII_ENDS, block.targets)), strict=True)
    differ = (i for i, (s, t) in enumerate(both) if not -2 < s - t < 2)
    return [i for i in differ if not -2 < sentence_ends(block.sources[i]) - sentence_ends(block.targets[i]) < 2]


def sentence_ends(text: str) -> int:
    """Ends of sentences inside the text, in scripts with and without spaces."""
    return len(re.findall("[.?!؟] |[。।？！](?=.)", text))


SIGNS = ("%", "{", "<", "&", "@", "$", "\\", "://", "www.")


def placeholders_differ(block: Block) -> Iterable[int]:
    candidates = sorted(with_signs(block.sources) | with_signs(block.targets))
    return [i for i in candidates if placeholders(block.sources[i]) != placeholders(block.targets[i])]


def with_signs(texts: Sequence[str]) -> set[int]:
    """Texts that may hold something protected: all such things have one of a few signs in them, and most texts none."""
    together = "\n".join(texts)
    return {i for sign in SIGNS if sign in together for i, text in enumerate(texts) if sign in text}


def placeholders(text: str) -> list[str]:
    return sorted(piece for piece in protected(text) if not LINE_BREAK.fullmatch(piece))


def line_breaks_differ(block: Block) -> Iterable[int]:
    return [i for i in block.odd if block.sources[i].count("\n") != block.targets[i].count("\n")]


def leaked_side(block: Block) -> Iterable[int]:
    source, target = leaks(block)
    return sorted(source | target)


def leaked_pair(block: Block) -> Iterable[int]:
    source, target = leaks(block)
    return sorted(source & target)


def leaks(block: Block) -> tuple[set[int], set[int]]:
    held_out = block.standards.held_out
    if held_out is None:
        return set(), set()
    sides = ((block.sources, held_out.sources), (block.targets, held_out.targets))
    source, target = ({i for i, text in enumerate(texts) if hash(normal(text)) in known} for texts, known in sides)
    return source, target


KINDS = (
    Kind(EMPTY, "there is nothing on one side", "serious", "drop", empty_side),
    Kind("overlong", "more than a million bytes on one side", "warning", "drop", overlong),
    Kind("copy", "both sides are the same, and more than a few words", "warning", "drop", long_copy),
    Kind("length ratio", "one side is many times as long as the other", "warning", "drop", length_ratio),
    Kind("wrong script", "almost no letter is of its side's script", "warning", "drop", wrong_script),
    Kind("control characters", "characters that cannot be seen or printed", "warning", "clean", control_characters),
    Kind("break inside", "a line break or tab within a text", "note", "clean", breaks_inside),
    Kind("short copy", "both sides are the same few words", "note", "keep", short_copy),
    Kind("invisible characters", "zero-width spaces, word joiners or soft hyphens", "note", "keep", invisible),
    Kind("direction marks", "marks for right-to-left text", "note", "keep", direction_marks),
    Kind("not NFC", "letters and accents stored apart", "note", "keep", not_composed),
    Kind("garbled", "bytes were once read in the wrong encoding", "warning", "keep", garbled),
    Kind(
        "CSV quotes",
        "a side in quotation marks, those inside doubled; of a TSV file, data.quotes = csv takes them off",
        "warning",
        "keep",
        csv_quoted,
    ),
    Kind("numbers differ", "the two sides hold different digits", "note", "keep", numbers_differ),
    Kind(
        "placeholders differ",
        "placeholders, tags or addresses are not the same",
        "warning",
        "keep",
        placeholders_differ,
    ),
    Kind("sentences differ", "one side has two or more sentences more", "note", "keep", sentences_differ),
    Kind("line breaks differ", "one side has more lines", "note", "keep", line_breaks_differ),
    Kind("held-out side", "its source or its target is in the held-out set", "warning", "keep", leaked_side),
    Kind("held-out pair", "both its sides are in the held-out set", "serious", "keep", leaked_pair),
)
DROPPING = tuple(kind for kind in KINDS if kind.verdict == "drop")
