"""What must come through a translation untouched: where in a text it stands.

Protected are addresses, tags, entities, placeholders (%s %(name)s %1 {0} {{x}} ${x} $x), escapes, line breaks and
control characters. A pattern that protects too much costs a few untranslated letters; one that protects too little
breaks a program, so doubtful cases are protected. No part of the pattern takes more than linear time on hostile text:
repetitions that could be tried again from many places are bounded. Knows patterns. Refuses to know documents.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

BREAK = r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+"
PROTECTED = re.compile(
    rf"""
      {BREAK}
    | (?:https?|ftp)://[^\s<>"']*[^\s<>"'.,;:!?)\]}}]          # addresses, without the full stop after them
    | \bwww\.[^\s<>"']*[^\s<>"'.,;:!?)\]}}]
    | (?<![\w.+-])[\w.+-]{{1,64}}@[\w-]+(?:\.[\w-]+)+
    | <!--.{{0,1000}}?-->
    | </?[A-Za-z][^<>]*>
    | &(?:[A-Za-z][A-Za-z0-9]{{0,31}}|\#[0-9]{{1,7}}|\#[xX][0-9A-Fa-f]{{1,6}});
    | [%$]?\{{(?:[^{{}}]|\{{(?:[^{{}}]|\{{[^{{}}]*+\}})*+\}})*+\}}   # braces, three deep: {{{{x}}}}, ICU plurals
    | \$[A-Za-z_]\w*
    | %(?:[0-9]{{1,2}}\$)?(?:\([^()\s]*\))?                      # %s, %2$d, %(name)s, %-5.2f
      [-+\#0]{{0,5}}(?:[0-9]{{1,4}}|\*)?(?:\.(?:[0-9]{{1,4}}|\*))?(?:hh|h|ll|l|j|z|t|L)?[diouxXeEfFgGaAcsrpn@%]
    | %L?[0-9]{{1,2}}
    | \\[nrt"\\]
    """,
    re.VERBOSE | re.DOTALL,
)
LINE_BREAK = re.compile(BREAK)


@dataclass(frozen=True)
class Piece:
    text: str
    protected: bool


def split(text: str) -> list[Piece]:
    """The text as protected and translatable pieces, in order; joined they are the text."""
    pieces: list[Piece] = []
    end = 0
    for match in PROTECTED.finditer(text):
        if match.start() > end:
            pieces.append(Piece(text[end : match.start()], False))
        pieces.append(Piece(match[0], True))
        end = match.end()
    if end < len(text):
        pieces.append(Piece(text[end:], False))
    return pieces


def protected(text: str) -> list[str]:
    return PROTECTED.findall(text)


def has_letters(text: str) -> bool:
    return any(map(str.isalpha, text))
