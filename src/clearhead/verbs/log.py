"""log.jsonl: one JSON object per line; the numbers of a run, never its text.

On resume, lines beyond the step resumed from are taken out, so the log tells one story. A log that cannot be written
stops no run: that is said once.
"""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

from clearhead.files import disk, write_atomic
from clearhead.train.gradients import Gradients
from clearhead.train.loop import Listener
from clearhead.train.state import RunState, Validation

EVERY = 10
"""Steps between two lines of the training loss."""


class RunLog:
    """A listener that writes, then passes the news on."""

    def __init__(self, path: Path, display: Listener) -> None:
        self.path, self.display = path, display
        self.losses: list[tuple[float, int]] = []
        self.since = time.monotonic()
        self.failed = False

    def truncate(self, step: int) -> None:
        """Only what happened up to this step stays."""
        if self.path.exists():
            with disk.disk_errors(self.path):
                lines = self.path.read_text(encoding="utf-8", errors="replace").split("\n")
            kept = [line for line in lines if before_or_at(line, step)]
            write_atomic(self.path, "".join(line + "\n" for line in kept).encode())

    def write(self, record: dict[str, Any]) -> None:
        try:
            with open(self.path, "a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(json.dumps(finite(record), ensure_ascii=False, allow_nan=False) + "\n")
        except OSError as error:
            if not self.failed:
                self.failed = True
                self.display.say(f"{self.path} cannot be written ({error.strerror}); training goes on without")

    def started(self, step: int, max_steps: int) -> None:
        self.display.started(step, max_steps)

    def stepped(self, state: RunState, gradients: Gradients, lr_factor: float) -> None:
        if gradients.finite:
            self.losses.append((gradients.loss, gradients.target_tokens))
        if state.step % EVERY == 0 and self.losses:
            tokens = sum(n for _, n in self.losses)
            loss = sum(value * n for value, n in self.losses) / tokens
            seconds = time.monotonic() - self.since
            self.write(
                {"step": state.step, "epoch": state.epoch, "loss": round(loss, 5), "norm": round(gradients.norm, 4)}
                | {"lr_factor": round(lr_factor, 6), "target_tokens": state.target_tokens, "seconds": round(seconds, 1)}
            )
            self.losses.clear()
        self.display.stepped(state, gradients, lr_factor)

    def validated(self, state: RunState, validation: Validation, best: bool) -> None:
        scores = {name: round(value, 4) for name, value in validation.scores.items()}
        self.write({"step": state.step, "valid_loss": round(validation.loss, 5), **scores, "best": best})
        self.display.validated(state, validation, best)

    def saved(self, state: RunState) -> None:
        self.display.saved(state)

    def say(self, text: str) -> None:
        self.write({"note": text})
        self.display.say(text)


def finite(record: dict[str, Any]) -> dict[str, Any]:
    """JSON has no infinity: null stands for it."""
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in record.items()}


def before_or_at(line: str, step: int) -> bool:
    try:
        return int(json.loads(line).get("step", 0)) <= step
    except (ValueError, AttributeError, TypeError):
        return False  # a line torn by a crash
