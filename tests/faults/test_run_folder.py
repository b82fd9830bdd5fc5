"""A run's own folder, spoilt between two calls of the same command; and a disk that refuses at any moment of a run.

The same command mends what follows from the data (the tokenised pairs, the finished model), and says what it cannot
mend; in the end it comes to what it would have come to.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clearhead.errors import ClearheadError, ModelFileError
from clearhead.train import loop

Outcome = Callable[[Path], dict[str, str]]
Train = Callable[..., Any]


@pytest.fixture(scope="module")
def half_way(tmp_path_factory: pytest.TempPathFactory, runs: Any, recipes: dict[str, Any]) -> Path:
    """A run killed after step 9."""
    out = tmp_path_factory.mktemp("half") / "run"
    assert runs(recipes["everything"], out, event="step", nth=9)["killed"]
    return out


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def swap_for_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


MENDED: list[tuple[str, Callable[[Path], Any]]] = [
    ("data/source.tokens", cut),
    ("data/target.counts", flip),
    ("data/store.json", cut),
    ("data", shutil.rmtree),
    ("data-words.json", flip),
    ("data-words.json", Path.unlink),
    ("data-fingerprint", Path.unlink),
    ("log.jsonl", cut),
    ("log.jsonl", Path.unlink),
    ("lock", cut),
]


@pytest.mark.parametrize(("name", "damage"), MENDED, ids=lambda value: getattr(value, "__name__", value))
def test_what_follows_from_the_data_is_mended(
    name: str,
    damage: Callable[[Path], Any],
    half_way: Path,
    tmp_path: Path,
    train_here: Train,
    outcome: Outcome,
    undisturbed: dict[str, str],
) -> None:
    run = Path(shutil.copytree(half_way, tmp_path / "run"))
    damage(run / name)
    said: list[str] = []
    train_here(run, say=said.append)
    assert any("going on from step 8" in text for text in said)
    assert outcome(run) == undisturbed


REFUSED: list[tuple[str, Callable[[Path], Any], str]] = [
    ("config.toml", lambda path: path.write_text("[train]\nlr = \n"), "config.toml:2"),
    ("config.toml", lambda path: path.write_text("[train]\nlearn = 1\n"), "config.toml:2"),
    ("config.toml", Path.unlink, "is there already, and this folder is not a run's"),
    ("tokenizer.json", flip, "tokenizer.json"),
    ("tokenizer.json", Path.unlink, "tokenizer.json"),
    ("data-fingerprint", flip, "other data"),
    ("log.jsonl", swap_for_folder, "log.jsonl"),
    ("lock", swap_for_folder, "lock"),
]


@pytest.mark.parametrize(("name", "damage", "words"), REFUSED)
def test_what_cannot_be_mended_is_named(
    name: str, damage: Callable[[Path], Any], words: str, half_way: Path, tmp_path: Path, train_here: Train
) -> None:
    run = Path(shutil.copytree(half_way, tmp_path / "run"))
    damage(run / name)
    before = checkpoints(run)
    with pytest.raises(ClearheadError) as caught:
        train_here(run)
    assert words in str(caught.value) and caught.value.exit_code == 2
    assert checkpoints(run) == before


def checkpoints(run: Path) -> dict[str, bytes]:
    return {str(p.relative_to(run)): p.read_bytes() for p in (run / "checkpoints").rglob("*") if p.is_file()}


def test_a_place_for_checkpoints_is_asked_for_before_the_first_step(
    copied_run: Path, train_here: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(copied_run / "checkpoints")
    (copied_run / "checkpoints").write_text("not a folder")
    monkeypatch.setattr(loop.Training, "advance", lambda self: pytest.fail("it was trained"))
    with pytest.raises(ClearheadError, match="checkpoints: cannot be written"):
        train_here(copied_run)


def test_an_unfinished_run_and_a_checkpoint_are_no_models(half_way: Path) -> None:
    from clearhead.verbs.model import load

    with pytest.raises(ModelFileError, match="holds a run that is not finished"):
        load(half_way)
    with pytest.raises(ModelFileError, match="is a checkpoint, not a model"):
        load(half_way / "checkpoints" / "step-8")


@pytest.mark.parametrize("every", [31, pytest.param(1, marks=pytest.mark.slow)])
def test_every_write_of_a_run_refused(
    every: int,
    tmp_path: Path,
    train_here: Train,
    faulty_disk: Any,
    no_space: dict[str, int],
    outcome: Outcome,
    undisturbed: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From the first folder to the finished model: at each operation in turn the disk is full from then on, until the
    command ends. It ends with exit code 4, or was done; with space again, it comes to the same."""
    number, refused = 0, 0
    while True:
        root = tmp_path / str(number)
        root.mkdir()
        faulty = faulty_disk(root)
        faulty.refuse = lambda operation, at, first=number: (
            no_space["full"] if first <= at and adds(operation) else None
        )
        try:
            train_here(root / "run")
            done = True
        except ClearheadError as error:
            assert error.exit_code == 4, str(error)
            refused, done = refused + 1, False
        monkeypatch.undo()
        passed = len(faulty.operations)
        train_here(root / "run")
        assert outcome(root / "run") == undisturbed, number
        assert not list(root.rglob("*.partial"))
        if done and passed <= number:
            break
        shutil.rmtree(root)
        number += every
    assert refused >= 60 // every


def adds(operation: str) -> bool:
    """A full disk still lets files be removed and renamed."""
    return operation.startswith(("open", "write", "mkdir", "fsync"))
