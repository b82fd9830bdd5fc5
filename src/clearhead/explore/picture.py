"""One view of a trace as a picture: any attention, or the translation table by leave one out.

Drawn by the same hand as the figures of `clearhead show`. Knows traces and lenses. Refuses to know models.
"""

from __future__ import annotations

from pathlib import Path

from clearhead.errors import UsageError, nearest
from clearhead.files.atomic import write_atomic
from clearhead.truths.figure import Heat
from clearhead.truths.show import DOTS_PER_UNIT, renderer
from clearhead.truths.svg import sheet
from clearhead.verbs.explain import Explained

TABLE = "leave-one-out"


def write_picture(found: Explained, path: Path, view: str | None = None, head: int | None = None) -> None:
    """.svg, or .png where resvg is installed."""
    drawn = picture(found, view or TABLE, head)
    if path.suffix == ".png":
        write_atomic(path, bytes(renderer().svg_to_bytes(svg_string=drawn, zoom=DOTS_PER_UNIT)))
    else:
        write_atomic(path, drawn.encode())


def picture(found: Explained, view: str, head: int | None = None) -> str:
    """The view as SVG: TABLE, or the path of an attention, of one head or of the mean of its heads."""
    title = f"{found.text} → {found.translation}"
    if view == TABLE:
        return sheet(title, [table(found)])
    return sheet(title, [attention(found, view.removesuffix(".pattern"), head)])


def table(found: Explained) -> Heat:
    caption = "What each written word (row) loses, in log-probability, without each source piece (column)"
    return Heat(caption, found.trace.written, found.trace.source, found.left_out.values.tolist())


def attention(found: Explained, path: str, head: int | None) -> Heat:
    trace = found.trace
    if path not in trace.attentions():
        close = nearest(path, [TABLE, *trace.attentions()]) or ", ".join([TABLE, *trace.attentions()])
        raise UsageError(f"there is no view {path!r}", hint=f"did you mean {close}?")
    name = f"{path}.pattern"
    pattern = trace[name]
    if head is not None and not 0 <= head < len(pattern):
        raise UsageError(f"{path} has heads 0 to {len(pattern) - 1}, not {head}")
    grid = pattern.mean(0) if head is None else pattern[head]
    who = f"mean of {len(pattern)} heads" if head is None else f"head {head}"
    _, rows, columns = trace.labels(name)
    return Heat(f"Where {path}, {who}, read from", rows or (), columns or (), grid.tolist(), low=0.0, high=1.0)
