"""The header of a safetensors file, checked before any of its tensors is believed or given memory.

    8 bytes little-endian length · JSON {name: {dtype, shape, data_offsets}} · the tensors' bytes

Offsets must be contiguous from 0 to the end of the file, each span as long as its shape and type say.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from clearhead.errors import ModelFileError
from clearhead.files.manifest import what_is

LARGEST_HEADER = 10_000_000
MOST_TENSORS = 100_000
LONGEST_NAME = 500
DEEPEST = 8
BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1, "U64": 8}

Header = dict[str, tuple[str, tuple[int, ...]]]


def read_checked(path: Path) -> bytes:
    """The file's bytes, once its header has been checked."""
    check_tensors(path)
    return path.read_bytes()


def check_tensors(path: Path) -> Header:
    """Name → (dtype, shape) of every tensor, or an error that says what is wrong."""
    try:
        if path.is_symlink() or not path.is_file():
            raise ModelFileError("is missing or not a plain file", file=path)
        size = path.stat().st_size
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if size < 8 or length > min(size - 8, LARGEST_HEADER):
                raise ModelFileError(
                    f"is not a safetensors file: its header would take {length:,} of {size:,} bytes",
                    file=path,
                    hint=what_is(path),
                )
            raw = file.read(length)
    except OSError as error:
        raise ModelFileError(f"cannot be read: {error.strerror}", file=path) from None
    return check_entries(parse(raw, path), size - 8 - length, path)


def parse(raw: bytes, path: Path) -> dict[str, Any]:
    def no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({k for k, _ in pairs}) != len(pairs):
            raise ValueError("a name stands twice")
        return dict(pairs)

    try:
        header = json.loads(raw.decode("utf-8"), object_pairs_hook=no_duplicates)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"has a header that is not valid JSON: {str(error)[:200]}", file=path) from None
    if not isinstance(header, dict) or len(header) > MOST_TENSORS:
        raise ModelFileError("has a header that is not an object of tensors", file=path)
    return header


def check_entries(header: dict[str, Any], data_size: int, path: Path) -> Header:
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise ModelFileError("has metadata that is not text", file=path, field="__metadata__")
    spans: list[tuple[int, int, str]] = []
    found: Header = {}
    for name, entry in header.items():
        dtype, shape, (start, end) = check_entry(name, entry, path)
        spans.append((start, end, name))
        found[name] = (dtype, shape)
    at = 0
    for start, end, name in sorted(spans):
        if start != at:
            raise ModelFileError(f"has a hole or overlap at byte {at:,}", file=path, field=name)
        at = end
    if at != data_size:
        raise ModelFileError(f"holds {data_size:,} bytes of tensors, its header speaks of {at:,}", file=path)
    return found


def check_entry(name: str, entry: Any, path: Path) -> tuple[str, tuple[int, ...], tuple[int, int]]:
    try:
        dtype, shape, (start, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
        numbers = [*shape, start, end]
        if set(entry) != {"dtype", "shape", "data_offsets"} or len(name) > LONGEST_NAME or len(shape) > DEEPEST:
            raise ValueError
        if any(type(n) is not int or n < 0 or n > 2**48 for n in numbers):
            raise ValueError
        if end - start != math.prod(shape) * BYTES[dtype]:
            raise ValueError
    except (KeyError, TypeError, ValueError):
        raise ModelFileError(f"has a malformed entry: {str(entry)[:200]}", file=path, field=name[:100]) from None
    return dtype, tuple(shape), (start, end)
