"""What a truth shows besides its numbers: figures as data. How they are drawn is decided elsewhere.

In characters for the terminal: plot.py. As SVG for the page and for PNG: svg.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Curves:
    """Several series over one axis; or a path in the plane, with both axes of equal measure (`square`)."""

    title: str
    x: str
    y: str
    series: Mapping[str, Points]
    log_x: bool = False
    log_y: bool = False
    joined: bool = True
    square: bool = False


@dataclass(frozen=True)
class Heat:
    """A matrix with a name for every row and column. The scale is the data's own unless it is given."""

    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    values: Sequence[Sequence[float]]
    low: float | None = None
    high: float | None = None

    @property
    def span(self) -> tuple[float, float]:
        """The smallest and the largest value of the scale; zero always lies within."""
        every = [value for row in self.values for value in row]
        low = min(0.0, *every) if self.low is None else self.low
        return low, max(0.0, *every) if self.high is None else self.high


@dataclass(frozen=True)
class Bars:
    """One length per name, none below zero."""

    title: str
    values: Mapping[str, float]


@dataclass(frozen=True)
class Table:
    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Listing:
    """Lines as they stand, every character of equal width."""

    title: str
    lines: Sequence[str]


Figure = Curves | Heat | Bars | Table | Listing


def number(value: float) -> str:
    """Whole numbers whole, others with four digits that count."""
    if isinstance(value, int) or (float(value).is_integer() and abs(value) < 1e9):
        return f"{int(value):,}"
    return f"{value:.4g}" if abs(value) >= 1e-4 else f"{value:.1e}"
