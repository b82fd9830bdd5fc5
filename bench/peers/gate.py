"""Somebody else's training loop, let through one step at a time, and the batches everybody trains on."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np


class Gate:
    """Runs `loop` in a thread of its own. The loop calls `wait` before each step, or `begin` and `end` around it."""

    def __init__(self, loop: Callable[[], Any]) -> None:
        self.permits: queue.Queue[None] = queue.Queue()
        self.ends: queue.Queue[BaseException | None] = queue.Queue()
        self.begun = False
        self.loop = loop
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self) -> None:
        try:
            self.loop()
            self.ends.put(RuntimeError("training ended by itself"))
        except BaseException as error:  # handed to whoever waits for the step
            self.ends.put(error)

    def begin(self) -> None:
        self.permits.get()

    def end(self) -> None:
        self.ends.put(None)

    def wait(self) -> None:
        """Called between steps: the one before is over."""
        if self.begun:
            self.end()
        self.begun = True
        self.begin()

    def steps(self, count: int) -> float:
        """Let so many steps through; the seconds they took. The loop is started by the first."""
        if self.thread.ident is None:
            self.thread.start()
        start = time.perf_counter()
        for _ in range(count):
            self.permits.put(None)
            error = self.ends.get()
            if error is not None:
                raise error
        return time.perf_counter() - start


class Batches:
    """The batches of a file, again and again: (source, target_in, target_out), int64, padded with 0."""

    def __init__(self, file: str) -> None:
        with np.load(file) as arrays:
            count = len(arrays.files) // 3
            self.all = [tuple(arrays[f"{name}_{i}"] for name in ("source", "in", "out")) for i in range(count)]
        self.tokens = [int((out != 0).sum()) for _, _, out in self.all]
        self.done = 0

    def __iter__(self) -> Iterator[tuple[np.ndarray, ...]]:
        while True:
            yield from self.all

    def count(self, steps: int) -> int:
        """Target tokens of the next so many steps."""
        places = range(self.done, self.done + steps)
        self.done += steps
        return sum(self.tokens[place % len(self.all)] for place in places)
