"""Rows of integers on disk: one flat array of values, one array of how many values each row has.

A `Column` reads any rows at random with one small `pread` each, so that what it holds in memory is the counts
(2 bytes a row) and the place of every 16th row, whatever the size of the file. A memory map would be faster
still, but its touched pages count as the process's memory, and a file cut short under it kills the process
instead of raising an error.

Knows arrays, files, sizes and checksums. Refuses to know what the integers mean.
"""

from __future__ import annotations

import hashlib
import os
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from clearhead.errors import DataError, DiskError
from clearhead.files import disk

BLOCK = 16  # rows between two remembered places: 0.5 bytes a row, and at most 15 counts are added up to find one
CHUNK = 1 << 20


class ArrayFile(BaseModel):
    """What the header says about one file: enough to refuse a file that is not the one written."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    dtype: Literal["<u2", "<u4"]
    items: int = Field(ge=0)
    sha256: str

    @property
    def size(self) -> int:
        return self.items * np.dtype(self.dtype).itemsize


def smallest_dtype(largest: int) -> Literal["<u2", "<u4"]:
    return "<u2" if largest < 1 << 16 else "<u4"


class ArrayWriter:
    """Appends to one flat array; size and SHA-256 are counted on the way."""

    def __init__(self, path: Path, largest: int) -> None:
        self.path = path
        self.largest = largest
        self.dtype = smallest_dtype(largest)
        self.items = 0
        self.digest = hashlib.sha256()
        with disk.disk_errors(path):
            self.file = path.open("wb")

    def append(self, values: np.ndarray) -> None:
        if len(values) and not 0 <= (worst := extreme(values)) <= self.largest:
            raise DataError(f"value {worst} is not within 0 … {self.largest}", file=self.path.name)
        data = values.astype(self.dtype).tobytes()
        self.digest.update(data)
        self.items += len(values)
        with disk.disk_errors(self.path):
            self.file.write(data)

    def finish(self) -> ArrayFile:
        """Everything on the disk, not only in the system's memory."""
        with disk.disk_errors(self.path):
            self.file.flush()
            os.fsync(self.file.fileno())
            self.file.close()
        return ArrayFile(dtype=self.dtype, items=self.items, sha256=self.digest.hexdigest())

    def abandon(self) -> None:
        """Let go of a file that will be removed; a full disk must not complain a second time."""
        with suppress(OSError):
            self.file.close()


def extreme(values: np.ndarray) -> int:
    """The smallest value if it is negative, the largest otherwise."""
    low = int(values.min())
    return low if low < 0 else int(values.max())


def check_file(path: Path, entry: ArrayFile) -> None:
    """Refuse a file whose size or content is not what the header says. Reads it once, in small pieces."""
    digest = hashlib.sha256()
    try:
        size = path.stat().st_size
        if size != entry.size:
            raise DataError(f"has {size} bytes, the header says {entry.size}", file=path)
        with path.open("rb") as file:
            while piece := file.read(CHUNK):
                digest.update(piece)
    except FileNotFoundError:
        raise DataError("is missing from the store", file=path) from None
    except OSError as error:
        raise DiskError(f"cannot be read: {error.strerror}", file=path) from None
    if digest.hexdigest() != entry.sha256:
        raise DataError(
            f"is damaged: SHA-256 {digest.hexdigest()[:12]}…, the header says {entry.sha256[:12]}…", file=path
        )


def read_array(path: Path, entry: ArrayFile) -> np.ndarray:
    """A checked file, whole, in memory."""
    return np.fromfile(path, dtype=entry.dtype)


class Ragged(NamedTuple):
    """Rows of different lengths: all values one after the other, and how many belong to each row."""

    values: np.ndarray
    counts: np.ndarray


class Column:
    """Random access to the rows of one side."""

    def __init__(self, path: Path, entry: ArrayFile, counts: np.ndarray) -> None:
        self.path = path
        self.counts = counts
        self.dtype = np.dtype(entry.dtype)
        self.block_starts = block_starts(counts)
        if int(self.block_starts[-1]) != entry.items:
            raise DataError(f"holds {entry.items} values, its counts add up to {self.block_starts[-1]}", file=path)
        self.descriptor = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self.descriptor)

    def starts(self, rows: np.ndarray) -> np.ndarray:
        """Where each row begins: its block's place, plus the rows before it in the block."""
        block, place = np.divmod(rows, BLOCK)
        nearby = np.minimum(block[:, None] * BLOCK + np.arange(BLOCK), len(self.counts) - 1)
        before = np.where(np.arange(BLOCK) < place[:, None], self.counts[nearby], 0)
        return self.block_starts[block] + before.sum(axis=1, dtype=np.int64)

    def read(self, rows: np.ndarray) -> Ragged:
        """These rows, in this order."""
        rows = np.asarray(rows, dtype=np.int64)
        counts = self.counts[rows].astype(np.int64)
        width, pread, descriptor = self.dtype.itemsize, os.pread, self.descriptor
        sizes, places = (counts * width).tolist(), (self.starts(rows) * width).tolist()
        data = b"".join([pread(descriptor, size, place) for size, place in zip(sizes, places, strict=True)])
        if len(data) != sum(sizes):
            raise DataError("was cut short while it was in use", file=self.path)
        return Ragged(np.frombuffer(data, self.dtype), counts)


def block_starts(counts: np.ndarray) -> np.ndarray:
    """The place of every BLOCK-th row's first value, and, last, the number of values."""
    whole = len(counts) // BLOCK * BLOCK
    sums = counts[:whole].reshape(-1, BLOCK).sum(axis=1, dtype=np.int64)
    rest = counts[whole:].sum(dtype=np.int64)
    return np.concatenate(([0], np.cumsum(np.append(sums, rest))))
