"""The loop: batches → gradients → update, and on the way validation, checkpoints and news.

    for each step:   gradients of this step's batches · finite? · clip · update · averages
                     every so often: validate the weights that would be shipped · save everything

Knows a model, batches and settings. Validation comes as a function, news go to a listener, a stop is asked for
through a flag. No schedule reads the clock.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import torch

from clearhead.config import Experiment
from clearhead.data.batching import Batch, Batches
from clearhead.errors import DiskError, Interrupted, NumbersError
from clearhead.models.protocol import EncoderDecoder
from clearhead.native.memory import keep_freed_memory
from clearhead.train import blame
from clearhead.train.checkpoint import Checkpoints, copies_saved
from clearhead.train.gradients import Gradients, compute_gradients
from clearhead.train.machine import this_machine
from clearhead.train.optim import Optimiser
from clearhead.train.schedule import factor
from clearhead.train.state import RunState, Validation
from clearhead.train.weights import Averages, Weights, borrowed, copy_weights

MOST_FAILED_SAVES = 3
MOST_LEFT_OUT_IN_A_ROW = 10
Validate = Callable[[EncoderDecoder, int], Validation]


class Listener(Protocol):
    """Whoever wants to know: the log, the progress display, a test."""

    def started(self, step: int, max_steps: int) -> None: ...

    def stepped(self, state: RunState, gradients: Gradients, lr_factor: float) -> None: ...

    def validated(self, state: RunState, validation: Validation, best: bool) -> None: ...

    def saved(self, state: RunState) -> None: ...

    def say(self, text: str) -> None: ...


@dataclass
class Stop:
    """Asked for by a signal or a time limit; the loop looks after each step."""

    exit_code: int | None = None
    reason: str = ""
    patient: bool = False
    """Is somebody looking? Before the first step and after the last nobody is."""

    def ask(self, exit_code: int, reason: str) -> None:
        self.exit_code, self.reason = exit_code, reason


@dataclass
class Training:
    """One run in progress."""

    model: EncoderDecoder
    batches: Batches
    experiment: Experiment
    checkpoints: Checkpoints
    validate: Validate
    listener: Listener
    stop: Stop = field(default_factory=Stop)
    state: RunState = field(default_factory=lambda: RunState())
    best: Weights | None = None
    """The weights that did best on the held-out pairs."""
    failed_saves: int = 0
    saved_at: int | None = None

    def __post_init__(self) -> None:
        keep_freed_memory()
        self.optimiser = Optimiser(self.model, self.experiment.train)
        self.averages = Averages(self.model, self.experiment.train)
        self.machine = this_machine(self.model.output_weight.device, self.experiment.train.precision)
        self.state.runs_on(self.machine)

    def resume(self) -> bool:
        """Go on from the newest good checkpoint; False when there is none."""
        found = self.checkpoints.load_newest(self.model, self.optimiser, self.averages)
        if found is not None:
            self.state, self.best = found
            self.state.runs_on(self.machine)
            self.saved_at = self.state.step
        return found is not None

    def run(self) -> Weights:
        """Train to the end. Returns the weights that did best on the held-out pairs."""
        self.model.train()
        self.require_room()
        self.stop.patient = True
        self.listener.started(self.state.step, self.experiment.train.max_steps)
        while not self.finished():
            if not self.advance():
                continue
            if self.due(self.experiment.validation.every_steps) or self.at_end():
                self.judge()
            if self.due(self.experiment.checkpoint.every_steps) or self.finished():
                self.save()
            self.leave_if_asked()
        self.stop.patient = False
        if self.best is None:  # stopped before its first validation, then told that this was enough
            self.judge()
        assert self.best is not None
        return self.best

    def require_room(self) -> None:
        copies = copies_saved(self.experiment.train)
        weights = sum(parameter.nbytes for parameter in self.model.parameters())
        self.checkpoints.require_room(weights, copies)

    def leave_if_asked(self) -> None:
        if self.stop.exit_code is None:
            return
        if self.saved_at != self.state.step:
            self.save(final=True)
        raise Interrupted(
            f"{self.stop.reason}: stopped after step {self.state.step:,}, everything is saved; "
            "the same command continues",
            self.stop.exit_code,
        )

    def finished(self) -> bool:
        return self.at_end() or self.out_of_patience()

    def due(self, every: int) -> bool:
        return self.state.step % every == 0

    def at_end(self) -> bool:
        return self.state.step >= self.experiment.train.max_steps

    def out_of_patience(self) -> bool:
        return self.state.without_improvement >= self.experiment.validation.patience

    def advance(self) -> bool:
        """One step forward; False when it led back to an earlier one."""
        settings = self.experiment.train
        batches, cursor = self.batches.take(self.state.cursor, settings.accumulate)
        step = self.state.step + 1
        gradients = compute_gradients(self.model, batches, settings, step, self.state.pieces)
        if gradients.pieces > self.state.pieces:
            self.listener.say(
                f"out of memory: batches are cut into {gradients.pieces} pieces from step {step:,} on; "
                "masks are unchanged, sums agree within rounding, bit-exactness with an uncut run ends here"
            )
            self.state.pieces = gradients.pieces
        if not gradients.finite and step not in self.state.skipped and self.went_wrong(step, gradients, batches):
            return False
        lr_factor = factor(step, settings)
        if gradients.finite and step not in self.state.skipped:
            self.update(gradients, lr_factor, step)
        self.state.step = step
        self.state.move_to(cursor)
        self.state.target_tokens += gradients.target_tokens
        self.listener.stepped(self.state, gradients, lr_factor)
        return True

    def update(self, gradients: Gradients, lr_factor: float, step: int) -> None:
        clip = self.experiment.train.clip_norm
        if gradients.norm > clip:
            torch._foreach_mul_([p.grad for p in self.model.parameters() if p.grad is not None], clip / gradients.norm)
        self.optimiser.step(lr_factor)
        self.averages.after_step(self.model, step)

    def went_wrong(self, step: int, gradients: Gradients, batches: list[Batch]) -> bool:
        """Loss or gradient is not finite: the weights never see it. True when the run has gone back."""
        settings = self.experiment.train
        bundle = blame.bundle(self.model, batches, settings, step, gradients)
        what = f"step {step:,}: loss {gradients.loss}, gradient norm {gradients.norm}; {blame.sentence(bundle)}"
        written = self.checkpoints.save_crash(step, bundle)
        if settings.on_nonfinite == "stop":
            raise NumbersError(
                f"{what}. The weights have not seen it; {written}",
                hint="train again with a lower train.lr, or go on with --set train.on_nonfinite=skip (or rewind)",
            )
        if self.state.left_out_in_a_row(step) >= MOST_LEFT_OUT_IN_A_ROW:
            raise NumbersError(f"{what}. {MOST_LEFT_OUT_IN_A_ROW} batches before it were left out too; {written}")
        skipped = sorted({*self.state.skipped, step})
        gone_back = settings.on_nonfinite == "rewind" and self.resume()
        self.state.skipped = skipped
        back = f"back to step {self.state.step:,}, " if gone_back else ""
        self.listener.say(f"{what}: {back}batch left out, number {len(skipped):,} in this run; {written}")
        return gone_back

    def judge(self) -> None:
        """Validate the weights that would be shipped; keep them if they are the best so far."""
        weights = self.averages.shipped(self.model)
        with borrowed(self.model, weights):
            validation = self.validate(self.model, self.state.step)
            shipped = copy_weights(self.model)
        if not math.isfinite(validation.loss):
            raise NumbersError(
                f"step {self.state.step:,}: the held-out loss is {validation.loss}; these weights are not kept",
                hint="train again with a lower train.lr; the checkpoints before are as they were",
            )
        best = self.state.judge(validation, self.experiment.validation.metric)
        if best:
            self.best = shipped
        self.listener.validated(self.state, validation, best)

    def save(self, final: bool = False) -> None:
        """A full disk ends the run only when it stays full, or when there is no later chance."""
        try:
            self.checkpoints.save(self.state, self.model, self.optimiser, self.averages, self.best)
        except DiskError as error:
            self.failed_saves += 1
            if final or self.finished() or self.failed_saves >= MOST_FAILED_SAVES:
                raise
            self.listener.say(f"not saved: {error}; training goes on, the next save is tried as usual")
            return
        self.failed_saves, self.saved_at = 0, self.state.step
        self.listener.saved(self.state)
