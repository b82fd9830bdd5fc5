"""Checkpoints: what is saved is brought back, to the bit, or refused. Crashes and full disks: tests/faults."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from clearhead.config import TrainSettings
from clearhead.errors import DiskError, ModelFileError
from clearhead.files import publish
from clearhead.train import checkpoint
from clearhead.train.checkpoint import Checkpoints, read_state, read_tensors, to_bytes
from clearhead.train.optim import Optimiser
from clearhead.train.state import RunState, Validation
from clearhead.train.weights import Averages, copy_weights

MUON = TrainSettings(optimiser="muon", ema=0.9, average=2, average_every=1)


class Run:
    """A small model with a matrix for Muon and vectors for AdamW, in the middle of training."""

    def __init__(self, folder: Path, keep: int = 2, seed: int = 0) -> None:
        torch.manual_seed(seed)
        self.model = nn.Sequential(nn.Linear(4, 3), nn.LayerNorm(3), nn.Linear(3, 2))
        self.optimiser = Optimiser(self.model, MUON)
        self.averages = Averages(self.model, MUON)
        self.said: list[str] = []
        self.checkpoints = Checkpoints(folder, "identity", keep, self.said.append)
        self.state = RunState()

    def step(self) -> None:
        self.state.step += 1
        torch.manual_seed(self.state.step)
        self.model.zero_grad()
        self.model(torch.randn(5, 4)).square().sum().backward()
        self.optimiser.step(1.0)
        self.averages.after_step(self.model, self.state.step)

    def save(self) -> Path:
        best = copy_weights(self.model) if self.state.best else None
        return self.checkpoints.save(self.state, self.model, self.optimiser, self.averages, best)

    def load(self) -> bool:
        found = self.checkpoints.load_newest(self.model, self.optimiser, self.averages)
        if found is not None:
            self.state = found[0]
        return found is not None

    def everything(self) -> dict[str, torch.Tensor]:
        return copy_weights(self.model) | self.optimiser.tensors() | self.averages.tensors()


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Run]:
    return lambda **options: Run(tmp_path, **options)


def test_going_on_is_exact(run: Callable[..., Run]) -> None:
    ours = run()
    for _ in range(3):
        ours.step()
    ours.state.judge(Validation(step=3, loss=1.0), "loss")
    ours.save()
    again = run(seed=9)
    assert again.load() and again.state == ours.state
    for _ in range(4):
        ours.step()
        again.step()
    mine, theirs = ours.everything(), again.everything()
    assert mine.keys() == theirs.keys() and len(mine) > 20
    assert {"ema/0.weight", "snapshot-0/0.weight", "snapshot-1/0.weight"} <= mine.keys()
    assert all(torch.equal(mine[name], theirs[name]) for name in mine)


def test_a_run_that_has_not_learned_yet_goes_on(run: Callable[..., Run]) -> None:
    """Every step so far was left out: there is nothing of the optimiser to keep, and nothing is missing."""
    ours = run()
    ours.state.step, ours.state.skipped = 2, [1, 2]
    ours.save()
    again = run(seed=9)
    assert again.load() and again.state == ours.state and again.said == []
    ours.step()
    again.step()
    mine, theirs = ours.everything(), again.everything()
    assert mine.keys() == theirs.keys() and all(torch.equal(mine[name], theirs[name]) for name in mine)


def test_equal_steps_give_equal_files(run: Callable[..., Run], tmp_path: Path) -> None:
    for name in ("a", "b"):
        made = Run(tmp_path / name)
        made.step()
        made.save()
    for path in sorted((tmp_path / "a" / "checkpoints" / "step-1").iterdir()):
        assert path.read_bytes() == (tmp_path / "b" / "checkpoints" / "step-1" / path.name).read_bytes()


def test_no_checkpoint_is_no_error(run: Callable[..., Run]) -> None:
    assert not run().load()


@pytest.mark.parametrize(("keep", "left"), [(1, [5]), (2, [4, 5]), (9, [1, 2, 3, 4, 5])])
def test_old_steps_go(keep: int, left: list[int], run: Callable[..., Run]) -> None:
    ours = run(keep=keep)
    for _ in range(5):
        ours.step()
        ours.save()
    assert ours.checkpoints.steps() == left


def test_old_steps_stay_until_the_new_one_is_verified(run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that takes everything and keeps something else."""
    ours = run(keep=1)
    ours.step()
    ours.save()

    def corrupting(folder: Path, files: dict[str, bytes], about: dict[str, str | int]) -> None:
        publish(folder, files, about)
        with (folder / "model.safetensors").open("r+b") as file:
            file.seek(-1, 2)
            file.write(b"\xff")

    monkeypatch.setattr(checkpoint, "publish", corrupting)
    ours.step()
    with pytest.raises(ModelFileError, match="is damaged"):
        ours.save()
    again = run()
    assert again.load() and again.state.step == 1
    assert "falling back" in again.said[0]


def test_steps_that_were_found_damaged_do_not_push_good_ones_out(run: Callable[..., Run], tmp_path: Path) -> None:
    ours = run(keep=2)
    for _ in range(6):
        ours.step()
        if ours.state.step in (2, 5, 6):
            ours.save()
    for step in (5, 6):
        (tmp_path / "checkpoints" / f"step-{step}" / "state.json").write_text("{}")
    again = run(keep=2)
    again.checkpoints.keep = 2
    with pytest.raises(ModelFileError, match="none of the 2 checkpoints can be used"):
        again.load()
    fresh = run(keep=2)
    for _ in range(3):
        fresh.step()
    fresh.save()
    assert fresh.checkpoints.steps() == [3, 5, 6]
    assert run(keep=2).load()


def test_best_weights_belong_to_the_step(run: Callable[..., Run], tmp_path: Path) -> None:
    """The state speaks of best weights, and the folder has none: that step cannot be gone on from."""
    ours = run()
    ours.step()
    ours.state.judge(Validation(step=1, loss=1.0), "loss")
    ours.checkpoints.save(ours.state, ours.model, ours.optimiser, ours.averages, None)
    with pytest.raises(ModelFileError, match="none of the 1"):
        run().load()


def test_a_checkpoint_that_fits_another_model(run: Callable[..., Run]) -> None:
    ours = run()
    ours.step()
    ours.save()
    other = run()
    other.model = nn.Sequential(nn.Linear(4, 3), nn.LayerNorm(3), nn.Linear(3, 7))
    with pytest.raises(ModelFileError):
        other.load()
    assert "does not fit this model" in other.said[0]


@pytest.mark.parametrize("content", ['{"step": -1}', '{"steps": 1}', "[]", '{"best": {"step": 1, "loss": null}}'])
def test_states_that_are_none(content: str, tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text(content)
    with pytest.raises(ModelFileError, match=r"state\.json"):
        read_state(tmp_path / "state.json")


def test_tensors_of_many_types(tmp_path: Path) -> None:
    tensors = {
        "b": torch.tensor([1.5, -2.0], dtype=torch.bfloat16),
        "a": torch.arange(6).reshape(2, 3).T,
        "scalar": torch.tensor(3.0),
        "none": torch.zeros(0, 4),
    }
    (tmp_path / "t").write_bytes(to_bytes(tensors))
    found = read_tensors(tmp_path / "t")
    assert found.keys() == tensors.keys() and all(torch.equal(found[name], tensors[name]) for name in tensors)
    assert to_bytes(dict(reversed(tensors.items()))) == to_bytes(tensors)


def test_a_crash_report_on_a_full_disk_is_no_second_crash(
    run: Callable[..., Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = run()
    assert "details in" in ours.checkpoints.save_crash(4, {"loss": "inf"})
    assert json.loads((tmp_path / "crash-step-4.json").read_text()) == {"loss": "inf"}

    def full(path: Path, data: bytes) -> None:
        raise DiskError("no space")

    monkeypatch.setattr(checkpoint, "write_atomic", full)
    assert "not written down: no space" in ours.checkpoints.save_crash(5, {})
