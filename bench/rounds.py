"""Turns and figures: contestants take turns, round after round, so that whatever the machine does meets them all."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from bench.children import Failed

T = TypeVar("T")


@dataclass
class Series:
    """One contestant's figures, one a round."""

    values: list[float] = field(default_factory=list)
    failed: str | None = None

    @property
    def median(self) -> float | None:
        return statistics.median(self.values) if self.values and self.failed is None else None

    @property
    def spread(self) -> float | None:
        """Largest over smallest: how far the rounds can be trusted."""
        return max(self.values) / min(self.values) if self.values and min(self.values) > 0 else None


def turns(names: Sequence[T], rounds: int) -> Iterator[tuple[int, T]]:
    """(round, name): everybody once a round; every other round backwards, so that nobody always follows the same."""
    for number in range(rounds):
        for name in names if number % 2 == 0 else list(reversed(names)):
            yield number, name


def play(names: Sequence[str], rounds: int, turn: Callable[[str], float]) -> dict[str, Series]:
    """Everybody's figures. Who fails once is out; the others go on."""
    series = {name: Series() for name in names}
    for _, name in turns(names, rounds):
        if series[name].failed is not None:
            continue
        try:
            series[name].values.append(turn(name))
        except Failed as error:
            series[name].failed = str(error)
    return series


def ratio(ours: float | None, theirs: float | None) -> float | None:
    return ours / theirs if ours is not None and theirs else None
