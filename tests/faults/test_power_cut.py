"""The plug is pulled: what was never synced is lost or torn. SIGKILL cannot show that: the system keeps its cache.

A disk that forgets (conftest) stands below files/disk.py. It is switched off before every single operation of a
sequence of saves, and what may be left then, by chance, is opened: never unreadable, never silently wrong, never
older than the last save that had returned.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from clearhead.errors import ClearheadError, DiskError, ModelFileError
from clearhead.files import disk, publish, sweep_partial, verify, write_atomic
from clearhead.train.checkpoint import is_step
from clearhead.train.weights import copy_weights
from clearhead.verbs import folder as model_folder
from clearhead.verbs.folder import open_folder, write_model

SAVES = 3


def cut_at(
    number: int, root: Path, toy_run: Any, faulty_disk: Any, pulled_plug: type[BaseException], keep: int
) -> tuple[Any, int]:
    """Save until the plug is pulled before operation `number`; the disk, and the last save that had returned."""
    root.mkdir()
    faulty = faulty_disk(root)
    faulty.pull_at = number
    toy, saved = toy_run(root, keep), 0
    try:
        for step in range(1, SAVES + 1):
            toy.save(step)
            saved = step
    except pulled_plug:
        pass
    return faulty, saved


@pytest.mark.parametrize("keep", [1, 2])
@pytest.mark.parametrize("chances", [2, pytest.param(100, marks=pytest.mark.slow)])
def test_saves(
    keep: int,
    chances: int,
    tmp_path: Path,
    toy_run: Any,
    faulty_disk: Any,
    pulled_plug: type[BaseException],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    number, seen = 0, set()
    while True:
        faulty, saved = cut_at(number, tmp_path / f"cut-{number}", toy_run, faulty_disk, pulled_plug, keep)
        monkeypatch.undo()
        for seed in range(chances):
            root = faulty.after_power_cut(tmp_path / f"found-{number}-{seed}", random.Random(seed))
            toy = toy_run(root, keep)
            found = toy.load() or 0
            assert found in (saved, saved + 1), (number, seed)
            assert not any("cannot be used" in said for said in toy.said), (number, seed, toy.said)
            seen.add(found)
            toy.save(9)  # and it can go on
            assert toy_run(root, keep).load() == 9
        if saved == SAVES:
            break
        number += 1
    assert number > 45 and seen == set(range(SAVES + 1))


def test_the_disk_that_forgets_does_forget(
    tmp_path: Path,
    toy_run: Any,
    faulty_disk: Any,
    pulled_plug: type[BaseException],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without its fsyncs the same sequence is found broken: the test above can fail."""
    monkeypatch.setattr(disk, "sync_folder", lambda path: None)
    faulty, saved = cut_at(10**9, tmp_path / "cut", toy_run, faulty_disk, pulled_plug, keep=2)
    monkeypatch.undo()
    assert saved == SAVES
    lost = 0
    for seed in range(20):
        root = faulty.after_power_cut(tmp_path / f"found-{seed}", random.Random(seed))
        try:
            lost += toy_run(root).load() != SAVES
        except ModelFileError:
            lost += 1
    assert lost > 5


def replaced(root: Path, step: int) -> None:
    publish(root / "folder", {"a": bytes([step]) * 100, "b": bytes([step]) * 50}, {"step": step})


@pytest.mark.parametrize("chances", [6, pytest.param(200, marks=pytest.mark.slow)])
def test_a_folder_is_replaced(
    chances: int, tmp_path: Path, faulty_disk: Any, pulled_plug: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(100):
        root = tmp_path / f"cut-{number}"
        root.mkdir()
        replaced(root, 1)
        faulty, done = faulty_disk(root), False
        faulty.pull_at = number
        try:
            replaced(root, 2)
            done = True
        except pulled_plug:
            pass
        monkeypatch.undo()
        for seed in range(chances):
            found = faulty.after_power_cut(tmp_path / f"found-{number}-{seed}", random.Random(seed))
            sweep_partial(found, lambda name: name == "folder")
            assert verify(found / "folder").about["step"] in ((2,) if done else (1, 2)), (number, seed)
        if done:
            break
    assert done and number > 10


def test_a_file_is_replaced(
    tmp_path: Path, faulty_disk: Any, pulled_plug: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "root").mkdir()
    path = tmp_path / "root" / "file"
    write_atomic(path, b"old")
    for number in range(20):
        faulty, done = faulty_disk(path.parent), False
        faulty.pull_at = number
        try:
            write_atomic(path, b"new")
            done = True
        except pulled_plug:
            pass
        monkeypatch.undo()
        for seed in range(10):
            found = faulty.after_power_cut(tmp_path / f"found-{number}-{seed}", random.Random(seed))
            assert (found / "file").read_bytes() in ((b"new",) if done else (b"old", b"new"))
        path.write_bytes(b"old")
        if done:
            break
    assert done and number >= 4


@pytest.mark.parametrize("chances", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_a_finished_model_is_replaced(
    chances: int,
    copied_run: Path,
    tmp_path: Path,
    faulty_disk: Any,
    pulled_plug: type[BaseException],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Opened, it is the old one or the new one, or is refused with our own error; writing it again mends it."""
    opened = open_folder(copied_run)
    weights = {name: tensor + 1 for name, tensor in copy_weights(opened.model).items()}
    others = {name: (copied_run / name).read_bytes() for name in (model_folder.CARD, model_folder.GOLDEN)}
    about = {**opened.about, "steps": 99}
    came = {"old": 0, "new": 0, "refused": 0}

    def write(root: Path) -> None:
        write_model(root, opened.experiment, opened.tokenizers, weights, others, about)

    for number in range(200):
        faulty = faulty_disk(copied_run)
        faulty.pull_at, done = number, False
        try:
            write(copied_run)
            done = True
        except pulled_plug:
            pass
        monkeypatch.undo()
        for seed in range(chances):
            found = faulty.after_power_cut(tmp_path / f"found-{number}-{seed}", random.Random(seed))
            came[look(found, weights)] += 1
            write(found)
            assert look(found, weights) == "new"
        if done:
            assert look(copied_run, weights) == "new"
            break
        write_model(copied_run, opened.experiment, opened.tokenizers, copy_weights(opened.model), others, opened.about)
    assert done and min(came.values()) > 0
    assert number == 3 * 6 + 2 + 5 + 3  # six files written, the manifest away, five renames and the last


def look(folder: Path, new: dict[str, torch.Tensor]) -> str:
    try:
        opened = open_folder(folder)
    except ModelFileError:
        return "refused"
    same = all(torch.equal(tensor, new[name]) for name, tensor in copy_weights(opened.model).items())
    assert same == (opened.about["steps"] == 99)
    return "new" if same else "old"


# --- a disk that refuses ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("why", ["full", "quota", "read-only", "failing"])
def test_every_write_of_a_save_refused(
    why: str,
    tmp_path: Path,
    toy_run: Any,
    faulty_disk: Any,
    no_space: dict[str, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The error is ours and says so; the checkpoint before is as it was, byte for byte; the next save works."""
    root = tmp_path / "run"
    root.mkdir()
    toy = toy_run(root)
    toy.save(1)
    before = contents(root)
    number = 0
    while True:
        faulty = faulty_disk(root)
        faulty.refuse = lambda operation, at, number=number: no_space[why] if at == number else None
        try:
            toy.save(2)
        except DiskError as error:
            assert "bytes free" in str(error) and error.exit_code == 4
        else:
            if number > 30:
                break
        monkeypatch.undo()
        assert before.items() <= contents(root).items(), number
        assert toy_run(root).load() in (1, 2)
        (again := toy_run(root)).save(2)
        assert again.load() == 2
        disk.remove_tree(root / "checkpoints" / "step-2")
        number += 1
    assert number > 30


def contents(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def test_too_little_space_is_known_before_writing(
    tmp_path: Path, toy_run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy = toy_run(tmp_path)
    toy.save(1)
    monkeypatch.setattr(disk, "free_space", lambda path: 40)
    monkeypatch.setattr(disk, "write_synced", lambda path, data: pytest.fail("it was written"))
    with pytest.raises(DiskError, match=r"bytes are needed for the next save and 40 are free"):
        toy.save(2)
    assert toy.load() == 1


@pytest.mark.parametrize("refused", [2, 3])
def test_a_run_lives_through_a_full_disk(
    refused: int,
    train_here: Callable[..., Any],
    undisturbed: dict[str, str],
    outcome: Callable[[Path], dict[str, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Saves that fail are told and tried again; at the end, or after three in a row, it is exit code 4. The same
    command, with space again, comes to what it would have come to."""
    real, calls = disk.require_space, []

    def require(path: Path, needed: int) -> None:
        calls.append(path)
        if 1 < len(calls) <= 1 + refused:  # the first call is before the first step
            raise DiskError("no space", file=path)
        real(path, needed)

    monkeypatch.setattr(disk, "require_space", require)
    said: list[str] = []
    try:
        train_here(tmp_path / "run", say=said.append)
        assert refused < 3
    except ClearheadError as error:
        assert refused == 3 and error.exit_code == 4
        train_here(tmp_path / "run")
    assert sum("not saved: " in text for text in said) == min(refused, 2)
    assert outcome(tmp_path / "run") == undisturbed


def test_steps_are_told_from_other_folders() -> None:
    assert [is_step(name) for name in ("step-12", "step-", "step-x", "best", "step-٣", "12")] == [True] + [False] * 5
