"""Whole or not there. What happens when the power goes is in tests/faults/test_power_cut.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from clearhead.files import MANIFEST, discard, disk, publish, sweep_partial, verify, write_atomic


def anything(name: str) -> bool:
    return True


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a", b"one")
    write_atomic(tmp_path / "a", b"two")
    assert (tmp_path / "a").read_bytes() == b"two" and names(tmp_path) == ["a"]


def test_a_file_that_fails_is_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_atomic(tmp_path / "a", b"one")

    def interrupted(point: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(disk, "reached", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_atomic(tmp_path / "a", b"two")
    assert (tmp_path / "a").read_bytes() == b"one" and names(tmp_path) == ["a"]


def test_a_folder_and_its_manifest(tmp_path: Path) -> None:
    manifest = publish(tmp_path / "f", {"b": b"12", "a": lambda: b"3"}, {"kind": "test"})
    assert names(tmp_path) == ["f"] and names(tmp_path / "f") == ["a", "b", MANIFEST]
    assert verify(tmp_path / "f", needed=("a", "b")) == manifest
    assert {name: entry.size for name, entry in manifest.files.items()} == {"a": 1, "b": 2}


def test_a_folder_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def fails() -> bytes:
        raise RuntimeError("no bytes")

    publish(tmp_path / "f", {"a": b"old"}, {})
    with pytest.raises(RuntimeError, match="no bytes"):
        publish(tmp_path / "f", {"a": b"new", "b": fails}, {})
    assert names(tmp_path) == ["f"] and (tmp_path / "f" / "a").read_bytes() == b"old"


def test_what_a_crash_left_is_swept(tmp_path: Path) -> None:
    for name in ("a.partial", "kept", "c.old"):
        (tmp_path / name).mkdir()
    (tmp_path / "b.partial").write_bytes(b"half")
    (tmp_path / "kept.old").mkdir()
    assert sweep_partial(tmp_path, anything) == [
        *("removed half-written a.partial", "removed half-written b.partial", "put back c")
    ]
    assert names(tmp_path) == ["c", "kept"]
    assert sweep_partial(tmp_path / "nowhere", anything) == []


def test_only_our_own_names_are_swept(tmp_path: Path) -> None:
    """Somebody's thesis.partial, beside a run trained into the current folder, is not ours to remove."""
    for name in ("thesis.partial", "notes.old", "notes", "ours.partial"):
        (tmp_path / name).mkdir()
    sweep_partial(tmp_path, lambda name: name == "ours")
    assert names(tmp_path) == ["notes", "notes.old", "thesis.partial"]


def test_a_folder_is_discarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed half-way, it no longer has its name."""
    publish(tmp_path / "f", {"a": b"1"}, {})
    seen: list[list[str]] = []
    remove = disk.remove_tree
    monkeypatch.setattr(disk, "remove_tree", lambda path: (seen.append(names(tmp_path)), remove(path)))
    discard(tmp_path / "f")
    assert seen[-1] == ["f.partial"] and names(tmp_path) == []
