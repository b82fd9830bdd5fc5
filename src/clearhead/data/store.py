"""The store: all pairs as integers on disk, written once, read at random, in memory that hardly grows with it.

    store.json                        counts, sizes, checksums, fingerprint of what it was made from
    source.tokens   target.tokens     every value, one row after the other (uint16 when they fit, else uint32)
    source.counts   target.counts     how many values each row has
    source.lengths  target.lengths    how many tokens each row makes, where that is another number

The integers are token ids as a rule. With BPE-dropout they are word indices, cut into tokens anew each epoch;
then the lengths in tokens stand beside them, for batching. The store does not mind which.

Opening checks every byte against `store.json`; whatever is wrong, the way out is to build it again, with
`build_store` of `store_builder.py`.

Knows rows, files and checksums. Refuses to know text, tokenizers, batches and epochs.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from clearhead.data.columns import ArrayFile, Column, Ragged, check_file, read_array
from clearhead.errors import DataError, DiskError

FORMAT = 1
HEADER = "store.json"

Side = Literal["source", "target"]


class Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class SideHeader(Strict):
    """One side's files."""

    tokens: ArrayFile
    counts: ArrayFile
    lengths: ArrayFile | None

    def named(self, side: Side) -> dict[str, ArrayFile]:
        files = {f"{side}.tokens": self.tokens, f"{side}.counts": self.counts}
        return files if self.lengths is None else {**files, f"{side}.lengths": self.lengths}


class Header(Strict):
    """The content of `store.json`."""

    format: int
    fingerprint: str
    pairs: int = Field(ge=1)
    dropped: int = Field(ge=0)
    max_tokens: int
    source: SideHeader
    target: SideHeader

    def files(self) -> dict[str, ArrayFile]:
        return {**self.source.named("source"), **self.target.named("target")}

    def content_hash(self) -> str:
        """SHA-256 over all data, whatever it was made from: equal hashes are equal rows in equal order."""
        lines = [f"{name} {file.dtype} {file.items} {file.sha256}" for name, file in sorted(self.files().items())]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()


class Store:
    """An open store. `source(i)` and `target(i)` are the rows; `read` takes many at once."""

    def __init__(self, folder: Path, header: Header) -> None:
        self.folder = folder
        self.header = header
        self.content_hash = header.content_hash()
        self.columns = {side: self._column(side) for side in ("source", "target")}
        self.source_lengths = self._lengths("source")
        self.target_lengths = self._lengths("target")
        self.n_source_tokens = int(self.source_lengths.sum(dtype=np.int64))
        self.n_target_tokens = int(self.target_lengths.sum(dtype=np.int64))

    def _column(self, side: Side) -> Column:
        files: SideHeader = getattr(self.header, side)
        counts = read_array(self.folder / f"{side}.counts", files.counts)
        if len(counts) != self.header.pairs:
            raise DataError(f"has {len(counts)} rows of {side}s for {self.header.pairs} pairs", file=self.folder)
        return Column(self.folder / f"{side}.tokens", files.tokens, counts)

    def _lengths(self, side: Side) -> np.ndarray:
        entry: ArrayFile | None = getattr(self.header, side).lengths
        if entry is None:
            return self.columns[side].counts
        lengths = read_array(self.folder / f"{side}.lengths", entry)
        if len(lengths) != self.header.pairs:
            raise DataError(f"has {len(lengths)} {side} lengths for {self.header.pairs} pairs", file=self.folder)
        return lengths

    def __len__(self) -> int:
        return self.header.pairs

    @property
    def dropped(self) -> int:
        """Pairs left out because a side was longer than max_tokens."""
        return self.header.dropped

    def read(self, side: Side, rows: np.ndarray) -> Ragged:
        return self.columns[side].read(rows)

    def row(self, side: Side, index: int) -> np.ndarray:
        if not 0 <= index < len(self):
            raise IndexError(f"row {index} of a store of {len(self)} pairs")
        return self.read(side, np.array([index])).values

    def source(self, index: int) -> np.ndarray:
        return self.row("source", index)

    def target(self, index: int) -> np.ndarray:
        return self.row("target", index)


def open_store(folder: Path, fingerprint: str) -> Store:
    """The store in this folder, every byte checked, if it was made from what `fingerprint` stands for."""
    header = read_header(folder / HEADER)
    if header.fingerprint != fingerprint:
        raise DataError(
            f"was made from other data or settings: fingerprint {header.fingerprint}, wanted {fingerprint}",
            file=folder,
            hint="build the store again",
        )
    for name, entry in header.files().items():
        check_file(folder / name, entry)
    return Store(folder, header)


def read_header(path: Path) -> Header:
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise DataError("no store here", file=path.parent, hint="build it first") from None
    except OSError as error:
        raise DiskError(f"cannot be read: {error.strerror}", file=path) from None
    except ValueError as error:
        raise DataError(f"is damaged: {error}", file=path, hint="build the store again") from None
    if isinstance(table, dict) and table.get("format") != FORMAT:
        message = f"has format {table.get('format')}, this version reads format {FORMAT}"
        raise DataError(message, file=path, hint="build the store again")
    try:
        return Header.model_validate(table)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise DataError(f"is damaged: {first['msg']}", file=path, field=field, hint="build the store again") from None
