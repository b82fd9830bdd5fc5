"""Bring text to one Unicode form, so that what looks equal is equal.

Knows Unicode forms and letter case. Refuses to know tokens, languages and files.
"""

from __future__ import annotations

import unicodedata
from typing import Literal, cast

from clearhead.config import TextSettings
from clearhead.errors import DataError

Form = Literal["NFC", "NFKC"]


def normalise(text: str, settings: TextSettings) -> str:
    """The text in the form the settings ask for; a lone surrogate, which no encoding can hold, is refused."""
    refuse_surrogates(text)
    if settings.lowercase:
        # Compatibility letters such as ℌ have no lower case of their own: bring them to plain letters first.
        text = to_form(text, settings.normalise).lower()
    return to_form(text, settings.normalise)


def to_form(text: str, name: str) -> str:
    return text if name == "none" else unicodedata.normalize(cast(Form, name.upper()), text)


def refuse_surrogates(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        code = ord(text[error.start])
        raise DataError(
            f"character {error.start + 1} is U+{code:04X}, half of a surrogate pair, which is no text",
            hint="the text was cut or decoded wrongly; read the file again as UTF-8",
        ) from None
