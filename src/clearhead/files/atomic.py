"""Writing so that a reader finds the old or the new, whole, whatever happens in between.

one file     temporary sibling → fsync → rename → fsync of the folder
a folder     name.partial/ → every file fsynced → manifest last → rename → fsync of the parent
many files   temporary siblings → fsync → manifest away → renames → manifest last         (verbs/folder.py)
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from clearhead.errors import ClearheadError
from clearhead.files import disk
from clearhead.files.manifest import MANIFEST, Manifest, describe, to_bytes

PARTIAL = ".partial"
OLD = ".old"


def write_atomic(path: Path, data: bytes) -> None:
    """The file has these bytes, or is as it was."""
    temporary = path.with_name(path.name + PARTIAL)
    try:
        disk.write_synced(temporary, data)
        disk.rename(temporary, path)
    except BaseException:
        with suppress(ClearheadError):  # what went wrong first is what is told
            disk.remove_file(temporary)
        raise
    disk.sync_folder(path.parent)


def publish(folder: Path, files: dict[str, bytes | Callable[[], bytes]], about: dict[str, str | int]) -> Manifest:
    """A new folder with these files and their manifest, all at once. Large files may be given as functions, so
    that one at a time is in memory. An older folder of the same name is replaced."""
    partial = folder.with_name(folder.name + PARTIAL)
    disk.remove_tree(partial)
    disk.make_folder(partial)
    try:
        entries = {}
        for name, given in files.items():
            data = given if isinstance(given, bytes) else given()
            entries[name] = describe(data)
            disk.write_synced(partial / name, data)
        manifest = Manifest.of(entries, about)
        disk.write_synced(partial / MANIFEST, to_bytes(manifest))
        disk.sync_folder(partial)
        if folder.exists():
            replace_folder(partial, folder)
        else:
            disk.rename(partial, folder)
    except BaseException:
        disk.remove_tree(partial)
        raise
    disk.sync_folder(folder.parent)
    return manifest


def replace_folder(partial: Path, folder: Path) -> None:
    """A folder cannot be renamed over another: the old one steps aside first, and is found there after a crash."""
    aside = folder.with_name(folder.name + OLD)
    disk.remove_tree(aside)
    disk.rename(folder, aside)
    disk.rename(partial, folder)
    disk.sync_folder(folder.parent)
    disk.remove_tree(aside)


def discard(folder: Path) -> None:
    """Remove a folder, under a partial name, so that a crash half-way leaves nothing that looks whole."""
    partial = folder.with_name(folder.name + PARTIAL)
    disk.remove_tree(partial)
    disk.rename(folder, partial)
    disk.remove_tree(partial)


def sweep_partial(parent: Path, ours: Callable[[str], bool]) -> list[str]:
    """Remove what a crash left half-written, put back a folder that had only stepped aside; says what it did.
    Only names that `ours` knows are touched: somebody may keep other files beside them."""
    swept: list[str] = []
    if not parent.is_dir():
        return swept
    for path in sorted(parent.iterdir()):
        if path.name.endswith(PARTIAL) and ours(path.name.removesuffix(PARTIAL)):
            disk.remove_tree(path) if path.is_dir() else disk.remove_file(path)
            swept.append(f"removed half-written {path.name}")
        elif path.name.endswith(OLD) and ours(path.name.removesuffix(OLD)) and path.is_dir():
            home = path.with_name(path.name.removesuffix(OLD))
            if home.exists():
                disk.remove_tree(path)
            else:
                disk.rename(path, home)
                swept.append(f"put back {home.name}")
    return swept
