"""What every reader gives: pairs with their place, and a sentence on what was guessed.

Knows how several files become one stream. Refuses to know any format.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from clearhead.errors import DataError


class Pair(NamedTuple):
    """A sentence and its translation, and where they stood."""

    source: str
    target: str
    file: str
    line: int


@dataclass(frozen=True)
class Guess:
    """How a file is read. `str()` is the sentence people see."""

    file: str
    format: str
    places: tuple[str, str] = ("", "")
    """What stands for each side in this format: "1" and "2", "msgid" and "msgstr"; empty where languages say it all."""
    kind: str = ""
    """What those places are: "columns", "fields"."""
    source: str | None = None
    target: str | None = None
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        sides = " → ".join(name_side(*side) for side in zip(self.places, (self.source, self.target), strict=True))
        notes = "".join(f"; {note}" for note in self.notes)
        return f"{self.file}: {self.format}, {self.kind + ' ' if self.kind else ''}{sides}{notes}"


def name_side(place: str, language: str | None) -> str:
    if not place:
        return language or "?"
    return f"{place} ({language})" if language and language != place else place


class Source(Protocol):
    """One file, or two that belong together, ready to be read any number of times."""

    @property
    def guess(self) -> Guess: ...

    def read(self, skipped: Counter[str]) -> Iterator[Pair]:
        """Every pair, in order; what was passed over is counted by reason."""
        ...


class Pairs:
    """All pairs of all files, in order: iterate as often as you like, in memory that does not grow.

    `said` tells what was guessed, a sentence per file; `skipped` counts what the latest iteration passed over.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = tuple(sources)
        self.skipped: Counter[str] = Counter()

    @property
    def guesses(self) -> list[Guess]:
        return [source.guess for source in self.sources]

    @property
    def said(self) -> list[str]:
        return [str(guess) for guess in self.guesses]

    @property
    def passed_over(self) -> list[str]:
        """What the latest iteration passed over, for people."""
        return passed_over(self.skipped)

    @property
    def source(self) -> str | None:
        """The source's language, where a file or a person named it."""
        return next((guess.source for guess in self.guesses if guess.source), None)

    @property
    def target(self) -> str | None:
        return next((guess.target for guess in self.guesses if guess.target), None)

    def __iter__(self) -> Iterator[Pair]:
        self.skipped = skipped = Counter[str]()
        for source in self.sources:
            yield from source.read(skipped)


def passed_over(skipped: Mapping[str, int]) -> list[str]:
    return [f"{count:,} × {reason}, passed over while reading" for reason, count in skipped.items()]


def refuse_if_empty(source: Source) -> None:
    """A file without a single pair is an error before any work, with the counts of what it holds instead."""
    skipped = Counter[str]()
    if next(source.read(skipped), None) is not None:
        return
    counts = ", ".join(f"{count:,} × {reason}" for reason, count in skipped.items())
    raise DataError(
        f"holds no pairs ({counts})" if counts else "holds no pairs: it is empty or blank",
        file=source.guess.file,
        hint=f"it was read as {source.guess}",
    )
