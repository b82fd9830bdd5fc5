"""How traces and findings show themselves: a few lines in a terminal, plain tables in a notebook.

A table has the last two axes; an axis before them is averaged, and the caption says so. The largest number of a row is
bold. Knows arrays, tokens and words. Refuses to know networks and colours; whatever a token holds, it is only text.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from clearhead.glass.layout import Array

if TYPE_CHECKING:
    from clearhead.glass.findings import Finding
    from clearhead.glass.trace import Trace

MOST = 40
"""Rows and columns of a table."""
Names = Sequence[str] | None


def about(found: Finding) -> list[str]:
    """Method, size, control, cost and caveat of a finding, and the edits that were on."""
    size = " × ".join(f"{axis} {n}" for axis, n in zip(found.axes, found.values.shape, strict=True))
    cost = f"{found.cost.seconds:.3g} s, {found.cost.passes:,} rows through the network, {found.cost.backward:,} back"
    edits = [f"edits: {edit}" for edit in found.edits]
    control = f"control: {found.control.what}: {found.control.value:.4g}"
    return [f"{found.method} ({size})", control, f"cost: {cost}", found.caveat, *edits]


def finding(found: Finding) -> str:
    """As HTML."""
    said = "".join(f"<li>{escape(line)}</li>" for line in about(found)[1:])
    return f"{grid(found.method, found.values, found.axes, found.labels)}<ul>{said}</ul>"


def trace(found: Trace) -> str:
    """As HTML: what was read and written, where each place read from, and the names of all records."""
    across = [found[name] for name in found.names("pattern") if found.across(name)]
    caption = "where each place of the output read from, all layers and heads together: not why"
    read = np.mean([pattern.mean(0) for pattern in across], 0) if across else np.zeros((0, 0))
    table = grid(caption, read, ("query", "key"), (found.written, found.source)) if across else ""
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td>{escape(', '.join(found.axes(name)))}</td>"
        f"<td>{' × '.join(map(str, found.record(name).values.shape))}</td></tr>"
        for name in found
    )
    edits = "".join(f"<p>edits: {escape(edit)}</p>" for edit in found.provenance.edits)
    said = f"<p>{word(' '.join(found.source))} → {word(' '.join(found.written))}</p>"
    likelier = "".join(f"<li>{word(str(place))}</li>" for place in found.likelier())
    said += f"<p>not the likeliest word of its place:</p><ul>{likelier}</ul>" if likelier else ""
    records = f"<details><summary>{len(found)} records</summary><table>{rows}</table></details>"
    return f"{said}{edits}{table}{records}"


def grid(caption: str, values: Array, axes: Sequence[str], labels: Sequence[Names]) -> str:
    """A table of numbers, rows and columns with their tokens or places."""
    while values.ndim > 2:
        caption, values, axes, labels = f"{caption}; mean over {axes[0]}", values.mean(0), axes[1:], labels[1:]
    if values.ndim == 1:
        values, axes, labels = values[None], ("", *axes), ([""], *labels)
    rows, columns = (names(label, size) for label, size in zip(labels, values.shape, strict=True))
    if max(values.shape) > MOST:
        caption += f"; the first {MOST} of {values.shape[0]} × {values.shape[1]}"
    head = "".join(f"<th>{word(name)}</th>" for name in columns[:MOST])
    body = "".join(
        f"<tr><th>{word(name)}</th>{cells(row[:MOST])}</tr>"
        for name, row in zip(rows[:MOST], values[:MOST], strict=True)
    )
    corner = escape(" \\ ".join(filter(None, axes)))
    return f"<table><caption>{escape(caption)}</caption><tr><th>{corner}</th>{head}</tr>{body}</table>"


def names(label: Names, size: int) -> list[str]:
    return list(label) if label is not None else [str(place) for place in range(size)]


def cells(row: Array) -> str:
    largest = row.max(where=np.isfinite(row), initial=-np.inf)
    return "".join(f"<td>{cell(float(value), value == largest)}</td>" for value in row)


def cell(value: float, largest: bool) -> str:
    """Nothing where there is no number."""
    if np.isnan(value):
        return ""
    return f"<b>{value:.3g}</b>" if largest else f"{value:.3g}"


def word(text: str) -> str:
    """A token, on its own in whichever direction it is written."""
    return f"<bdi>{escape(text)}</bdi>"
