"""Figures in characters: small enough for a terminal, honest enough to be read off.

Knows figures as data. Refuses to know truths, colours and files.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from clearhead.truths.figure import Bars, Curves, Figure, Heat, Listing, Points, Table, number

WIDTH, HEIGHT = 60, 12
MARKS = "●○▲△■□◆◇"
SHADES = " ░▒▓█"
SIGNED = "▼▽·△▲"


def characters(figure: Figure) -> list[str]:
    """The figure as lines, its title first."""
    drawn = {Curves: curves, Heat: heat, Bars: bars, Table: table, Listing: listing}[type(figure)]
    return [figure.title, *(f"  {line}".rstrip() for line in drawn(figure))]  # type: ignore[operator]


def curves(figure: Curves) -> Iterator[str]:
    xs = Axis([x for points in figure.series.values() for x, _ in points], figure.log_x)
    ys = Axis([y for points in figure.series.values() for _, y in points], figure.log_y)
    grid = [[" "] * WIDTH for _ in range(HEIGHT)]
    for mark, points in reversed(list(zip(MARKS, figure.series.values(), strict=False))):
        for column, row in cells(points, xs, ys, figure.joined):
            grid[HEIGHT - 1 - row][column] = mark
    labels = {0: number(ys.high), HEIGHT - 1: number(ys.low)}
    margin = max(map(len, labels.values()))
    for row, line in enumerate(grid):
        yield f"{labels.get(row, ''):>{margin}} │{''.join(line)}"
    yield f"{'':>{margin}} └{'─' * WIDTH}"
    low, high = number(xs.low), number(xs.high)
    yield f"{'':>{margin}}  {low}{figure.x:^{WIDTH - len(low) - len(high)}}{high}"
    legend = "   ".join(f"{mark} {name}" for mark, name in zip(MARKS, figure.series, strict=False))
    yield f"{'':>{margin}}  {figure.y}:  {legend}" if legend else figure.y


class Axis:
    """From values to places 0 … 1, straight or logarithmic."""

    def __init__(self, values: Sequence[float], log: bool) -> None:
        self.log = log
        usable = [value for value in values if not log or value > 0]
        self.low, self.high = min(usable), max(usable)

    def place(self, value: float) -> float:
        low, high = self._measure(self.low), self._measure(self.high)
        return (self._measure(value) - low) / (high - low) if high > low else 0.5

    def _measure(self, value: float) -> float:
        return math.log(max(value, self.low)) if self.log else value


def cells(points: Points, xs: Axis, ys: Axis, joined: bool) -> Iterator[tuple[int, int]]:
    """The (column, row) of every point, and of what lies between two points when they are joined."""
    at = [(xs.place(x) * (WIDTH - 1), ys.place(y) * (HEIGHT - 1)) for x, y in points]
    for place, (x, y) in enumerate(at):
        yield round(x), round(y)
        if joined and place + 1 < len(at):
            next_x, next_y = at[place + 1]
            steps = max(1, math.ceil(max(abs(next_x - x), 2 * abs(next_y - y))))
            for step in range(1, steps):
                yield round(x + (next_x - x) * step / steps), round(y + (next_y - y) * step / steps)


def heat(figure: Heat) -> Iterator[str]:
    low, high = figure.span
    margin = max(map(len, figure.rows), default=0)
    wide = 2 if len(figure.columns) <= WIDTH // 2 else 1
    if wide == 2 and any(figure.columns):
        yield f"{'':>{margin}} │" + "".join(f"{initial(name):<2}" for name in figure.columns)
    for name, row in zip(figure.rows, figure.values, strict=True):
        yield f"{name:>{margin}} │" + "".join(shade(value, low, high) * wide for value in row)
    meaning = SIGNED if low < 0 else SHADES
    yield f"{'':>{margin}}  {number(low)} {meaning!r} {number(high)}"


def initial(name: str) -> str:
    """The letter over a column; the mark of a space in front of a token tells nothing apart."""
    return name.lstrip("▁")[:1] or name[:1]


def shade(value: float, low: float, high: float) -> str:
    """One of five characters; with values of both signs, the middle one is zero."""
    if low < 0:
        largest = max(-low, high)
        return SIGNED[2 + round(2 * max(-1.0, min(1.0, value / largest)))]
    part = (value - low) / (high - low) if high > low else 0.0
    return SHADES[round(4 * max(0.0, min(1.0, part)))]


def bars(figure: Bars) -> Iterator[str]:
    margin = max(map(len, figure.values), default=0)
    longest = max(figure.values.values(), default=0.0) or 1.0
    for name, value in figure.values.items():
        eighths = round(8 * (WIDTH - 20) * max(0.0, value) / longest)
        yield f"{name:>{margin}} │{'█' * (eighths // 8)}{' ▏▎▍▌▋▊▉'[eighths % 8].strip()} {number(value)}"


def table(figure: Table) -> Iterator[str]:
    rows = [figure.head, *figure.rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(figure.head))]
    sides = [">" if all(map(numeric, column)) else "<" for column in zip(*figure.rows, strict=True)]
    for place, row in enumerate(rows):
        yield "  ".join(f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True))
        if place == 0:
            yield "─" * (sum(widths) + 2 * len(widths) - 2)


def numeric(cell: str) -> bool:
    """Does this cell line up with numbers?"""
    return not cell or cell[0] in "-+0123456789"


def listing(figure: Listing) -> Iterator[str]:
    yield from figure.lines
