"""A listener that passes on words only."""

from __future__ import annotations

from collections.abc import Callable

from clearhead.train.gradients import Gradients
from clearhead.train.state import RunState, Validation


class Quiet:
    """For callers who want sentences, or nothing."""

    def __init__(self, say: Callable[[str], None] = lambda text: None) -> None:
        self.say = say

    def started(self, step: int, max_steps: int) -> None:
        pass

    def stepped(self, state: RunState, gradients: Gradients, lr_factor: float) -> None:
        pass

    def validated(self, state: RunState, validation: Validation, best: bool) -> None:
        pass

    def saved(self, state: RunState) -> None:
        pass
