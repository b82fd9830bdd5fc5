"""Plain text: every line stays a line, every blank line stays blank, every ending stays as it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from clearhead.data.documents.content import read_text, save
from clearhead.data.documents.segment import Segment, check_count

BOM = "\ufeff"


@dataclass(frozen=True)
class TxtDocument:
    lines: list[str]
    places: list[int]
    """Which of the lines hold words."""
    format: str = "plain text"

    @property
    def segments(self) -> list[Segment]:
        return [Segment(bare(self.lines[place]), place + 1) for place in self.places]

    def write(self, translations: Sequence[str], path: Path) -> None:
        check_count(self.segments, translations)
        lines = list(self.lines)
        for place, translation in zip(self.places, translations, strict=True):
            before, _, after = self.lines[place].partition(bare(self.lines[place]))
            lines[place] = before + translation + after
        save(path, "\n".join(lines).encode())


def bare(line: str) -> str:
    """Without the byte-order mark before it and the carriage return after it."""
    return line.removeprefix(BOM).removesuffix("\r")


def open_txt(path: Path) -> TxtDocument:
    lines = read_text(path).split("\n")
    return TxtDocument(lines, [place for place, line in enumerate(lines) if bare(line).strip()])
