"""Tab-separated pairs, one per line.

Tabs separate and nothing quotes, unless it is asked for: a quotation mark is a character like any other. Every line has
as many columns as the first; a line without anything on it is passed over. Knows headers and columns. Refuses commas.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from clearhead.config import DataSettings
from clearhead.data.readers.columns import asked_columns, named_pair, text_columns
from clearhead.data.readers.languages import is_code, languages_of_file, orient
from clearhead.data.readers.lines import read_lines
from clearhead.data.readers.pairs import Guess, Pair
from clearhead.data.readers.quotes import looks_quoted, unquote
from clearhead.errors import DataError, UsageError, nearest

SAMPLE = 200  # lines looked at to guess the columns
SAMPLED_LENGTH = 1000  # characters of each of their cells


@dataclass(frozen=True)
class TsvFile:
    path: Path
    guess: Guess
    columns: tuple[int, int]
    width: int
    header: bool
    settings: DataSettings

    def read(self, skipped: Counter[str]) -> Iterator[Pair]:
        name, width, (source, target) = str(self.path), self.width, self.columns
        quoted = self.settings.quotes == "csv"
        lines = enumerate(read_lines(self.path, self.settings.bad_utf8, skipped), start=1)
        waiting_for_header = self.header
        for number, line in lines:
            if line is None:
                continue
            cells = line.split("\t")
            if len(cells) != width:
                if line.strip():
                    raise wrong_width(self.path, number, width, cells)
                skipped["blank line"] += 1
            elif waiting_for_header:
                waiting_for_header = False
            elif quoted:
                yield Pair(unquote(cells[source]), unquote(cells[target]), name, number)
            else:
                yield Pair(cells[source], cells[target], name, number)


def wrong_width(path: Path, line: int, expected: int, cells: Sequence[str]) -> DataError:
    hint = "columns are separated by one tab each; a tab inside a sentence must become a space"
    if any(cell.count('"') % 2 for cell in cells):
        hint += "; so must a line break, which a program may have put into quotation marks"
    return DataError(
        f"{expected} columns expected as on the first line, {len(cells)} found", file=path, line=line, hint=hint
    )


def open_tsv(path: Path, settings: DataSettings) -> TsvFile:
    rows = sample_rows(path, settings)
    if len(rows[0]) < 2:
        raise DataError("2 columns expected, 1 found", file=path, line=1, hint="separate source and target by a tab")
    columns, header, notes = choose_columns(path, rows, settings)
    names = header_languages(rows[0], columns, settings) if header else (None, None)
    if names == (None, None) and len(rows[0]) == 2:
        names = languages_of_file(path)
    if settings.columns is not None:  # columns were named, source first: they decide, languages only label them
        source, target = settings.source or names[0], settings.target or names[1]
    else:
        swap, source, target = orient(names[0], names[1], settings)
        columns = (columns[1], columns[0]) if swap else columns
    places = str(columns[0] + 1), str(columns[1] + 1)
    notes += quotes_said(rows[header:], columns, settings)
    guess = Guess(str(path), "TSV", places, "columns", source, target, tuple(notes))
    return TsvFile(path, guess, columns, len(rows[0]), header, settings)


def quotes_said(rows: Sequence[Sequence[str]], columns: tuple[int, int], settings: DataSettings) -> list[str]:
    """What becomes of quotation marks that a program put around cells."""
    if settings.quotes == "csv":
        return ["quotation marks around cells are taken off"]
    found = [n for n in sorted(columns) if looks_quoted([row[n] for row in rows if len(row) > n])]
    if not found:
        return []
    named = " and ".join(f"column {column + 1}" for column in found)
    return [f"cells of {named} in quotation marks, read as text: --set data.quotes=csv takes them off"]


def header_languages(
    header: Sequence[str], columns: tuple[int, int], settings: DataSettings
) -> tuple[str | None, str | None]:
    """The languages its columns are named for."""
    names = [header[column].strip() for column in columns]
    codes = [name if is_code(name) or name in (settings.source, settings.target) else None for name in names]
    return codes[0], codes[1]


def sample_rows(path: Path, settings: DataSettings) -> list[list[str]]:
    """The first lines that are not blank, as the beginnings of their cells."""
    lines = (line for line in read_lines(path, settings.bad_utf8) if line and line.strip())
    cells = ([*map(unquote, line.split("\t"))] if settings.quotes == "csv" else line.split("\t") for line in lines)
    rows = [[cell[:SAMPLED_LENGTH] for cell in row] for row in islice(cells, SAMPLE)]
    if not rows:
        raise DataError("holds nothing but blank lines", file=path)
    return rows


def choose_columns(
    path: Path, rows: Sequence[Sequence[str]], settings: DataSettings
) -> tuple[tuple[int, int], bool, list[str]]:
    """The two columns, whether the first line is a header, and what to say about it."""
    first = rows[0]
    asked = asked_columns(settings)
    if asked and isinstance(asked[0], str):
        return named_columns(path, first, (str(asked[0]), str(asked[1]))), True, ["the first line is the header"]
    header = named_pair(first, settings) if asked is None else header_or_none(first, settings)
    notes = ["the first line is the header"] if header else []
    if asked:
        if max(int(asked[0]), int(asked[1])) >= len(first):
            raise UsageError(
                f"column {max(int(asked[0]), int(asked[1])) + 1} asked for, {len(first)} there",
                file=path,
                field="data.columns",
            )
        return (int(asked[0]), int(asked[1])), bool(header), notes
    if header:
        return header, True, notes
    if len(first) == 2:
        return (0, 1), False, []
    return guess_columns(path, rows), False, [f"guessed from {len(first)} columns"]


def header_or_none(first: Sequence[str], settings: DataSettings) -> tuple[int, int] | None:
    """A header beside numbered columns is only to be passed over: its languages need not be those asked for."""
    return named_pair(first, settings.model_copy(update={"source": None, "target": None}))


def named_columns(path: Path, first: Sequence[str], names: tuple[str, str]) -> tuple[int, int]:
    header = [cell.strip() for cell in first]
    lower = [cell.lower() for cell in header]
    found: list[int] = []
    for name in names:
        if name not in header and name.lower() not in lower:
            likely = nearest(name, header)
            hint = f"did you mean {likely}?" if likely else 'columns can also be given by number: "1,2"'
            listed = ", ".join(cell[:30] for cell in header[:20])
            raise UsageError(
                f"the first line names no column {name!r}; it reads: {listed}", file=path, line=1, hint=hint
            )
        found.append(header.index(name) if name in header else lower.index(name.lower()))
    return found[0], found[1]


def guess_columns(path: Path, rows: Sequence[Sequence[str]]) -> tuple[int, int]:
    """The first two columns that look like sentences: identifiers, scores, codes and addresses are passed over."""
    width = len(rows[0])
    texts = text_columns([row for row in rows if len(row) == width])
    if len(texts) < 2:
        raise UsageError(
            f"which of the {width} columns are source and target?",
            file=path,
            field="data.columns",
            hint='say so by number, for example data.columns = "1,2"',
        )
    return texts[0], texts[1]
