"""What the system says against an operation comes out as an error of ours, with its exit code."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from clearhead.errors import DiskError, UsageError
from clearhead.files import disk


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO, errno.ENOENT])
def test_the_disk_is_to_blame(code: int, tmp_path: Path) -> None:
    with pytest.raises(DiskError, match=r"[\d,]+ bytes free") as caught, disk.disk_errors(tmp_path / "file"):
        raise OSError(code, "said the system")
    assert caught.value.exit_code == 4 and str(tmp_path / "file") in str(caught.value)


def test_the_path_is_to_blame(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file" / "below", tmp_path / ("n" * 300)):
        with pytest.raises(UsageError, match="cannot be written") as caught:
            disk.write_synced(path, b"data")
        assert caught.value.exit_code == 2
    with pytest.raises(UsageError):
        disk.make_folder(tmp_path / "file")


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    """By the name a person knows, not by that of the half-written file."""
    with pytest.raises(UsageError, match=r"out\.txt: cannot be written: its folder does not exist") as caught:
        disk.write_synced(tmp_path / "a" / "out.txt.partial", b"data")
    assert caught.value.hint == f"mkdir -p {tmp_path / 'a'}" and ".partial" not in str(caught.value)


def test_a_place_is_asked_for_before_long_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk.require_place(tmp_path / "new")
    (tmp_path / "old").write_text("x")
    disk.require_place(tmp_path / "old")
    for path in (tmp_path, tmp_path / "a" / "b", tmp_path / "old" / "b", tmp_path / ("n" * 300)):
        with pytest.raises(UsageError, match="cannot be written"):
            disk.require_place(path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old"]
    monkeypatch.setattr(disk.os, "access", lambda path, mode: False)
    with pytest.raises(DiskError, match="Permission denied") as caught:
        disk.require_place(tmp_path / "new")
    assert "choose a folder you may write to" in str(caught.value)


def test_folders_are_made_with_those_above(tmp_path: Path) -> None:
    disk.make_folder(tmp_path / "a" / "b" / "c")
    disk.make_folder(tmp_path / "a" / "b" / "c")
    assert (tmp_path / "a" / "b" / "c").is_dir()


def test_space_is_asked_for_with_a_fifth_to_spare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "free_space", lambda path: 1200)
    disk.require_space(tmp_path, 1000)
    with pytest.raises(DiskError, match="1,201 bytes are needed for the next save and 1,200 are free"):
        disk.require_space(tmp_path, 1001)


def test_points_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points: list[str] = []
    monkeypatch.setattr(disk, "reached", points.append)
    disk.write_synced(tmp_path / "a", b"1")
    disk.rename(tmp_path / "a", tmp_path / "b")
    disk.remove_file(tmp_path / "b")
    disk.remove_file(tmp_path / "b")
    assert points == [
        *("before write a", "before fsync a", "after fsync a", "before rename b", "after rename b", "after unlink b")
    ]
