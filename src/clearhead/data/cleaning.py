"""Characters that are never part of a sentence, taken out of it.

Control characters and byte-order marks go; line breaks and tabs inside a text become one space. Everything that may be
meant stays: zero-width joiners and spaces, direction marks, soft hyphens, unusual spaces.
"""

from __future__ import annotations

import re

BREAKS = re.compile("[\t\n\v\f\r\x85\u2028\u2029]+")
CONTROLS = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ufeff]")


def clean(text: str) -> str:
    """The text itself where there is nothing to clean."""
    if text.isprintable():  # the common case, many times faster than the patterns
        return text
    cleaned = BREAKS.sub(" ", CONTROLS.sub("", text))
    return text if cleaned == text else cleaned.strip()
