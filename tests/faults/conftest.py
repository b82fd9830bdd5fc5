"""What the fault tests share: a run so small that it can be broken hundreds of times, and the means to break it.

`runs`          training runs in processes of their own, to be killed
`faulty_disk`   a disk that can fill up, refuse, or lose what was never synced
`train_here`    a training run in this process
`toy_run`       checkpoints of a single small matrix
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch

from clearhead.config import TrainSettings
from clearhead.data.synthetic import reverse
from clearhead.files import disk
from clearhead.train.checkpoint import Checkpoints
from clearhead.train.optim import Optimiser
from clearhead.train.state import RunState
from clearhead.train.weights import Averages, copy_weights
from clearhead.verbs.quiet import Quiet
from clearhead.verbs.train import Finished, train

FORKS = Path(__file__).with_name("forks.py")
STEPS = 12

EVERYTHING: dict[str, Any] = {
    "text": {"vocab_size": 300, "bpe_dropout": 0.1},
    "model": {"encoder_layers": 1, "decoder_layers": 1, "d_model": 16, "d_ff": 32, "n_heads": 2, "max_len": 64}
    | {"dropout": 0.1, "attention_dropout": 0.1, "word_dropout": 0.1},
    "data": {"valid_pairs": 6},
    "train": {"max_steps": STEPS, "batch_tokens": 300, "accumulate": 2, "optimiser": "muon", "lr": 3e-3}
    | {"rdrop": 1.0, "ema": 0.9, "average": 2, "average_every": 3, "warmup_steps": 4, "threads": 1},
    "validation": {"every_steps": 4, "metric": "loss", "decode_pairs": 3, "patience": 2},
    "checkpoint": {"every_steps": 4, "keep": 2},
}
"""Every part of a run that could forget something: all kinds of dropout, BPE-dropout, R-Drop, averages, Muon,
accumulation, decoding while validating."""

OTHER: dict[str, Any] = {
    "text": {"vocab_size": 270, "algorithm": "unigram", "shared": False},
    "model": {"encoder_layers": 1, "decoder_layers": 1, "d_model": 16, "d_ff": 32, "n_heads": 2, "max_len": 64}
    | {"positions": "learned", "tie": "none", "norm": "batch", "dropout": 0.2},
    "data": {"valid_pairs": 6},
    "train": {"max_steps": 40, "batch_tokens": 300, "optimiser": "adamw", "schedule": "wsd", "warmup_steps": 4}
    | {"threads": 1, "precision": "float32", "ema": 0.9},
    "validation": {"every_steps": 3, "metric": "exact", "decode_pairs": 3, "patience": 3},
    "checkpoint": {"every_steps": 2, "keep": 1},
}
"""A run that stops early: nothing is ever exactly right, so patience ends it at step 12. What it comes to are averaged
weights: those of EVERYTHING are the mean of its snapshots, which hides the running average."""


@pytest.fixture(scope="session")
def recipes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The two runs, with their file of pairs."""
    pairs = tmp_path_factory.mktemp("pairs") / "pairs.tsv"
    pairs.write_text("".join(f"{a}\t{b}\n" for a, b in reverse(60, 1, length=5, symbols=8)), encoding="utf-8")
    return {name: {"files": [str(pairs)], **table} for name, table in (("everything", EVERYTHING), ("other", OTHER))}


@pytest.fixture(scope="session")
def train_here(recipes: dict[str, dict[str, Any]]) -> Callable[..., Finished]:
    """Trains in this process; keeps what was said in `say`."""

    def run(out: Path, recipe: str = "everything", say: Callable[[str], None] = lambda _: None, **changes: Any) -> Any:
        overrides = [f"{name.replace('__', '.')}={json.dumps(value)}" for name, value in changes.items()]
        return train(recipes[recipe], out, Quiet(say), overrides=overrides)

    return run


@pytest.fixture(scope="session")
def outcome() -> Callable[[Path], dict[str, str]]:
    """SHA-256 of all that a run comes to: the model, and every file of its last checkpoint."""

    def digest(run: Path) -> dict[str, str]:
        steps = sorted(run.glob("checkpoints/step-*"), key=lambda p: int(p.name.removeprefix("step-")))
        files = [run / "model.safetensors", run / "golden.json", *sorted(steps[-1].iterdir())]
        assert len(files) >= 7
        return {str(f.relative_to(run)): hashlib.sha256(f.read_bytes()).hexdigest() for f in files}

    return digest


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory, train_here: Callable[..., Finished]) -> Path:
    """A run that nobody disturbed. Look at it, copy it, do not touch it."""
    out = tmp_path_factory.mktemp("undisturbed") / "run"
    train_here(out)
    return out


@pytest.fixture(scope="session")
def undisturbed(finished_run: Path, outcome: Callable[[Path], dict[str, str]]) -> dict[str, str]:
    return outcome(finished_run)


@pytest.fixture
def copied_run(finished_run: Path, tmp_path: Path) -> Path:
    """The same, to break."""
    return Path(shutil.copytree(finished_run, tmp_path / "run"))


class Toy:
    """A run of one small matrix, whose every tensor says which step it is of."""

    def __init__(self, root: Path, keep: int = 2) -> None:
        settings = TrainSettings(ema=0.5)
        self.said: list[str] = []
        self.model = torch.nn.Linear(3, 2)
        self.optimiser = Optimiser(self.model, settings)
        self.averages = Averages(self.model, settings)
        self.checkpoints = Checkpoints(root, "toy", keep, self.said.append)

    def save(self, step: int) -> None:
        with torch.no_grad():
            for parameter in self.model.parameters():
                parameter.fill_(step)
                parameter.grad = torch.full_like(parameter, step)
        self.optimiser.step(0.0)
        self.averages.after_step(self.model, step)
        state = RunState(step=step, target_tokens=100 * step)
        self.checkpoints.save(state, self.model, self.optimiser, self.averages, copy_weights(self.model))

    def load(self) -> int | None:
        """The step brought back, when all of it is of one step."""
        found = self.checkpoints.load_newest(self.model, self.optimiser, self.averages)
        if found is None:
            return None
        state, best = found
        assert best is not None and state.target_tokens == 100 * state.step
        for tensor in (*self.model.parameters(), *best.values()):
            assert (tensor == state.step).all()
        return state.step


@pytest.fixture(scope="session")
def toy_run() -> type[Toy]:
    return Toy


# --- processes to be killed -------------------------------------------------------------------------------------


class Runs:
    """Training runs, each in a process of its own, forked from one that has imported everything."""

    def __init__(self) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, str(FORKS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def __call__(self, table: dict[str, Any], out: Path, **how: Any) -> dict[str, Any]:
        """Run to the end, or to the crash that `how` describes (forks.py); what became of it."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps({"table": table, "out": str(out), **how}) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def close(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()


@pytest.fixture(scope="session")
def runs() -> Iterator[Runs]:
    found = Runs()
    yield found
    found.close()


# --- a disk that forgets ----------------------------------------------------------------------------------------


class PulledPlug(BaseException):
    """The machine is off. Nobody catches this but the test."""


@dataclass(eq=False)
class File:
    data: bytes
    synced: bytes | None = None
    """What is surely on the disk."""


@dataclass(eq=False)
class Folder:
    entries: dict[str, File | Folder] = field(default_factory=dict)
    on_disk: dict[str, File | Folder] = field(default_factory=dict)
    pending: list[dict[str, File | Folder | None]] = field(default_factory=list)
    """Changes of names since the last sync, in order; each happens wholly or not at all."""

    def change(self, change: dict[str, File | Folder | None]) -> None:
        self.pending.append(change)
        apply(self.entries, change)


def apply(entries: dict[str, File | Folder], change: dict[str, File | Folder | None]) -> None:
    for name, node in change.items():
        if node is None:
            entries.pop(name, None)
        else:
            entries[name] = node


class FaultyDisk:
    """Stands below files/disk.py: does what is asked, remembers what was synced, and fails when told to."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.tree = self.load(root)
        self.open_nodes: dict[int, File | Folder] = {}
        self.operations: list[str] = []
        self.pull_at: int | None = None
        self.refuse: Callable[[str, int], int | None] = lambda operation, number: None
        """errno with which this operation fails, or None."""
        self.dead = False

    def load(self, path: Path) -> Folder:
        folder = Folder()
        for child in path.iterdir():
            content = child.read_bytes() if child.is_file() else b""
            folder.entries[child.name] = self.load(child) if child.is_dir() else File(content, content)
        folder.on_disk = dict(folder.entries)
        return folder

    def at(self, path: Path | str) -> Folder:
        node: File | Folder = self.tree
        for part in Path(path).relative_to(self.root).parts:
            assert isinstance(node, Folder)
            node = node.entries[part]
        assert isinstance(node, Folder)
        return node

    def operation(self, name: str) -> None:
        if self.dead or len(self.operations) == self.pull_at:
            self.dead = True
            raise PulledPlug
        number = len(self.operations)
        self.operations.append(name)
        if (code := self.refuse(name, number)) is not None:
            raise OSError(code, os.strerror(code))

    # What disk.py knows as `open`, `os` and `shutil`.

    O_RDONLY = os.O_RDONLY
    strerror = staticmethod(os.strerror)
    disk_usage = staticmethod(shutil.disk_usage)

    def open_file(self, path: Path, mode: str) -> WrittenFile:
        assert mode == "wb"
        self.operation(f"open {path.name}")
        real = path.open("wb", buffering=0)
        folder = self.at(path.parent)
        node = File(b"")
        folder.change({path.name: node})
        self.open_nodes[real.fileno()] = node
        return WrittenFile(self, real, node, path.name)

    def open(self, path: Path, flags: int) -> int:
        descriptor = os.open(path, flags)
        self.open_nodes[descriptor] = self.at(path)
        return descriptor

    def close(self, descriptor: int) -> None:
        self.open_nodes.pop(descriptor)
        os.close(descriptor)

    def fsync(self, descriptor: int) -> None:
        self.operation("fsync")
        node = self.open_nodes[descriptor]
        if isinstance(node, File):
            node.synced = node.data
        else:
            node.on_disk, node.pending = dict(node.entries), []

    def mkdir(self, path: Path) -> None:
        self.operation(f"mkdir {path.name}")
        os.mkdir(path)
        self.at(path.parent).change({path.name: Folder()})

    def replace(self, old: Path, new: Path) -> None:
        self.operation(f"rename {new.name}")
        assert old.parent == new.parent
        os.replace(old, new)
        folder = self.at(old.parent)
        folder.change({old.name: None, new.name: folder.entries[old.name]})

    def unlink(self, path: Path) -> None:
        self.operation(f"unlink {path.name}")
        os.unlink(path)
        self.at(path.parent).change({path.name: None})

    def rmtree(self, path: Path, ignore_errors: bool) -> None:
        assert ignore_errors
        if self.dead or not path.exists():
            return
        self.operation(f"rmtree {path.name}")
        shutil.rmtree(path)
        self.empty(self.at(path))
        self.at(path.parent).change({path.name: None})

    def empty(self, folder: Folder) -> None:
        for name, node in list(folder.entries.items()):
            if isinstance(node, Folder):
                self.empty(node)
            folder.change({name: None})

    def after_power_cut(self, where: Path, chance: random.Random) -> Path:
        """The folder as it may be found when the machine is on again."""
        self.restore(self.tree, where, chance)
        return where

    def restore(self, folder: Folder, where: Path, chance: random.Random) -> None:
        where.mkdir()
        entries = dict(folder.on_disk)
        for change in folder.pending[: chance.randint(0, len(folder.pending))]:
            apply(entries, change)
        for name, node in entries.items():
            if isinstance(node, Folder):
                self.restore(node, where / name, chance)
            else:
                (where / name).write_bytes(self.survived(node, chance))

    def survived(self, file: File, chance: random.Random) -> bytes:
        if file.synced is not None:
            return file.synced
        torn = chance.randint(0, len(file.data))
        return chance.choice([b"", file.data[:torn], file.data[:torn] + b"\0" * (len(file.data) - torn)])


class WrittenFile:
    """A file being written to a faulty disk: a refused write still leaves half of its bytes."""

    def __init__(self, owner: FaultyDisk, real: Any, node: File, name: str) -> None:
        self.owner, self.real, self.node, self.name = owner, real, node, name

    def __enter__(self) -> WrittenFile:
        return self

    def __exit__(self, *error: object) -> None:
        self.owner.open_nodes.pop(self.real.fileno())
        self.real.close()

    def write(self, data: bytes) -> None:
        try:
            self.owner.operation(f"write {self.name}")
        except OSError:
            data = data[: len(data) // 2]
            raise
        finally:
            self.real.write(data)
            self.node.data += data

    def flush(self) -> None:
        pass

    def fileno(self) -> int:
        number: int = self.real.fileno()
        return number


@pytest.fixture
def faulty_disk(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], FaultyDisk]:
    """Put one below files/disk.py, for everything under this folder."""

    def install(root: Path) -> FaultyDisk:
        faulty = FaultyDisk(root)
        monkeypatch.setattr(disk, "open", faulty.open_file, raising=False)
        monkeypatch.setattr(disk, "os", faulty)
        monkeypatch.setattr(disk, "shutil", faulty)
        return faulty

    return install


@pytest.fixture(scope="session")
def pulled_plug() -> type[PulledPlug]:
    return PulledPlug


@pytest.fixture(scope="session")
def no_space() -> dict[str, int]:
    """The ways in which a disk refuses."""
    return {"full": errno.ENOSPC, "quota": errno.EDQUOT, "read-only": errno.EROFS, "failing": errno.EIO}
