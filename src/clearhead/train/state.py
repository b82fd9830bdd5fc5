"""Where a run stands, as integers: with the tensors beside it, all that an exact resume needs."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from clearhead.config import Experiment
from clearhead.data.order import Cursor
from clearhead.train.machine import TOLERANCE, Machine


class Validation(BaseModel):
    """How the weights that would be shipped did on the held-out pairs."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    step: int
    loss: float
    """Nats per target token, without smoothing."""
    scores: dict[str, float] = {}
    """bleu, chrf, exact: of decoded sentences."""
    sample: tuple[str, str, str] | None = None
    """One source, its reference and its translation."""

    def value(self, metric: str) -> float:
        """Higher is better."""
        return -self.loss if metric == "loss" else self.scores[metric]


class RunState(BaseModel):
    """Changed by every step; saved with every checkpoint."""

    model_config = ConfigDict(extra="forbid")
    step: int = Field(0, ge=0)
    epoch: int = Field(0, ge=0)
    index: int = Field(0, ge=0)
    """Batches of this epoch already used."""
    target_tokens: int = 0
    pieces: int = Field(1, ge=1)
    """Into how many pieces batches are cut since memory ran out."""
    skipped: list[int] = []
    """Steps left out because their numbers went wrong."""
    best: Validation | None = None
    without_improvement: int = 0
    validations: int = 0
    machines: list[Machine] = []
    """The classes of machines that had a part in this run, in order."""

    @property
    def exact(self) -> bool:
        """Is this, so far, bit for bit what an unbroken run on one class of machines gives?"""
        return len(self.machines) <= 1 and self.pieces == 1

    def runs_on(self, machine: Machine) -> None:
        if not self.machines or self.machines[-1] != machine:
            self.machines = [*self.machines, machine]

    @property
    def promise(self) -> str:
        """Which of the two promises about the result holds."""
        if self.exact:
            return f"the result is bit-identical to that of a run never stopped ({self.machines[-1]})"
        why = (
            " → ".join(map(str, self.machines)) if len(self.machines) > 1 else f"batches cut into {self.pieces} pieces"
        )
        return f"losses agree within {TOLERANCE:g} with those of a run never stopped, not bit for bit ({why})"

    @property
    def cursor(self) -> Cursor:
        return Cursor(self.epoch, self.index)

    def move_to(self, cursor: Cursor) -> None:
        self.epoch, self.index = cursor.epoch, cursor.index

    def left_out_in_a_row(self, step: int) -> int:
        """How many steps just before this one were left out."""
        skipped, count = set(self.skipped), 0
        while step - 1 - count in skipped:
            count += 1
        return count

    def judge(self, validation: Validation, metric: str) -> bool:
        """Remember the best so far; is it this one?"""
        self.validations += 1
        if self.best is None or validation.value(metric) > self.best.value(metric):
            self.best, self.without_improvement = validation, 0
            return True
        self.without_improvement += 1
        return False


RESUMABLE = {"max_steps", "on_nonfinite", "threads", "device"}
"""Settings of [train] that may change between two calls of the same run."""


def difference(old: Experiment, new: Experiment) -> list[str]:
    """ "train.lr: 0.001 → 0.002" for every setting that decides the run and differs."""
    before, after = old.model_dump(mode="json"), new.model_dump(mode="json")
    found = [f"size: {old.size} → {new.size}"] if old.size != new.size else []
    for section in ("text", "data", "model", "train", "validation"):
        for name, value in before[section].items():
            if value != after[section][name] and not (section == "train" and name in RESUMABLE):
                found.append(f"{section}.{name}: {value} → {after[section][name]}")
    return found
