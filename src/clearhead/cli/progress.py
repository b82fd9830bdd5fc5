"""What a person sees while a model learns: a live bar in a terminal, plain lines elsewhere. All on stderr."""

from __future__ import annotations

import sys
import time
from collections import deque
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

if TYPE_CHECKING:
    from clearhead.train.gradients import Gradients
    from clearhead.train.state import RunState, Validation

PLAIN_EVERY_SECONDS = 10.0


def duration(seconds: float) -> str:
    """ "1 h 04 min", "3 min 20 s", "12 s"."""
    whole = int(seconds + 0.5)
    if whole >= 3600:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    if whole >= 60:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole} s"


class Pace:
    """Steps and tokens per second over the last while, and the time remaining."""

    def __init__(self, max_steps: int) -> None:
        self.max_steps = max_steps
        self.marks: deque[tuple[float, int, int]] = deque(maxlen=200)

    def mark(self, step: int, tokens: int) -> None:
        self.marks.append((time.monotonic(), step, tokens))

    def rates(self) -> tuple[float, float]:
        (start, step_0, tokens_0), (end, step_1, tokens_1) = self.marks[0], self.marks[-1]
        elapsed = max(end - start, 1e-9)
        return (step_1 - step_0) / elapsed, (tokens_1 - tokens_0) / elapsed

    def text(self) -> str:
        if len(self.marks) < 2:
            return ""
        steps, tokens = self.rates()
        left = (self.max_steps - self.marks[-1][1]) / steps if steps else 0.0
        return f"{tokens:,.0f} tokens/s · {duration(left)} left"


def validation_text(validation: Validation, best: bool) -> str:
    scores = " · ".join(f"{name} {value:.1f}" for name, value in validation.scores.items())
    line = f"step {validation.step:,}: held-out loss {validation.loss:.3f}{' · ' + scores if scores else ''}"
    line += " · best so far" if best else ""
    if validation.sample is None:
        return line
    source, reference, output = validation.sample
    return f"{line}\n    {source}\n    → {output}" + ("" if output == reference else f"\n      (wanted: {reference})")


class PlainDisplay:
    """Lines, for logs and pipes."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self.pace: Pace | None = None
        self.last = time.monotonic()

    def started(self, step: int, max_steps: int) -> None:
        self.pace = Pace(max_steps)

    def stop(self) -> None:
        pass

    def say(self, text: str) -> None:
        if not self.quiet:
            print(text, file=sys.stderr, flush=True)

    def stepped(self, state: RunState, gradients: Gradients, lr_factor: float) -> None:
        if self.pace is None:
            return
        self.pace.mark(state.step, state.target_tokens)
        if time.monotonic() - self.last >= PLAIN_EVERY_SECONDS:
            self.last = time.monotonic()
            self.say(f"step {state.step:,}/{self.pace.max_steps:,} · loss {gradients.loss:.3f} · {self.pace.text()}")

    def validated(self, state: RunState, validation: Validation, best: bool) -> None:
        self.say(validation_text(validation, best))

    def saved(self, state: RunState) -> None:
        pass


class LiveDisplay(PlainDisplay):
    """A bar that moves, with validations scrolling above it."""

    def __init__(self) -> None:
        super().__init__()
        self.console = Console(stderr=True, highlight=False, markup=False)
        self.bar: Progress | None = None

    def started(self, step: int, max_steps: int) -> None:
        super().started(step, max_steps)
        columns = (
            BarColumn(30),
            TextColumn("{task.completed:,}/{task.total:,} steps", markup=False),
            TextColumn("{task.fields[news]}", markup=False),
        )
        self.bar = Progress(*columns, console=self.console)
        self.task = self.bar.add_task("train", total=max_steps, completed=step, news="")
        self.bar.start()

    def stop(self) -> None:
        if self.bar is not None:
            self.bar.stop()
            self.bar = None

    def say(self, text: str) -> None:
        self.console.print(text)

    def stepped(self, state: RunState, gradients: Gradients, lr_factor: float) -> None:
        if self.bar is None or self.pace is None:
            return
        self.pace.mark(state.step, state.target_tokens)
        news = f"loss {gradients.loss:.3f} · {self.pace.text()}"
        self.bar.update(self.task, completed=state.step, news=news)


def display(quiet: bool = False) -> PlainDisplay:
    """The one that suits where stderr goes."""
    return LiveDisplay() if sys.stderr.isatty() and not quiet else PlainDisplay(quiet)
