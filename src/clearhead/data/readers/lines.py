"""Bytes to lines, by one policy for every text format.

A line ends at "\n" and nowhere else; one "\r" before it belongs to the ending. U+2028, U+0085, form feed and their
like stay inside the line (the data report counts them). Text is UTF-8, with or without a byte-order mark; anything
else is an error with its place, or replaced, or skipped, as asked. Gzip is recognised by its content.

Memory: a block of 1 MiB, or the longest line, which may have at most 64 MiB.
"""

from __future__ import annotations

import codecs
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Literal

from clearhead.data.readers.opening import open_bytes, read_block
from clearhead.errors import DataError

BLOCK = 1 << 20
LONGEST = 64 << 20

BadBytes = Literal["error", "replace", "skip"]


def read_lines(path: Path, bad_utf8: BadBytes = "error", skipped: Counter[str] | None = None) -> Iterator[str | None]:
    """The lines without their endings; None stands for a line that was skipped, so that counting goes on."""
    counts = Counter[str]() if skipped is None else skipped
    number = offset = 0
    with open_bytes(path) as stream:
        for block in whole_lines(stream, path):
            if not offset and block.startswith(codecs.BOM_UTF8):
                block, offset = block[3:], 3
            lines = decode_block(block, path, number, offset, bad_utf8, counts)
            yield from lines
            number += len(lines)
            offset += len(block)


def whole_lines(stream: BinaryIO, path: Path) -> Iterator[bytes]:
    """Blocks that end where a line ends."""
    parts: list[bytes] = []
    waiting = 0
    while block := read_block(stream, path, BLOCK):
        end = block.rfind(b"\n") + 1
        if end:
            yield b"".join([*parts, block[:end]])
            parts, waiting = [block[end:]], len(block) - end
        else:
            parts.append(block)
            waiting += len(block)
        if waiting > LONGEST:
            raise DataError(
                f"a line is longer than {LONGEST >> 20} MiB", file=path, hint="is this a file of sentences?"
            )
    if waiting:
        yield b"".join(parts)


def decode_block(
    block: bytes, path: Path, number: int, offset: int, bad_utf8: BadBytes, counts: Counter[str]
) -> list[str | None]:
    lines: list[str | None]
    try:
        lines = [*block.decode().split("\n")]
    except UnicodeDecodeError:
        lines = decode_each(block, path, number, offset, bad_utf8, counts)
    if block.endswith(b"\n"):
        lines.pop()
    if b"\r" in block:
        lines = [line[:-1] if line and line.endswith("\r") else line for line in lines]
    return lines


def decode_each(
    block: bytes, path: Path, number: int, offset: int, bad_utf8: BadBytes, counts: Counter[str]
) -> list[str | None]:
    """The slow road, for a block with bytes that are not UTF-8."""
    lines: list[str | None] = []
    for raw in block.split(b"\n"):
        try:
            lines.append(raw.decode())
        except UnicodeDecodeError as error:
            if bad_utf8 == "error":
                raise not_utf8(path, number + len(lines) + 1, offset + error.start, raw[error.start]) from None
            counts[f"line that is not UTF-8, {'skipped' if bad_utf8 == 'skip' else 'repaired'}"] += 1
            lines.append(None if bad_utf8 == "skip" else raw.decode(errors="replace"))
        offset += len(raw) + 1
    return lines


def not_utf8(path: Path, line: int, offset: int, byte: int) -> DataError:
    return DataError(
        f"byte 0x{byte:02X} at offset {offset:,} is not UTF-8",
        file=path,
        line=line,
        hint='convert the file (for example `iconv -f LATIN1 -t UTF-8`), or set data.bad_utf8 to "replace" or "skip"',
    )


def count_lines(path: Path) -> int:
    """How many lines `read_lines` would give, without decoding any."""
    total = 0
    last = b"\n"
    with open_bytes(path) as stream:
        while block := read_block(stream, path, BLOCK):
            total += block.count(b"\n")
            last = block
    return total + (not last.endswith(b"\n"))
