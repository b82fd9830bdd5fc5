"""Chance for the phrasebook: counted draws, taken from one generator per kind of phrase.

Knows numbers and sequences. Refuses to know what they stand for, but for one thing: which values make phrases
people say, so that the numbers in the book are a vocabulary (12, 250, 7.5, 1,250) and not noise.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import TypeVar

from clearhead.randomness import numpy_generator

T = TypeVar("T")


class NothingToChoose(Exception):
    """A sequence is empty: these two locales have nothing of this kind in common."""


BLOCK = 1 << 14
FIRST_DAY = dt.date(1960, 1, 1)
LAST_DAY = dt.date(2039, 12, 31)  # eighty years: two digits name a year of these without doubt


class Draws:
    """A stream of numbers that depends on the seed and the purpose only."""

    def __init__(self, seed: int, purpose: str) -> None:
        self._generator = numpy_generator(seed, purpose)
        self._block: list[float] = []

    def fraction(self) -> float:
        if not self._block:
            self._block = self._generator.random(BLOCK).tolist()
        return self._block.pop()

    def below(self, end: int) -> int:
        return int(self.fraction() * end)

    def between(self, first: int, last: int) -> int:
        return first + self.below(last - first + 1)

    def pick(self, items: Sequence[T]) -> T:
        if not items:
            raise NothingToChoose
        return items[self.below(len(items))]

    def chance(self, share: float) -> bool:
        return self.fraction() < share

    def prominent(self, items: Sequence[T]) -> T:
        """The first items more often, and the last ones two thirds as often as if all were equal."""
        if not items:
            raise NothingToChoose
        return items[int(len(items) * self.fraction() ** 1.5)]

    def several(self, items: Sequence[T], count: int) -> list[T]:
        """`count` different ones (or all there are), in the order drawn."""
        if not items:
            raise NothingToChoose
        chosen: dict[T, None] = {}
        while len(chosen) < min(count, len(items)):
            chosen[self.prominent(items)] = None
        return list(chosen)

    def day(self) -> dt.date:
        return FIRST_DAY + dt.timedelta(days=self.below((LAST_DAY - FIRST_DAY).days + 1))

    def moment(self) -> dt.datetime:
        """A day with a time to five minutes."""
        return dt.datetime.combine(self.day(), dt.time(self.below(24), 5 * self.below(12)))

    def number(self) -> float:
        """One, small counts, up to a hundred, one decimal place, round hundreds and thousands."""
        size = self.fraction()
        if size < 0.08:
            return 1  # the singular is a word of its own in most languages
        if size < 0.38:
            return self.between(2, 12)
        if size < 0.65:
            return self.between(13, 99)
        if size < 0.80:
            return self.below(20) + self.between(1, 9) / 10
        return 50 * self.between(2, 19) if size < 0.90 else 250 * self.between(4, 39)
