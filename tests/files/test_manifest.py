"""What a manifest promises is checked, and whatever stands in its place is refused with our own error."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clearhead.errors import ModelFileError
from clearhead.files import MANIFEST, publish, read_manifest, sha256_of, verify

LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
PAGE = b"\xef\xbb\xbf\n<!DOCTYPE html><html><body>Sign in</body></html>"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    publish(tmp_path / "f", {"a": b"x" * 300, "b": b"y"}, {"kind": "test"})
    return tmp_path / "f"


def edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    content = json.loads((folder / MANIFEST).read_bytes())
    change(content)
    (folder / MANIFEST).write_text(json.dumps(content))


def refused(folder: Path, *words: str) -> None:
    with pytest.raises(ModelFileError) as caught:
        verify(folder, needed=("a",))
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_whole(folder: Path) -> None:
    assert verify(folder, needed=("a", "b")).about == {"kind": "test"}


def test_a_changed_byte(folder: Path) -> None:
    (folder / "a").write_bytes(b"x" * 299 + b"z")
    refused(folder, "f/a", "is damaged: SHA-256", sha256_of(folder / "a")[:12])


def test_a_shorter_file_with_both_sizes(folder: Path) -> None:
    (folder / "a").write_bytes(b"x" * 299)
    refused(folder, "f/a", "has 299 bytes, the manifest says 300")


def test_a_missing_file(folder: Path) -> None:
    (folder / "a").unlink()
    refused(folder, "f/a", "is missing or not a plain file")


def test_a_link_is_no_plain_file(folder: Path, tmp_path: Path) -> None:
    (folder / "a").rename(tmp_path / "away")
    (folder / "a").symlink_to(tmp_path / "away")
    refused(folder, "f/a", "is missing or not a plain file")


@pytest.mark.parametrize(("content", "word"), [(LFS, "Git LFS pointer"), (PAGE, "web page")], ids=["lfs", "page"])
@pytest.mark.parametrize("name", ["a", MANIFEST])
def test_what_stands_there_instead_is_named(folder: Path, name: str, content: bytes, word: str) -> None:
    (folder / name).write_bytes(content)
    refused(folder, word)


@pytest.mark.parametrize("name", ["../a", "/etc/passwd", "..", ".", "", "a/b", "a\\b", "a\0"])
def test_names_outside_the_folder(folder: Path, name: str) -> None:
    edit(folder, lambda m: m["files"].update({name: m["files"]["a"]}))
    refused(folder, "names a file outside its folder")


@pytest.mark.parametrize("name", ["n" * 300, "\ud800"])
def test_names_no_file_can_have(folder: Path, name: str) -> None:
    edit(folder, lambda m: m["files"].update({name: m["files"]["a"]}))
    refused(folder)


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.update(format=99),
        lambda m: m.update(format=0),
        lambda m: m.update(format="1"),
        lambda m: m.update(extra=1),
        lambda m: m.pop("files"),
        lambda m: m["files"].pop("a"),
        lambda m: m["files"]["a"].update(size=-1),
        lambda m: m["files"]["a"].update(sha256="0" * 63),
        lambda m: m["files"]["a"].update(sha256=None),
        lambda m: m.update(about=[]),
    ],
)
def test_a_manifest_that_is_none(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    edit(folder, change)
    refused(folder)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"format": ' + b"9" * 5000 + b"}", b" " * 2_000_000],
    ids=["empty", "cut", "list", "null", "bytes", "deep", "long number", "too large"],
)
def test_no_manifest_at_all(folder: Path, content: bytes) -> None:
    (folder / MANIFEST).write_bytes(content)
    refused(folder, MANIFEST)


def test_things_that_would_block_or_mislead(folder: Path, tmp_path: Path) -> None:
    (folder / MANIFEST).rename(tmp_path / "manifest")
    refused(folder, "is missing")
    os.mkfifo(folder / MANIFEST)
    refused(folder, "is not a plain file")
    (folder / MANIFEST).unlink()
    (folder / MANIFEST).symlink_to(tmp_path / "manifest")
    refused(folder, "is a link")


def test_a_newer_format_says_what_to_do(folder: Path) -> None:
    edit(folder, lambda m: m.update(format=2))
    with pytest.raises(ModelFileError, match="update clearhead"):
        read_manifest(folder)
