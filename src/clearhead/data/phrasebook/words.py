"""How the phrasebook writes a phrase down, and what it calls a word.

Knows characters. Refuses to know languages, kinds of phrases and tokenizers: a model may cut text as it likes,
these words only count what occurs and decide what may be held out.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

# CLDR writes no-break, thin and narrow spaces by typographic taste, and invisible marks that steer the direction
# of display. Neither is seen on screen or typed by a person, so neither is something to learn.
INVISIBLE = dict.fromkeys(
    [0x00AD, 0x061C, 0x200B, 0x200E, 0x200F, 0x2060, 0xFEFF, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
)

PUNCTUATION = r"!-/:-@\[-`{-~¡-¿‐-⁞、-〿！-／：-＠［-｀｛-･،؛؟।׳״"
UNSPACED = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff々〇"
WORD = re.compile(rf"\d+|[{UNSPACED}]|[^\s\d{PUNCTUATION}{UNSPACED}]+|(?!\s)[{PUNCTUATION}]")


def normalise(text: str) -> str:
    """NFC; every kind of space becomes one plain space; marks of direction and other invisible signs go.

    The joiners U+200C and U+200D stay: Persian and the Indic scripts spell with them.
    """
    return " ".join(unicodedata.normalize("NFC", text.translate(INVISIBLE)).split())


def words(text: str) -> list[str]:
    """Runs of letters, runs of digits, single marks of punctuation; kana and ideographs one by one."""
    return WORD.findall(text)


@lru_cache(maxsize=1 << 16)
def has_letters(word: str) -> bool:
    return any(character.isalpha() for character in word)


def same(text: str) -> str:
    """What two phrases are compared by: their words, without regard to spaces and capitals."""
    return " ".join(words(text)).casefold()
