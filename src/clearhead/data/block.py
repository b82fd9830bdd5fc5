"""Pairs side by side, and what they are measured against: what every rule of `findings` is given.

Knows strings and their lengths. Refuses to know what is wrong with them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Standards:
    """What pairs are measured against."""

    max_ratio: float
    source_script: str | None = None
    target_script: str | None = None
    held_out: HeldOut | None = None


@dataclass
class HeldOut:
    """The test set, as hashes of its normalised texts."""

    sources: set[int] = field(default_factory=set)
    targets: set[int] = field(default_factory=set)

    def add(self, source: str, target: str) -> None:
        self.sources.add(hash(normal(source)))
        self.targets.add(hash(normal(target)))


def normal(text: str) -> str:
    """As the leakage check compares: without case and white space."""
    return " ".join(text.casefold().split())


@dataclass
class Block:
    """Pairs side by side."""

    sources: Sequence[str]
    targets: Sequence[str]
    standards: Standards

    @cached_property
    def lengths(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Characters per side."""
        sides = (self.sources, self.targets)
        source, target = (np.fromiter(map(len, side), np.int64, len(side)) for side in sides)
        return source, target

    @cached_property
    def odd(self) -> list[int]:
        """Pairs with anything but letters, marks, digits, punctuation and plain spaces: few, so rules can take time."""
        both = zip(self.sources, self.targets, strict=True)
        return [i for i, (s, t) in enumerate(both) if not (s.isprintable() and t.isprintable())]

    def odd_with(self, pattern: re.Pattern[str]) -> list[int]:
        return [i for i in self.odd if pattern.search(self.sources[i]) or pattern.search(self.targets[i])]
