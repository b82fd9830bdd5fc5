"""Checkpoints: everything a run is made of, on disk, whole, hashed.

    checkpoints/step-N/   model.safetensors       the weights at step N
                          best.safetensors        the weights that did best up to there
                          optimizer.safetensors · averages.safetensors · state.json · manifest.json

Each step stands alone: it holds all that the rest of the run follows from. Saved beside a `.partial` name and renamed
(files/atomic.py). Loading verifies every hash and falls back, loudly, to the newest good step. Old steps are deleted
only after the new one has been read back and verified.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import safetensors.torch
from pydantic import ValidationError
from torch import Tensor, nn

from clearhead.config import TrainSettings
from clearhead.errors import ClearheadError, ModelFileError
from clearhead.files import discard, disk, publish, read_checked, sweep_partial, verify, write_atomic
from clearhead.files.manifest import read_json
from clearhead.train.optim import Optimiser
from clearhead.train.state import RunState
from clearhead.train.weights import Averages, Weights, named_weights, put_weights

FOLDER = "checkpoints"
MODEL, BEST, OPTIMISER, AVERAGES = (f"{name}.safetensors" for name in ("model", "best", "optimizer", "averages"))
STATE = "state.json"
LARGEST_STATE = 10_000_000
Say = Callable[[str], None]


def copies_saved(settings: TrainSettings) -> int:
    """How many times the weights' size a checkpoint takes: the weights, the best ones, AdamW's two averages (Muon has
    one, of the matrices), and the averages asked for."""
    return 4 + bool(settings.ema) + settings.average


def is_step(name: str) -> bool:
    return name.startswith("step-") and name.removeprefix("step-").isdecimal() and name.isascii()


class Checkpoints:
    """The checkpoints of one run folder."""

    def __init__(self, run: Path, identity: str, keep: int, say: Say) -> None:
        self.run = run
        self.folder = run / FOLDER
        self.identity = identity
        self.keep = keep
        self.say = say

    def require_room(self, weights: int, copies: int) -> None:
        """Before the first step, not after an hour: the folder can be made, and a save has space."""
        disk.make_folder(self.folder)
        disk.require_space(self.folder, weights * copies)

    def save(
        self, state: RunState, model: nn.Module, optimiser: Optimiser, averages: Averages, best: Weights | None
    ) -> Path:
        folder = self.folder / f"step-{state.step}"
        tensors = {
            MODEL: named_weights(model),
            BEST: best or {},
            OPTIMISER: optimiser.tensors(),
            AVERAGES: averages.tensors(),
        }
        disk.make_folder(self.folder)
        disk.require_space(self.folder, sum(t.nbytes for group in tensors.values() for t in group.values()))
        files: dict[str, bytes | Callable[[], bytes]] = {
            name: partial(to_bytes, group) for name, group in tensors.items() if group or name == OPTIMISER
        }
        files[STATE] = state.model_dump_json(indent=1).encode()
        disk.reached("before save")
        publish(folder, files, {"kind": "checkpoint", "step": state.step, "run": self.identity})
        verify(folder)
        disk.reached("after verify")
        self._delete_older(state.step)
        return folder

    def _delete_older(self, newest: int) -> None:
        """What is newer than the newest was found damaged, and is replaced when the run comes by again."""
        older = [step for step in self.steps() if step < newest]
        for step in older[: max(0, len(older) - self.keep + 1)]:
            discard(self.folder / f"step-{step}")

    def steps(self) -> list[int]:
        """Steps that have a published folder, oldest first."""
        if not self.folder.is_dir():
            return []
        return sorted(int(p.name.removeprefix("step-")) for p in self.folder.iterdir() if is_step(p.name))

    def load_newest(
        self, model: nn.Module, optimiser: Optimiser, averages: Averages
    ) -> tuple[RunState, Weights | None] | None:
        """Bring back the newest good checkpoint, and the best weights; None when there is none."""
        for note in sweep_partial(self.folder, is_step):
            self.say(note)
        steps = self.steps()
        for step in reversed(steps):
            folder = self.folder / f"step-{step}"
            try:
                return self._load(folder, model, optimiser, averages)
            except ModelFileError as error:
                self.say(f"checkpoint step-{step} cannot be used: {error}; falling back to an older one")
        if steps:
            raise ModelFileError(
                f"none of the {len(steps)} checkpoints can be used",
                file=self.folder,
                hint="delete this folder to begin again from step 0, or train with another -o",
            )
        return None

    def _load(
        self, folder: Path, model: nn.Module, optimiser: Optimiser, averages: Averages
    ) -> tuple[RunState, Weights | None]:
        manifest = verify(folder, needed=(MODEL, OPTIMISER, STATE))
        if manifest.about.get("run") != self.identity:
            raise ModelFileError("belongs to another run (other settings or data)", file=folder)
        state = read_state(folder / STATE)
        found = {
            name: read_tensors(folder / name) for name in (MODEL, BEST, OPTIMISER, AVERAGES) if name in manifest.files
        }
        if state.best is not None and BEST not in found:
            raise ModelFileError("is not in the manifest", file=folder / BEST)
        try:
            put_weights(model, found[MODEL])
            optimiser.load(found[OPTIMISER])
            averages.load(found.get(AVERAGES, {}))
        except (KeyError, RuntimeError) as error:
            raise ModelFileError(f"does not fit this model: {error}", file=folder) from None
        return state, found.get(BEST)

    def save_crash(self, step: int, bundle: dict[str, Any]) -> str:
        """Write down a step that went wrong; a sentence on where. A full disk must not hide what it is about."""
        path = self.run / f"crash-step-{step}.json"
        try:
            write_atomic(path, (json.dumps(bundle, indent=1) + "\n").encode())
        except ClearheadError as error:
            return f"(not written down: {error})"
        return f"details in {path}"


def read_state(path: Path) -> RunState:
    try:
        return RunState.model_validate(read_json(path, LARGEST_STATE))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise ModelFileError(f"is not the state of a run: {first['msg']}", file=path, field=field) from None


def to_bytes(tensors: dict[str, Tensor]) -> bytes:
    """safetensors: names, shapes and numbers; equal tensors give equal bytes."""
    return safetensors.torch.save({name: tensors[name].detach().contiguous().cpu() for name in sorted(tensors)})


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Tensors of a file whose header has been checked."""
    try:
        return safetensors.torch.load(read_checked(path))
    except (safetensors.SafetensorError, ValueError, KeyError) as error:
        raise ModelFileError(f"cannot be read: {error}", file=path) from None
