"""The few operations by which anything reaches the disk, in one place.

Everything that must survive a pulled plug goes through these functions, and through nothing of the system but the
names `open`, `os` and `shutil` in this file, so that a test can stand between us and the disk: kill the process at a
named point, refuse space, or drop what was never synced. What the operating system says against an operation becomes
an error of ours here: UsageError for a path that cannot be, DiskError for everything else.
"""

from __future__ import annotations

import errno
import os
import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from clearhead.errors import ClearheadError, DiskError, UsageError

WRONG_PATH = {errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL}
NOT_ALLOWED = {errno.EACCES, errno.EPERM, errno.EROFS}

reached: Callable[[str], None] = lambda point: None  # noqa: E731 - a seam: tests put a crash here
"""Called at each named point of a save."""


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """OSError → an error of ours that names the path and, where it is about the disk, the space left."""
    try:
        yield
    except OSError as error:
        raise explained(error, path) from None


def explained(error: OSError, path: Path) -> ClearheadError:
    words = os.strerror(error.errno) if error.errno else str(error)
    meant = path.with_name(path.name.removesuffix(".partial"))  # the name a person knows
    if error.errno == errno.ENOENT and not path.parent.is_dir():
        way_out = f"mkdir -p {shlex.quote(str(path.parent))}"
        return UsageError("cannot be written: its folder does not exist", file=meant, hint=way_out)
    if error.errno in WRONG_PATH:
        return UsageError(f"cannot be written: {words}", file=meant, hint="choose another place")
    way_out = "choose a folder you may write to" if error.errno in NOT_ALLOWED else "free some space or choose another"
    return DiskError(f"{words} ({free_text(path)})", file=meant, hint=f"{way_out}; what was saved before is untouched")


def require_place(path: Path) -> None:
    """Before long work: a file that can be written here when the work is done."""
    with disk_errors(path):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not path.absolute().parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        if not os.access(path.absolute().parent, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def free_space(path: Path) -> int:
    """Bytes left where `path` is, or will be."""
    while not path.exists():
        path = path.parent
    return shutil.disk_usage(path).free


def free_text(path: Path) -> str:
    try:
        return f"{free_space(path):,} bytes free"
    except OSError:
        return "free space unknown"


def require_space(path: Path, needed: int) -> None:
    """Before a save: a fifth more than it will take must be free."""
    with disk_errors(path):
        free = free_space(path)
    if free < needed * 1.2:
        raise DiskError(
            f"{int(needed * 1.2):,} bytes are needed for the next save and {free:,} are free",
            file=path,
            hint="free some space; what was saved before is untouched",
        )


def make_folder(path: Path) -> None:
    """The folder and those above it; their names are on the disk when this returns."""
    if path.is_dir():
        return
    if path.parent != path:
        make_folder(path.parent)
    with disk_errors(path):
        os.mkdir(path)
    sync_folder(path.parent)


def write_synced(path: Path, data: bytes) -> None:
    """The file's bytes, on the disk when this returns; its name is not yet (see `sync_folder`)."""
    with disk_errors(path), open(path, "wb") as file:
        reached(f"before write {path.name}")
        file.write(data)
        file.flush()
        reached(f"before fsync {path.name}")
        os.fsync(file.fileno())
    reached(f"after fsync {path.name}")


def sync_folder(path: Path) -> None:
    """Names created, renamed or deleted in a folder are on the disk when this returns."""
    with disk_errors(path):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def rename(old: Path, new: Path) -> None:
    reached(f"before rename {new.name}")
    with disk_errors(new):
        os.replace(old, new)
    reached(f"after rename {new.name}")


def remove_file(path: Path) -> None:
    """It is no longer there, if it was."""
    with disk_errors(path):
        try:
            os.unlink(path)
        except FileNotFoundError:
            return
    reached(f"after unlink {path.name}")


def remove_tree(path: Path) -> None:
    """A folder that nobody reads any more. What cannot be removed stays, and is tried again at the next start."""
    shutil.rmtree(path, ignore_errors=True)
