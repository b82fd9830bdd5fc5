"""A line now and then on long work: how far, and how long it will take. Silent on what is over in seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
FIRST_AFTER, EVERY = 2.0, 5.0


class Ticker:
    """Call it with how much more is done; `total` may be unknown."""

    def __init__(self, say: Callable[[str], None], what: str, total: int | None = None) -> None:
        self.say, self.what, self.total = say, what, total
        self.done = 0
        self.began = time.monotonic()
        self.next = self.began + FIRST_AFTER

    def __call__(self, more: int) -> None:
        self.done += more
        now = time.monotonic()
        if now >= self.next:
            self.next = now + EVERY
            self.say(f"{self.what}: {self.text(now - self.began)}")

    def reached(self, done: int) -> None:
        """For callers who count from the beginning."""
        self(done - self.done)

    def text(self, elapsed: float) -> str:
        if self.total is None:
            return f"{self.done:,}"
        left = elapsed * (self.total - self.done) / max(1, self.done)
        return f"{self.done:,} of {self.total:,}, about {left:.0f} s left"

    def each(self, items: Iterable[T]) -> Iterator[T]:
        """The same items, counted."""
        for item in items:
            self(1)
            yield item
