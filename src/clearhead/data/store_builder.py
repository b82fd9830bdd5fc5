"""Writing a store: pairs in, encoded chunk by chunk, in memory that does not grow with them.

A store is there whole or not at all. It grows in a folder called `….partial`, which takes the store's name when
everything is on the disk; an error or Ctrl-C removes it, and what a killed process leaves behind is removed by
the next attempt.

Knows chunks, limits and folders. Refuses to know what a token is: `Coding` is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, compress, islice
from pathlib import Path

import numpy as np

from clearhead.data.columns import ArrayWriter
from clearhead.data.store import FORMAT, HEADER, Header, Side, SideHeader, Store
from clearhead.errors import DataError
from clearhead.files import disk
from clearhead.files.atomic import PARTIAL, replace_folder

CHUNK = 8192  # pairs encoded at once

Rows = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Coding:
    """How one side's texts become rows of integers, each below `n_values`."""

    encode: Callable[[list[str]], Rows]
    n_values: int
    count: Callable[[Rows], Sequence[int]] | None = None
    """Tokens each row makes, where that is not its number of integers."""


def build_store(
    pairs: Iterable[Sequence[str]],
    source: Coding,
    target: Coding,
    folder: Path,
    *,
    fingerprint: str,
    max_tokens: int,
    progress: Callable[[int], None] | None = None,
) -> Store:
    """Encode the pairs, 8,192 at a time, into a new store at `folder`; an older store there is replaced.

    Pairs with more than `max_tokens` on a side are left out and counted. `progress` is told the pairs seen so far.
    """
    with replacing(folder) as partial:
        header = write_store(pairs, source, target, partial, fingerprint, max_tokens, progress)
        disk.write_synced(partial / HEADER, (header.model_dump_json(indent=2) + "\n").encode())
        disk.sync_folder(partial)
    return Store(folder, header)


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """A new folder that takes the name `folder` when the block ends well, and is removed when it does not."""
    if folder.exists() and not is_replaceable(folder):
        raise DataError("is there already and is not a store", file=folder, hint="choose another folder")
    partial = folder.with_name(folder.name + PARTIAL)
    disk.remove_tree(partial)
    try:
        disk.make_folder(partial)
        yield partial
        if folder.exists():
            replace_folder(partial, folder)
        else:
            disk.rename(partial, folder)
        disk.sync_folder(folder.parent)
    finally:
        disk.remove_tree(partial)


def is_replaceable(folder: Path) -> bool:
    """Empty, or nothing in it but a store's files, be they damaged or incomplete."""
    ours = {HEADER, *(f"{side}.{kind}" for side in ("source", "target") for kind in ("tokens", "counts", "lengths"))}
    return folder.is_dir() and ours.issuperset(path.name for path in folder.iterdir())


def write_store(
    pairs: Iterable[Sequence[str]],
    source: Coding,
    target: Coding,
    folder: Path,
    fingerprint: str,
    max_tokens: int,
    progress: Callable[[int], None] | None,
) -> Header:
    """Chunk by chunk, so that memory does not grow with the pairs."""
    sides = SideWriter(folder, "source", source, max_tokens), SideWriter(folder, "target", target, max_tokens)
    seen = kept = 0
    stream = iter(pairs)
    try:
        while chunk := list(islice(stream, CHUNK)):
            kept += write_chunk(chunk, *sides, max_tokens)
            seen += len(chunk)
            if progress is not None:
                progress(seen)
        if not kept:
            raise DataError(
                f"no pairs to store: {seen} read, {seen} with more than {max_tokens} tokens on a side",
                field="data.max_tokens",
                hint="raise data.max_tokens and model.max_len, or look at the data with `clearhead data check`",
            )
        return Header(
            format=FORMAT,
            fingerprint=fingerprint,
            pairs=kept,
            dropped=seen - kept,
            max_tokens=max_tokens,
            source=sides[0].finish(),
            target=sides[1].finish(),
        )
    finally:
        for side in sides:
            side.abandon()


def write_chunk(chunk: list[Sequence[str]], source: SideWriter, target: SideWriter, max_tokens: int) -> int:
    """Encode and append one chunk; the number of pairs kept."""
    source_rows = source.coding.encode([pair[0] for pair in chunk])
    target_rows = target.coding.encode([pair[1] for pair in chunk])
    source_sizes, target_sizes = source.measure(source_rows), target.measure(target_rows)
    keep = np.maximum(source_sizes.max(axis=0), target_sizes.max(axis=0)) <= max_tokens
    source.append(source_rows, source_sizes, keep)
    target.append(target_rows, target_sizes, keep)
    return int(keep.sum())


class SideWriter:
    """Writes one side's files."""

    def __init__(self, folder: Path, side: Side, coding: Coding, max_tokens: int) -> None:
        self.coding = coding
        self.tokens = ArrayWriter(folder / f"{side}.tokens", coding.n_values - 1)
        self.counts = ArrayWriter(folder / f"{side}.counts", max_tokens)
        self.lengths = ArrayWriter(folder / f"{side}.lengths", max_tokens) if coding.count else None

    def measure(self, rows: Rows) -> np.ndarray:
        """[2, rows]: values in each row, tokens it makes."""
        counts = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        lengths = counts if self.coding.count is None else np.asarray(self.coding.count(rows), dtype=np.int64)
        return np.stack([counts, lengths])

    def append(self, rows: Rows, sizes: np.ndarray, keep: np.ndarray) -> None:
        counts, lengths = sizes[:, keep]
        values = chain.from_iterable(compress(rows, keep))
        self.tokens.append(np.fromiter(values, dtype=np.int64, count=int(counts.sum())))
        self.counts.append(counts)
        if self.lengths is not None:
            self.lengths.append(lengths)

    def finish(self) -> SideHeader:
        lengths = None if self.lengths is None else self.lengths.finish()
        return SideHeader(tokens=self.tokens.finish(), counts=self.counts.finish(), lengths=lengths)

    def abandon(self) -> None:
        for writer in (self.tokens, self.counts, self.lengths):
            if writer is not None:
                writer.abandon()
