"""Figures as SVG: one self-contained drawing each, for the page and for PNG.

Colours are classes, so that the same drawing is dark or light as its surroundings are; a series differs from the
next by its dashes too, a cell by its number. Knows figures as data. Refuses to know truths and files.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from html import escape

from clearhead.truths.figure import Bars, Curves, Figure, Heat, Listing, Points, Table, number
from clearhead.truths.plot import Axis, characters

WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 22, 60
DASHES = ("", "8 4", "2 3", "12 3 2 3", "4 4", "16 4", "1 5", "8 2 2 2")
MOST_NUMBERS = 150
"""Cells of a matrix that still have room for their numbers."""
LETTER = 7.2
"""Width of a letter, about."""
LONGEST = 16
"""Letters of a column's name that are printed; the cells' titles have all of it."""
SERIES = ("#1f77b4", "#d95f02", "#1b9e77", "#7570b3", "#e7298a", "#8c6d00", "#666666", "#a6761d")
STYLE = "".join(
    f".s{i}{{stroke:{colour};fill:none;stroke-width:2}}.f{i}{{fill:{colour}}}" for i, colour in enumerate(SERIES)
) + (
    "text{font:12px system-ui,'DejaVu Sans',sans-serif;fill:currentColor}"
    ".mono{font-family:'DejaVu Sans Mono',monospace}"
    ".rule{stroke:currentColor;stroke-opacity:.35;fill:none}.warm{fill:#d95f02}.cold{fill:#1f77b4}.end{text-anchor:end}"
    ".middle{text-anchor:middle}"
)


def drawing(figure: Figure) -> tuple[float, str]:
    """(height, elements) of a figure that is `WIDTH` wide."""
    if isinstance(figure, Curves):
        return curves(figure)
    if isinstance(figure, Heat):
        return heat(figure)
    if isinstance(figure, Bars):
        return bars(figure)
    return text_lines(figure)


def element(figure: Figure) -> str:
    """The figure as an <svg> of its own, named for whoever cannot see it."""
    height, inside = drawing(figure)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" role="img" '
        f'aria-label="{escape(figure.title)}">{inside}</svg>'
    )


def sheet(title: str, figures: list[Figure]) -> str:
    """All figures one below the other, light, as one drawing."""
    lines = textwrap.wrap(title, int((WIDTH - 2 * RIGHT) / LETTER)) or [""]
    parts, at = [label(RIGHT, 24 + 16 * i, text) for i, text in enumerate(lines)], 28.0 + 16 * len(lines)
    for figure in figures:
        height, inside = drawing(figure)
        parts.append(f'{label(RIGHT, at + 12, figure.title)}<g transform="translate(0 {at + 22:g})">{inside}</g>')
        at += height + 40
    size = f'width="{WIDTH}" height="{at:g}" viewBox="0 0 {WIDTH} {at:g}"'
    paper = f'<rect width="{WIDTH}" height="{at:g}" fill="#ffffff"/>'
    inside = f"<style>{STYLE}</style>{paper}{''.join(parts)}"
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} color="#222222">{inside}</svg>'


def label(x: float, y: float, text: str, kind: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" xml:space="preserve">{escape(text)}</text>'


def curves(figure: Curves) -> tuple[float, str]:
    height = WIDTH - LEFT - RIGHT + TOP + BOTTOM if figure.square else HEIGHT
    height = min(height, 420)
    right = LEFT + height - TOP - BOTTOM if figure.square else WIDTH - RIGHT
    xs = Axis([x for points in figure.series.values() for x, _ in points], figure.log_x)
    ys = Axis([y for points in figure.series.values() for _, y in points], figure.log_y)
    floor = height - BOTTOM
    parts = [f'<path class="rule" d="M{LEFT} {TOP}V{floor}H{right}"/>']
    parts += [label(LEFT - 6, TOP + 8, number(ys.high), "end"), label(LEFT - 6, floor, number(ys.low), "end")]
    parts += [label(LEFT, floor + 16, number(xs.low)), label(right, floor + 16, number(xs.high), "end")]
    parts += [label((LEFT + right) / 2, floor + 16, figure.x, "middle"), label(LEFT, TOP - 6, figure.y)]
    for place, (name, points) in enumerate(figure.series.items()):
        at = [(LEFT + xs.place(x) * (right - LEFT), floor - ys.place(y) * (floor - TOP)) for x, y in points]
        parts.append(line(at, place) if figure.joined else dots(at, place))
        x, y = LEFT + (place % 3) * 185, floor + 34 + (place // 3) * 16
        key = line([(x, y - 4), (x + 26, y - 4)], place) if figure.joined else dots([(x + 13, y - 4)], place)
        parts.append(f"{key}{label(x + 32, y, name)}")
    return height + 16 * ((len(figure.series) - 1) // 3), "".join(parts)


def line(points: Points, place: int) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline class="s{place % 8}" stroke-dasharray="{DASHES[place % 8]}" points="{path}"/>'


def dots(points: Points, place: int) -> str:
    return "".join(f'<circle class="f{place % 8}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in points)


def heat(figure: Heat) -> tuple[float, str]:
    low, high = figure.span
    left = min(200, 20 + 8 * max(map(len, figure.rows), default=0))
    wide = (WIDTH - left - RIGHT) / max(1, len(figure.columns))
    tall = min(28.0, max(5.0, wide))
    numbers = len(figure.rows) * len(figure.columns) <= MOST_NUMBERS and wide >= 30
    longest = max(map(len, figure.columns), default=0)
    upright = longest * LETTER > wide
    top = 4.0 if not longest else 8 + LETTER * min(longest, LONGEST) if upright else 20
    texts = in_cells(figure.values, wide) if numbers else []
    parts = [column(left + (c + 0.5) * wide, top - 6, name, upright) for c, name in enumerate(figure.columns)]
    for r, (name, row) in enumerate(zip(figure.rows, figure.values, strict=True)):
        y = top + r * tall
        parts.append(label(left - 6, y + tall / 2 + 4, name, "end"))
        parts += (cell(figure, r, c, value, left + c * wide, y, wide, tall) for c, value in enumerate(row))
        if numbers:
            middle = [left + (c + 0.5) * wide for c in range(len(row))]
            parts += (label(x, y + tall / 2 + 4, text, "middle") for x, text in zip(middle, texts[r], strict=True))
    bottom = top + tall * len(figure.rows)
    parts.append(label(left, bottom + 18, legend(low, high)))
    return bottom + 28, "".join(parts)


def legend(low: float, high: float) -> str:
    if low >= 0:
        return f"{number(low)} (pale) to {number(high)} (strong)"
    return f"from {number(low)} to {number(high)} · pale: near zero · blue: below zero"


def column(x: float, y: float, name: str, upright: bool) -> str:
    """A column's name above it; from below upwards where the columns are narrower than their names."""
    if not upright:
        return label(x, y, name, "middle")
    short = name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
    return f'<g transform="translate({x + 4:.1f} {y + 2:.1f}) rotate(-90)">{label(0, 0, short)}</g>'


def in_cells(values: Sequence[Sequence[float]], wide: float) -> list[list[str]]:
    """All of a matrix with equally many decimals, of the largest number three digits that count or as many as its cell
    has room for; every digit is in the cell's title."""
    finite = [abs(value) for row in values for value in row if math.isfinite(value)]
    largest = max(finite, default=0.0)
    most = 0 if all(size.is_integer() for size in map(float, finite)) else max(0, 2 - math.floor(math.log10(largest)))
    for decimals in range(most, -1, -1):
        texts = [[f"{round(value, decimals) + 0.0:.{decimals}f}" for value in row] for row in values]
        if max((len(text) for row in texts for text in row), default=0) * LETTER <= wide:
            break
    return texts


def cell(figure: Heat, r: int, c: int, value: float, x: float, y: float, wide: float, tall: float) -> str:
    low, high = figure.span
    strength = abs(value) / (max(-low, high) or 1.0) * 0.85
    name = escape(f"{figure.rows[r]} · {figure.columns[c]}: {number(value)}")
    size = f'x="{x:.1f}" y="{y:.1f}" width="{wide:.2f}" height="{tall:.2f}"'
    sign = "cold" if value < 0 else "warm"
    return f'<rect {size} class="{sign}" fill-opacity="{strength:.3f}"><title>{name}</title></rect>'


def bars(figure: Bars) -> tuple[float, str]:
    left = min(260, 20 + 8 * max(map(len, figure.values), default=0))
    longest = max(figure.values.values(), default=0.0) or 1.0
    parts = []
    for place, (name, value) in enumerate(figure.values.items()):
        y, wide = 4 + 22 * place, (WIDTH - left - 80) * max(0.0, value) / longest
        parts.append(f'<rect class="f0" x="{left}" y="{y}" width="{wide:.1f}" height="16"/>')
        parts += [label(left - 6, y + 13, name, "end"), label(left + wide + 6, y + 13, number(value))]
    return 8 + 22 * len(figure.values), "".join(parts)


def text_lines(figure: Table | Listing) -> tuple[float, str]:
    """Only for PNG: on the page they are real tables and text."""
    lines = characters(figure)[1:]
    return 8 + 16 * len(lines), "".join(label(LEFT - 40, 14 + 16 * i, text, "mono") for i, text in enumerate(lines))


def rows_of(figure: Figure) -> Iterator[list[str]]:
    """The numbers behind a drawing, as the rows of a table, its head first."""
    if isinstance(figure, Curves):
        yield ["series", figure.x, figure.y]
        for name, points in figure.series.items():
            yield from ([name, number(x), number(y)] for x, y in points)
    elif isinstance(figure, Heat):
        yield ["", *figure.columns]
        yield from ([name, *map(number, row)] for name, row in zip(figure.rows, figure.values, strict=True))
    elif isinstance(figure, Bars):
        yield ["", "value"]
        yield from ([name, number(value)] for name, value in figure.values.items())
