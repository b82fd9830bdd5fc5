"""Checkpoints that are damaged: found out, named, passed over for the newest good one; and the run ends as ever."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clearhead.errors import ModelFileError, UsageError

Outcome = Callable[[Path], dict[str, str]]
NAMES = ["model", "best", "optimizer", "averages"]


def flip_a_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[random.Random(0).randrange(len(data))] ^= 4
    path.write_bytes(data)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def remove(path: Path) -> None:
    path.unlink()


def link(path: Path) -> None:
    path.rename(path.parent.parent / "elsewhere")
    path.symlink_to(path.parent.parent / "elsewhere")


DAMAGE = [flip_a_bit, truncate, empty, remove, link]
FILES = [*(f"{name}.safetensors" for name in NAMES), "state.json", "manifest.json"]


@pytest.mark.parametrize(("name", "damage"), [(FILES[i % 6], DAMAGE[i % 5]) for i in range(30)])
def test_every_damage_is_seen_and_named(
    name: str, damage: Callable[[Path], None], toy_run: Any, tmp_path: Path
) -> None:
    for step in (4, 8):
        toy_run(tmp_path).save(step)
    damage(tmp_path / "checkpoints" / "step-8" / name)
    toy = toy_run(tmp_path)
    assert toy.load() == 4
    assert any("step-8 cannot be used" in text and name in text and "falling back" in text for text in toy.said)


@pytest.fixture(scope="module")
def half_way(tmp_path_factory: pytest.TempPathFactory, runs: Any, recipes: dict[str, Any]) -> Path:
    """A run killed after step 9: steps 4 and 8 are saved."""
    out = tmp_path_factory.mktemp("half") / "run"
    assert runs(recipes["everything"], out, event="step", nth=9)["killed"]
    return out


def test_the_run_still_ends_as_ever(
    half_way: Path, tmp_path: Path, train_here: Callable[..., Any], outcome: Outcome, undisturbed: dict[str, str]
) -> None:
    run = Path(shutil.copytree(half_way, tmp_path / "run"))
    flip_a_bit(run / "checkpoints" / "step-8" / "optimizer.safetensors")
    said: list[str] = []
    train_here(run, say=said.append)
    assert any("going on from step 4" in text for text in said)
    assert outcome(run) == undisturbed


def test_none_left_is_an_error_with_the_way_out(half_way: Path, tmp_path: Path, train_here: Callable[..., Any]) -> None:
    run = Path(shutil.copytree(half_way, tmp_path / "run"))
    for step in (4, 8):
        truncate(run / "checkpoints" / f"step-{step}" / "model.safetensors")
    with pytest.raises(ModelFileError, match="none of the 2 checkpoints can be used") as caught:
        train_here(run)
    assert "delete this folder" in str(caught.value)
    shutil.rmtree(run / "checkpoints")
    said: list[str] = []
    assert train_here(run, say=said.append).steps == 12
    assert not any("going on from step" in text for text in said)


def test_a_checkpoint_of_another_run_is_not_taken(
    half_way: Path, tmp_path: Path, train_here: Callable[..., Any]
) -> None:
    run = Path(shutil.copytree(half_way, tmp_path / "run"))
    other = tmp_path / "other"
    train_here(other, train__seed=2)
    shutil.copytree(other / "checkpoints" / "step-12", run / "checkpoints" / "step-12")
    said: list[str] = []
    train_here(run, say=said.append)
    assert any("belongs to another run" in text for text in said)


def test_other_settings_and_other_data_are_refused(
    copied_run: Path, train_here: Callable[..., Any], recipes: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=r"train\.lr: 0\.003 → 0\.1"):
        train_here(copied_run, train__lr=0.1)
    pairs = Path(recipes["everything"]["files"][0])
    changed = tmp_path / "pairs.tsv"
    changed.write_bytes(pairs.read_bytes() + b"a b\tb a\n")
    with pytest.raises(UsageError, match="other data"):
        train_here(copied_run, files=[str(changed)])


def test_finished_and_continued(copied_run: Path, train_here: Callable[..., Any]) -> None:
    weights = (copied_run / "model.safetensors").read_bytes()
    assert train_here(copied_run).already
    (copied_run / "model.safetensors").write_bytes(b"broken")
    assert not train_here(copied_run).already  # the folder is written again from the checkpoint
    assert (copied_run / "model.safetensors").read_bytes() == weights
    assert train_here(copied_run, train__max_steps=14).steps == 14


def test_a_finished_model_is_known_by_its_steps(
    copied_run: Path, runs: Any, recipes: dict[str, Any], train_here: Callable[..., Any]
) -> None:
    """Continued, and killed when all steps were saved but the old model still stood there: not taken for the new."""
    table = recipes["everything"]
    longer = {**table, "train": {**table["train"], "max_steps": 16}}
    old = (copied_run / "manifest.json").read_bytes()
    assert runs(longer, copied_run, point="before write config.toml.partial", nth=2)["killed"]
    assert (copied_run / "manifest.json").read_bytes() == old
    assert not train_here(copied_run, train__max_steps=16).already
    assert (copied_run / "manifest.json").read_bytes() != old
