"""Arrays and text in one file, in the safetensors layout: 8 bytes of length, a JSON header, the numbers.

Every program that reads safetensors finds the numbers. Opening reads the header alone; numbers are mapped from the
file, so that only what is looked at is read. Knows bytes and numpy. Refuses to know torch, pickle and meanings.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from clearhead.errors import ModelFileError
from clearhead.files.headers import check_tensors

Array = np.ndarray[Any, Any]

DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8"}
NAMES = {np.dtype(code): name for name, code in DTYPES.items()}


def to_bytes(arrays: Mapping[str, Array], texts: Mapping[str, str]) -> bytes:
    """Widest numbers first, so that each starts at a multiple of its width; the header keeps the order given."""
    entries: dict[str, Any] = dict.fromkeys(arrays)
    parts, at = [], 0
    for name, array in sorted(arrays.items(), key=lambda item: -item[1].dtype.itemsize):
        data = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
        span = [at, at + len(data)]
        entries[name] = {"dtype": NAMES[array.dtype], "shape": list(array.shape), "data_offsets": span}
        parts.append(data)
        at += len(data)
    header = json.dumps({"__metadata__": dict(texts), **entries}, ensure_ascii=False).encode()
    header += b" " * (-len(header) % 8)
    return b"".join((len(header).to_bytes(8, "little"), header, *parts))


def from_file(path: Path) -> tuple[dict[str, Array], dict[str, str]]:
    """Arrays and texts, once the header has been checked."""
    check_tensors(path)
    with open(path, "rb") as file:
        start = 8 + int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(start - 8))
    texts = header.pop("__metadata__", {})
    if foreign := {entry["dtype"] for entry in header.values()} - set(DTYPES):
        raise ModelFileError(f"has numbers of type {', '.join(sorted(foreign))}, not of a trace", file=path)
    return {name: mapped(path, start, entry) for name, entry in header.items()}, texts


def mapped(path: Path, start: int, entry: dict[str, Any]) -> Array:
    """The numbers where they lie. An empty span cannot be mapped."""
    dtype, shape = DTYPES[entry["dtype"]], tuple(entry["shape"])
    if 0 in shape:
        return np.zeros(shape, dtype)
    return np.memmap(path, dtype, "r", start + entry["data_offsets"][0], shape)
