"""What a lens gives: numbers, and with them how they were made, what that cost, and what to hold against them.

Knows arrays and words. Refuses to know networks.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from clearhead.glass import shown
from clearhead.glass.layout import Array

Labels = tuple[tuple[str, ...] | None, ...]


@dataclass(frozen=True)
class Cost:
    """Measured seconds, and how many rows went through the network, forward and back."""

    seconds: float
    passes: int = 0
    backward: int = 0


@dataclass(frozen=True)
class Control:
    """The same measure where there should be nothing to see, or what chance gives."""

    what: str
    value: float


@dataclass(frozen=True)
class Finding:
    """The numbers of one lens on one sentence."""

    method: str
    values: Array
    axes: tuple[str, ...]
    labels: Labels
    cost: Cost
    control: Control
    caveat: str
    edits: tuple[str, ...]
    """Interventions that were on."""

    def __str__(self) -> str:
        return "\n".join(shown.about(self))

    def _repr_html_(self) -> str:
        return shown.finding(self)


class Clock:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self.start = time.perf_counter()

    def cost(self, passes: int = 0, backward: int = 0) -> Cost:
        return Cost(time.perf_counter() - self.start, passes, backward)
