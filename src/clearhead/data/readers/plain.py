"""Two files of plain text, a sentence per line: line n of one is the translation of line n of the other.

Pairing is everything here, so the lines are counted before anything is read: unequal counts are refused, with both
counts and the place where the pairing seems to slip. Only where it is asked for is the end of the longer file left out,
counted, and that place is told all the same: from there on the pairs are wrong ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from clearhead.config import DataSettings
from clearhead.data.readers.languages import language_of_file, orient
from clearhead.data.readers.lines import BadBytes, count_lines, read_lines
from clearhead.data.readers.pairs import Guess, Pair
from clearhead.errors import DataError


@dataclass(frozen=True)
class PlainFiles:
    source: Path
    target: Path
    guess: Guess
    settings: DataSettings

    def read(self, skipped: Counter[str]) -> Iterator[Pair]:
        name = str(self.source)
        sources = read_lines(self.source, self.settings.bad_utf8, skipped)
        targets = read_lines(self.target, self.settings.bad_utf8, skipped)
        # The files may have changed since they were counted: strict pairing still notices a difference.
        try:
            for number, (source, target) in enumerate(zip(sources, targets, strict=True), start=1):
                if source is not None and target is not None:
                    yield Pair(source, target, name, number)
        except ValueError:
            if not self.settings.drop_unpaired:
                raise unpaired(self.source, self.target) from None
            skipped["line without a partner"] += abs(count_lines(self.source) - count_lines(self.target))


def open_plain(first: Path, second: Path, settings: DataSettings) -> PlainFiles:
    languages = language_of_file(first), language_of_file(second)
    swap, source, target = orient(*languages, settings)
    if swap:
        first, second = second, first
    for path in (first, second):
        refuse_blank(path, settings.bad_utf8)
    paired = count_lines(first) == count_lines(second)
    if not paired and not settings.drop_unpaired:
        raise unpaired(first, second)
    notes = () if paired else (left_out(first, second),)
    guess = Guess(f"{first} + {second}", "plain text", (first.name, second.name), "", source, target, notes)
    return PlainFiles(first, second, guess, settings)


def refuse_blank(path: Path, bad_utf8: BadBytes) -> None:
    if not any(line and line.strip() for line in read_lines(path, bad_utf8)):
        raise DataError("holds nothing but blank lines", file=path)


def unpaired(source: Path, target: Path) -> DataError:
    """Both counts, and the first line that seems to have the wrong partner."""
    sizes = line_sizes(source), line_sizes(target)
    return DataError(
        f"{len(sizes[0]):,} lines, but {target} has {len(sizes[1]):,}; {slip_at(source, target, slip(*sizes) + 1)}",
        file=source,
        hint="line n of one file must translate line n of the other: add or remove the odd line, "
        "or leave out the end of the longer file with --drop-unpaired",
    )


def left_out(source: Path, target: Path) -> str:
    """What becomes of the end of the longer file, and whether the pairing seems right up to there."""
    sizes = line_sizes(source), line_sizes(target)
    (paired, end), line = sorted(map(len, sizes)), slip(*sizes)
    longer = source if len(sizes[0]) == end else target
    said = f"what comes after line {paired:,} of {longer.name}, up to line {end:,}, has no partner and is left out"
    return f"{said}; {slip_at(source, target, line + 1)}" if line < paired else said


def slip_at(source: Path, target: Path, line: int) -> str:
    shown = " ⟷ ".join(f"“{line_at(path, line)}”" for path in (source, target))
    return f"by their lengths the pairing seems to slip at line {line:,}: {shown}"


def line_sizes(path: Path) -> NDArray[np.float32]:
    return np.fromiter((len(line or "") for line in read_lines(path, "replace")), np.float32)


def line_at(path: Path, wanted: int) -> str:
    """That line, clipped for a message; a word for it when the file is too short."""
    for number, line in enumerate(read_lines(path, "replace"), start=1):
        if number == wanted:
            text = " ".join((line or "").split())
            return text if len(text) <= 60 else f"{text[:59]}…"
    return "no such line"


def slip(a: NDArray[np.float32], b: NDArray[np.float32]) -> int:
    """The line k that best explains the difference: before it line i pairs with i, from it on the longer file is
    that many lines ahead. Translations have similar lengths, so the best k has the least |log length ratio| in all."""
    if len(a) < len(b):
        a, b = b, a
    ahead, short = len(a) - len(b), len(b)
    x, y = np.log1p(a), np.log1p(b)
    usual = x.mean() - y.mean()
    before = np.concatenate([[0.0], np.cumsum(np.abs(x[:short] - y - usual), dtype=np.float64)])
    after = np.concatenate([[0.0], np.cumsum(np.abs(x[ahead:] - y - usual), dtype=np.float64)])
    return int(np.argmin(before + (after[-1] - after)))
