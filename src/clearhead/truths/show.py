"""The verb `show`: the list of truths, one of them proved, its page and its picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from clearhead.errors import MissingExtra, UsageError, nearest
from clearhead.files import write_atomic
from clearhead.files.disk import make_folder
from clearhead.truths.figure import number
from clearhead.truths.page import page, verdict
from clearhead.truths.plot import characters
from clearhead.truths.registry import TRUTHS
from clearhead.truths.svg import sheet
from clearhead.truths.truth import Given, Result, Truth

DOTS_PER_UNIT = 2.0


def chosen(name: str | None, every: bool) -> Sequence[Truth]:
    """The truth of this name, or all of them."""
    if every:
        if name is not None:
            raise UsageError(f"--all and {name!r} together", hint="leave one of them out")
        return TRUTHS
    for truth in TRUTHS:
        if truth.name == name:
            return [truth]
    close = nearest(name or "", [truth.name for truth in TRUTHS])
    hint = f"did you mean {close!r}?" if close else "`clearhead show` lists them"
    raise UsageError(f"there is no truth called {name!r}", hint=hint)


def listing() -> list[str]:
    margin = max(len(truth.name) for truth in TRUTHS)
    return [f"{truth.name:<{margin}}  {truth.row}  {truth.claim}" for truth in TRUTHS]


def as_entry(truth: Truth) -> dict[str, str]:
    return {"name": truth.name, "row": truth.row, "claim": truth.claim}


def as_table(truth: Truth, result: Result) -> dict[str, Any]:
    return {"name": truth.name, "claim": truth.claim, "measured": dict(result.measured), "holds": result.holds}


def lines(truth: Truth, given: Given, result: Result) -> list[str]:
    """One proof for the terminal."""
    shown = [f"{truth.name} ({truth.row})", truth.claim, ""]
    for figure in result.figures:
        shown += [*characters(figure), ""]
    shown += [*result.notes, *[""] * bool(result.notes)]
    margin = max(map(len, result.measured), default=0)
    shown += [f"  {name:<{margin}}  {number(value)}" for name, value in result.measured.items()]
    shown += ["", *(f"  {'✓' if holds else '✗'} {sentence}" for sentence, holds in result.checks.items())]
    return [*shown, "", verdict(truth, given, result), f"What would refute it: {truth.refuted_by}."]


def summary(truth: Truth, result: Result) -> str:
    """One proof in one line: its claim, or what was missing, or the first sentence that failed."""
    mark = {True: "✓", False: "✗", None: "?"}[result.holds]
    failed = [sentence for sentence, holds in result.checks.items() if not holds]
    said = result.lacking.splitlines() or failed or [truth.claim]
    return f"{mark} {truth.name} ({truth.row})  {said[0]}"


def exit_code(results: Iterable[Result]) -> int:
    """0 all hold · 1 one does not · 3 something one needs is missing."""
    found = {result.holds for result in results}
    return 1 if False in found else 3 if None in found else 0


def prepare(folder: Path | None, png: bool) -> None:
    """Whatever would keep the files from being written is said before the experiment, not after."""
    if png:
        if folder is None:
            raise UsageError("--png writes a file", hint="say where with -o FOLDER")
        renderer()
    if folder is not None:
        make_folder(folder)


def write(truth: Truth, given: Given, result: Result, folder: Path, png: bool) -> None:
    """NAME.html, and NAME.png when asked for; nothing when there is nothing to show.

    A control has files of its own, and its picture says what it is: the two are shown side by side.
    """
    if result.lacking:
        return
    name = f"{truth.name}-control" if given.control else truth.name
    write_atomic(folder / f"{name}.html", page(truth, given, result).encode())
    if png:
        title = f"{truth.claim} {verdict(truth, given, result)}"
        drawn = renderer().svg_to_bytes(svg_string=sheet(title, list(result.figures)), zoom=DOTS_PER_UNIT)
        write_atomic(folder / f"{name}.png", bytes(drawn))


def renderer() -> Any:
    """resvg, which draws SVG without a browser."""
    try:
        return import_module("resvg_py")
    except ImportError:
        hint = "pip install 'clearhead[png]', or open the HTML page"
        raise MissingExtra("a PNG needs the package resvg-py", hint=hint) from None
