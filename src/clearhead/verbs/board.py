"""TensorBoard, on request: the numbers of log.jsonl as event files in RUN/tensorboard. Needs the extra of that name."""

from __future__ import annotations

from pathlib import Path

from clearhead.errors import MissingExtra
from clearhead.train.gradients import Gradients
from clearhead.train.loop import Listener
from clearhead.train.state import RunState, Validation

FOLDER = "tensorboard"


class Board:
    """A listener that writes events, then passes the news on."""

    def __init__(self, run: Path, display: Listener) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise MissingExtra(
                "TensorBoard is not installed", field="--tensorboard", hint="pip install 'clearhead[tensorboard]'"
            ) from None
        self.run, self.display, self.make = run, display, SummaryWriter

    def started(self, step: int, max_steps: int) -> None:
        """A resumed run writes over what lies beyond the step it resumes from."""
        self.writer = self.make(str(self.run / FOLDER), purge_step=step + 1)
        self.display.started(step, max_steps)

    def stepped(self, state: RunState, gradients: Gradients, lr_factor: float) -> None:
        for name, value in (("loss", gradients.loss), ("gradient norm", gradients.norm), ("lr factor", lr_factor)):
            self.writer.add_scalar(f"train/{name}", value, state.step)
        self.display.stepped(state, gradients, lr_factor)

    def validated(self, state: RunState, validation: Validation, best: bool) -> None:
        for name, value in {"loss": validation.loss, **validation.scores}.items():
            self.writer.add_scalar(f"held out/{name}", value, state.step)
        self.writer.flush()
        self.display.validated(state, validation, best)

    def saved(self, state: RunState) -> None:
        self.display.saved(state)

    def say(self, text: str) -> None:
        self.display.say(text)
