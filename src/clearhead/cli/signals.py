"""Signals while training. First: finish the step, save, leave. Second: leave at once; the last save is untouched.

    SIGINT  130      SIGTERM  143      SIGUSR1, time limit  0

While data are read and prepared there is no step to finish, and the first signal leaves; a time limit still waits
for the first step, so that every call gets somewhere.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from clearhead.errors import Interrupted

if TYPE_CHECKING:
    from clearhead.train.loop import Stop

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGUSR1: 0, signal.SIGALRM: 0}
REASONS = {signal.SIGALRM: "time limit reached"}


@contextmanager
def stopping(stop: Stop, max_seconds: float | None = None) -> Iterator[None]:
    """Signals ask `stop` while the block runs."""

    def handle(number: int, frame: FrameType | None) -> None:
        code, reason = CODES[signal.Signals(number)], REASONS.get(signal.Signals(number), signal.Signals(number).name)
        if number == signal.SIGALRM:
            if stop.exit_code is None:
                stop.ask(code, reason)
            return
        if stop.exit_code is not None:
            os.write(2, b"stopped at once; the last checkpoint is untouched\n")
            os._exit(code or 1)
        stop.ask(code, reason)
        if not stop.patient:
            raise Interrupted(f"{reason}: stopped; the same command goes on from what was saved before", code)

    before = {number: signal.signal(number, handle) for number in CODES}
    if max_seconds:
        signal.setitimer(signal.ITIMER_REAL, max_seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
