"""What a truth is: a claim in the notes' words, an experiment, and what would refute it.

Knows claims, conditions and results. Refuses to know how they are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from clearhead.errors import MissingExtra
from clearhead.randomness import key
from clearhead.truths.figure import Figure


@dataclass(frozen=True)
class Given:
    """The conditions of an experiment."""

    seed: int = 1
    control: bool = False
    """Take the experiment's ingredient away: the claim must then not hold."""
    model: Path | None = None
    """The trained model to look at; the one in the package when empty."""

    def generator(self, purpose: str) -> torch.Generator:
        """Chance for one purpose, the same whenever it is asked for."""
        return torch.Generator().manual_seed(key(self.seed, purpose) % 2**63)


@dataclass(frozen=True)
class Result:
    """What came out."""

    measured: Mapping[str, float]
    checks: Mapping[str, bool]
    """What the claim asks of the numbers, sentence by sentence."""
    figures: Sequence[Figure] = ()
    notes: Sequence[str] = ()
    """What a lecturer would add."""
    lacking: str = ""
    """What was missing, when the experiment could not be made."""

    @property
    def holds(self) -> bool | None:
        """Does the claim hold? None when nobody could tell."""
        return None if self.lacking else all(self.checks.values())


@dataclass(frozen=True)
class Truth:
    """One sentence of the notes and the experiment that could refute it."""

    name: str
    row: str
    """Its row of the syllabus, by which it is also known."""
    claim: str
    refuted_by: str
    control: str
    """The ingredient that `--control` takes away."""
    experiment: Callable[[Given], Result] = field(repr=False)

    def prove(self, given: Given) -> Result:
        """Make the experiment. Something optional that is missing is a result, not an error."""
        try:
            return self.experiment(given)
        except MissingExtra as error:
            return Result({}, {}, lacking=str(error))
