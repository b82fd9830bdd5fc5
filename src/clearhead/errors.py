"""What can go wrong, in words, with its exit code.

Every error a person can cause or meet is one of these classes. The command line turns any of them into one
message on stderr and its exit code; anything else that escapes is our bug and leaves with code 1.

A message says where (file, line, field), what (with the numbers), and the way out (`hint`).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path


class ClearheadError(Exception):
    """Base of all errors with a message for people. `str(error)` is the whole message."""

    exit_code = 1

    def __init__(
        self,
        message: str,
        *,
        file: str | Path | None = None,
        line: int | None = None,
        field: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.file = None if file is None else str(file)
        self.line = line
        self.field = field
        self.hint = hint

    @property
    def where(self) -> str:
        place = self.file or ""
        if self.line is not None:
            place = f"{place}:{self.line}" if place else f"line {self.line}"
        if self.field is not None:
            place = f"{place}, {self.field}" if place else self.field
        return place

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text}\n  → {self.hint}" if self.hint else text


class UsageError(ClearheadError):
    """A command or a setting that cannot be followed."""

    exit_code = 2


class DataError(ClearheadError):
    """Text, pairs or documents that cannot be used as they are."""

    exit_code = 2


class ModelFileError(ClearheadError):
    """A model folder that is damaged, incomplete, foreign or unsafe."""

    exit_code = 2


class MissingExtra(ClearheadError):
    """Something optional is not installed."""

    exit_code = 3


class DiskError(ClearheadError):
    """The disk is full, read-only or failing."""

    exit_code = 4


class NumbersError(ClearheadError):
    """Losses or gradients that are no longer finite."""

    exit_code = 5


class Interrupted(ClearheadError):
    """A signal asked us to stop; what could be saved has been saved."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word a person most likely meant, or None."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return close[0] if close else None
