"""One run per folder: a lock that dies with its owner.

The lock is the operating system's (flock on `lock`), so a killed process leaves none behind; the file's text only
says who holds it, or, where nobody does, who was killed. Readers never ask for it. No other program inherits the
descriptor, and a forked child lets go of its copy at once: a worker never holds a lock longer than its parent.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import weakref
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from clearhead.errors import DiskError, UsageError
from clearhead.files import disk

NAME = "lock"
held: weakref.WeakSet[RunLock] = weakref.WeakSet()
"""Locks of this process, for its forked children to let go of."""


class RunLock:
    """`with RunLock(folder): …` — or an error that names the owner."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self.descriptor: int | None = None
        self.left_by: str | None = None
        """Who held this folder last and did not let go of it: it was killed."""
        self.made_folder = False

    def __enter__(self) -> RunLock:
        with disk.disk_errors(self.path.parent):
            self.made_folder = not self.path.parent.exists()
        disk.make_folder(self.path.parent)
        while self.descriptor is None:
            with disk.disk_errors(self.path):
                descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                self._take(descriptor)
            except BaseException:
                os.close(descriptor)
                raise
            if is_still(self.path, descriptor):
                self.descriptor = descriptor
            else:  # its last owner removed it between our opening and our taking it
                os.close(descriptor)
        held.add(self)
        return self

    def _take(self, descriptor: int) -> None:
        before = os.pread(descriptor, 1000, 0).decode("utf-8", "replace")
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                f"another run is using this folder ({describe_owner(before)})",
                file=self.path.parent,
                hint="wait for it, stop it, or choose another folder with -o",
            ) from None
        except OSError as error:
            message = f"this file system gives no locks: {error.strerror}"
            raise DiskError(message, file=self.path, hint="choose a folder on a local disk") from None
        self.left_by = describe_owner(before) if before else None
        with disk.disk_errors(self.path):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode(), 0)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.descriptor is not None:
            os.ftruncate(self.descriptor, 0)
            self._leave_no_trace()
            fcntl.flock(self.descriptor, fcntl.LOCK_UN)  # also for a child just forked, that has not let go yet
            self._let_go()

    def _leave_no_trace(self) -> None:
        """Where nothing came of it, not even an empty folder stays."""
        with suppress(OSError):
            if os.listdir(self.path.parent) == [NAME]:
                os.unlink(self.path)
                if self.made_folder:
                    os.rmdir(self.path.parent)

    def _let_go(self) -> None:
        """Close our descriptor; the lock itself ends with the last one."""
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None


def forget_in_child() -> None:
    for lock in list(held):
        lock._let_go()


os.register_at_fork(after_in_child=forget_in_child)


def is_still(path: Path, descriptor: int) -> bool:
    """Is this open file the one at this path?"""
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def describe_owner(text: str) -> str:
    try:
        owner = json.loads(text)
        return f"process {int(owner['pid'])} on {str(owner['host'])[:100]}"
    except (ValueError, KeyError, TypeError):
        return "owner unknown"
