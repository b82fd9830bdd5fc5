"""The manifest of a folder: size and SHA-256 of every file, written last, checked first."""

from __future__ import annotations

import codecs
import hashlib
import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from clearhead.errors import ModelFileError

MANIFEST = "manifest.json"
FORMAT = 1
LARGEST_MANIFEST = 1_000_000
PIECE = 1 << 20
AGAIN = "copy the whole folder again from where it came from"


class Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    size: int = Field(ge=0)
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class Manifest(BaseModel):
    """What a folder holds. `about` says what kind of folder it is and what made it; never a time, path or host."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    format: int = Field(ge=1)
    about: dict[str, str | int]
    files: dict[str, Entry]

    @classmethod
    def of(cls, entries: dict[str, Entry], about: dict[str, str | int]) -> Manifest:
        return cls(format=FORMAT, about=about, files=dict(sorted(entries.items())))


def sha256_of(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(PIECE):
            digest.update(piece)
    return digest.hexdigest()


def describe(data: bytes) -> Entry:
    """From the bytes as they are meant, not as a disk may have kept them."""
    return Entry(size=len(data), sha256=hashlib.sha256(data).hexdigest())


def to_bytes(manifest: Manifest) -> bytes:
    return (json.dumps(manifest.model_dump(), indent=1, sort_keys=True) + "\n").encode()


def read_manifest(folder: Path) -> Manifest:
    path = folder / MANIFEST
    data = read_json(path, LARGEST_MANIFEST)
    try:
        manifest = Manifest.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))[:200]
        raise ModelFileError(f"is not a manifest: {first['msg']}", file=path, field=field, hint=AGAIN) from None
    if manifest.format > FORMAT:
        raise ModelFileError(
            f"has format {manifest.format}; this version reads up to {FORMAT}", file=path, hint="update clearhead"
        )
    for name in manifest.files:
        if name in ("", ".", "..") or any(mark in name for mark in "/\\\0"):
            raise ModelFileError(f"names a file outside its folder: {name!r}", file=path)
    return manifest


def read_json(path: Path, largest: int) -> Any:
    """A JSON object from a file of limited size and depth."""
    try:
        if path.is_symlink():
            raise ModelFileError("is a link; model folders hold plain files", file=path)
        if path.exists() and not path.is_file():
            raise ModelFileError("is not a plain file", file=path)
        size = path.stat().st_size
        if size > largest:
            raise ModelFileError(f"has {size:,} bytes, more than the {largest:,} allowed", file=path)
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        raise ModelFileError("is missing", file=path, hint="is this a finished model folder?") from None
    except OSError as error:
        raise ModelFileError(f"cannot be read: {error.strerror}", file=path) from None
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"is not valid JSON: {str(error)[:200]}", file=path, hint=what_is(path) or AGAIN) from None


def verify(folder: Path, needed: tuple[str, ...] = ()) -> Manifest:
    """Every file of the manifest is there, plain, whole and unchanged; else an error that names the damaged one."""
    manifest = read_manifest(folder)
    for name in needed:
        if name not in manifest.files:
            raise ModelFileError("is not in the manifest", file=folder / name)
    for name, entry in manifest.files.items():
        check_file(folder / name, entry)
    return manifest


def check_file(path: Path, entry: Entry) -> None:
    try:
        if path.is_symlink() or not path.is_file():
            raise ModelFileError("is missing or not a plain file", file=path, hint=AGAIN)
        size = path.stat().st_size
        if size != entry.size:
            hint = what_is(path) or AGAIN
            raise ModelFileError(f"has {size:,} bytes, the manifest says {entry.size:,}", file=path, hint=hint)
        found = sha256_of(path)
    except OSError as error:
        raise ModelFileError(f"cannot be read: {error.strerror}", file=path) from None
    if found != entry.sha256:
        raise ModelFileError(
            f"is damaged: SHA-256 {found[:12]}…, the manifest says {entry.sha256[:12]}…", file=path, hint=AGAIN
        )


def what_is(path: Path) -> str | None:
    """A guess at what stands in place of a model's file."""
    with open(path, "rb") as file:
        head = file.read(200).removeprefix(codecs.BOM_UTF8).lstrip().lower()
    if head.startswith(b"version https://git-lfs"):
        return "this is a Git LFS pointer, not the file itself: fetch it with `git lfs pull`"
    if head.startswith((b"<!doctype", b"<html")):
        return "this is a web page, not the file itself: download the file, not its page"
    return None
