"""The parts of a document that words stand in, and how they are translated.

A segment is one run of text with nothing structural inside; XML elements inside a sentence make it several. Knows what
a document must offer. Refuses to know any format.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from clearhead.data.documents.translate import Translate, translate_texts
from clearhead.data.protected import Piece, split
from clearhead.errors import DataError


@dataclass(frozen=True)
class Segment:
    """A run of text to translate, and the line it stands on."""

    text: str
    line: int

    @property
    def pieces(self) -> list[Piece]:
        """The text cut into what is protected and what is not."""
        return split(self.text)


class Document(Protocol):
    """An open document. Writing does not change it: it can be written again, with other translations."""

    @property
    def format(self) -> str: ...

    @property
    def segments(self) -> list[Segment]: ...

    def write(self, translations: Sequence[str], path: Path) -> None:
        """The document with one translation per segment, at `path`, whole or not at all."""
        ...


def translate_document(document: Document, translate: Translate) -> list[str]:
    """One translation per segment, for `document.write`. `translate` gets single lines and gives one for each.

    Placeholders, addresses and markup come out as they went in, whatever `translate` makes of them, and so does the
    white space around the words; a segment without letters is not sent.
    """
    return translate_texts([segment.text for segment in document.segments], translate)


def check_count(segments: Sequence[Segment], translations: Sequence[str]) -> None:
    if len(segments) != len(translations):
        raise DataError(f"{len(segments)} segments, but {len(translations)} translations")
