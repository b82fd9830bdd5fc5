"""The header of a safetensors file is believed only when every number in it fits the others and the file."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save

from clearhead.errors import ModelFileError
from clearhead.files import check_tensors

GOOD = {"a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}


def written(path: Path, header: Any, data: bytes = b"\0" * 24, length: int | None = None) -> Path:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(raw) if length is None else length) + raw + data)
    return path


def changed(**fields: Any) -> dict[str, Any]:
    return {"a": {**GOOD["a"], **fields}}


def test_a_good_one(tmp_path: Path) -> None:
    assert check_tensors(written(tmp_path / "t", GOOD)) == {"a": ("F32", (2, 3))}


def test_what_the_library_writes(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(save({"x": torch.zeros(3, dtype=torch.bfloat16), "y": torch.zeros(()), "z": torch.zeros(0, 2)}))
    assert check_tensors(path) == {"x": ("BF16", (3,)), "y": ("F32", ()), "z": ("F32", (0, 2))}


BAD: dict[str, Any] = {
    "unknown type": changed(dtype="F33"),
    "type no text": changed(dtype=3),
    "negative size": changed(shape=[-2, -3]),
    "size no number": changed(shape=[2.0, 3]),
    "truth for a size": changed(shape=[True, 6]),
    "huge product": changed(shape=[2**40, 2**40]),
    "huge size": changed(shape=[2**60]),
    "many dimensions": changed(shape=[1] * 9),
    "shape no list": changed(shape=24),
    "span too long": changed(data_offsets=[0, 25]),
    "span backwards": changed(data_offsets=[24, 0]),
    "span of three": changed(data_offsets=[0, 12, 24]),
    "beyond the end": changed(data_offsets=[24, 48]),
    "hole": {**changed(shape=[5], data_offsets=[4, 24])},
    "overlap": {**GOOD, "b": {"dtype": "F32", "shape": [1], "data_offsets": [20, 24]}},
    "extra field": changed(more=1),
    "missing field": {"a": {"dtype": "F32", "shape": [6]}},
    "entry no object": {"a": 1},
    "header a list": [GOOD],
    "metadata no text": {**GOOD, "__metadata__": {"a": 1}},
    "metadata a list": {**GOOD, "__metadata__": ["a"]},
    "long name": {"n" * 501: GOOD["a"]},
    "a name twice": json.dumps(GOOD).encode()[:-1] + b"," + json.dumps(GOOD).encode()[1:],
    "deep": b"[" * 200_000,
    "no UTF-8": b'{"\xff": 1}',
    "infinite": b'{"a": {"dtype": "F32", "shape": [Infinity], "data_offsets": [0, 24]}}',
}


@pytest.mark.parametrize("name", BAD)
def test_bad_headers(name: str, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError) as caught:
        check_tensors(written(tmp_path / "t", BAD[name]))
    assert str(tmp_path / "t") in str(caught.value) and len(str(caught.value)) < 1500


@pytest.mark.parametrize("length", [0, 1, 2**63, 2**64 - 1, 10_000_001, 1000])
def test_bad_lengths(length: int, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError):
        check_tensors(written(tmp_path / "t", GOOD, length=length))


@pytest.mark.parametrize("data", [b"", b"\0" * 23, b"\0" * 25, b"\0" * 24 + b"PK\x03\x04"])
def test_more_or_less_data_than_said(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="its header speaks of 24"):
        check_tensors(written(tmp_path / "t", GOOD, data))


def test_things_in_place_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(written(tmp_path / "t", GOOD))
    for path in (tmp_path, tmp_path / "link", tmp_path / "missing"):
        with pytest.raises(ModelFileError, match="is missing or not a plain file"):
            check_tensors(path)
    (tmp_path / "lfs").write_bytes(b"version https://git-lfs.github.com/spec/v1\n" + b"oid sha256:00\n" * 9)
    with pytest.raises(ModelFileError, match="git lfs pull"):
        check_tensors(tmp_path / "lfs")


@settings(deadline=None, max_examples=150)
@given(content=st.binary(max_size=200), honest=st.booleans())
def test_any_bytes(content: bytes, honest: bool, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(struct.pack("<Q", len(content)) + content if honest else content)
    try:
        check_tensors(path)
    except ModelFileError:
        return
    assert content.startswith(b"{") and honest
