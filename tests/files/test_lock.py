"""One run per folder; a lock that dies with its owner and that no child inherits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from clearhead.errors import DiskError, UsageError
from clearhead.files import RunLock
from clearhead.files import lock as module

HOLD = """
import sys, time
from pathlib import Path
from clearhead.files.lock import RunLock
with RunLock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_the_second_is_told_who_holds_it(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("x")
    with RunLock(tmp_path), pytest.raises(UsageError, match=f"process {os.getpid()} on ") as caught, RunLock(tmp_path):
        pass
    assert "wait for it, stop it, or choose another folder" in str(caught.value)
    with RunLock(tmp_path) as again:
        assert again.left_by is None


def test_a_killed_owner_leaves_no_lock_but_a_trace(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("x")
    owner = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None and owner.stdout.readline() == "held\n"
    with pytest.raises(UsageError, match=f"process {owner.pid} on "), RunLock(tmp_path):
        pass
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    owner.stdout.close()
    with RunLock(tmp_path) as lock:
        assert lock.left_by is not None and f"process {owner.pid} on " in lock.left_by


def test_a_forked_child_lets_go(tmp_path: Path) -> None:
    """A worker that outlives its parent must not hold the folder."""
    (tmp_path / "other").write_text("x")
    with RunLock(tmp_path):
        child = os.fork()
        if child == 0:
            time.sleep(600)
            os._exit(0)
    try:
        with RunLock(tmp_path):
            pass
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_child_does_not_end_its_parents_lock(tmp_path: Path) -> None:
    with RunLock(tmp_path):
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        with pytest.raises(UsageError), RunLock(tmp_path):
            pass


def test_other_programs_do_not_inherit_it(tmp_path: Path) -> None:
    with RunLock(tmp_path) as lock:
        assert lock.descriptor is not None and not os.get_inheritable(lock.descriptor)


def test_where_nothing_came_of_it_nothing_stays(tmp_path: Path) -> None:
    with RunLock(tmp_path / "a" / "run"):
        pass
    assert not (tmp_path / "a" / "run").exists()
    (tmp_path / "empty").mkdir()
    with RunLock(tmp_path / "empty"):
        pass
    assert list((tmp_path / "empty").iterdir()) == []
    with RunLock(tmp_path / "used"):
        (tmp_path / "used" / "file").write_text("x")
    assert sorted(p.name for p in (tmp_path / "used").iterdir()) == ["file", "lock"]


def test_a_lock_removed_under_us_is_taken_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its last owner may remove the file between our opening it and our taking it."""
    take, removed = RunLock._take, []

    def late(self: RunLock, descriptor: int) -> None:
        if not removed:
            removed.append(self.path.unlink())
        take(self, descriptor)

    monkeypatch.setattr(RunLock, "_take", late)
    with RunLock(tmp_path) as lock:
        assert lock.descriptor is not None and module.is_still(tmp_path / "lock", lock.descriptor)
        with pytest.raises(UsageError), RunLock(tmp_path):
            pass


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(descriptor: int, how: int) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(module.fcntl, "flock", none)
    with pytest.raises(DiskError, match="gives no locks"), RunLock(tmp_path):
        pass


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x", "host": 1}', json.dumps({"pid": 1}), "null"])
def test_any_text_in_the_lock_is_read(text: str) -> None:
    assert module.describe_owner(text) == "owner unknown"
