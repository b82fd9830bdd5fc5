"""One truth as one HTML page: offline, without scripts, dark or light as the reader's machine is.

Every drawing has its numbers beneath it as a table. Knows a truth and its result. Refuses to know how it came about.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from clearhead.truths.figure import Figure, Listing, Table, number
from clearhead.truths.svg import STYLE, element, rows_of
from clearhead.truths.truth import Given, Result, Truth

MOST_ROWS = 400
"""Longer tables of numbers are cut, and say so."""
PAGE_STYLE = """
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}
h1{font-size:1.3rem}h2{font-size:1.05rem;margin-top:2rem}svg{width:100%;min-width:32rem;height:auto}figure{margin:0}
ul{list-style:none;padding:0}
.claim{font-size:1.25rem;font-style:italic}.verdict{font-weight:bold}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}td,th{padding:.15rem .7rem;text-align:right}
td:first-child,th:first-child{text-align:left}th{border-bottom:1px solid}.wide{overflow-x:auto}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#16181c}}
"""


def page(truth: Truth, given: Given, result: Result) -> str:
    parts = [
        f"<h1>{escape(truth.name)} · {escape(truth.row)}</h1>",
        f'<p class="claim">{escape(truth.claim)}</p>',
        f'<p class="verdict">{escape(verdict(truth, given, result))}</p>',
        listed([f"{'✓' if holds else '✗'} {sentence}" for sentence, holds in result.checks.items()]),
        *map(figure_part, result.figures),
        *(f"<p>{escape(note)}</p>" for note in result.notes),
        "<h2>Measured</h2>",
        wide("Measured", rows_table([["what", "number"], *([n, number(x)] for n, x in result.measured.items())])),
        f"<p>What would refute it: {escape(truth.refuted_by)}</p>",
        f"<p>The control takes away: {escape(truth.control)} · seed {given.seed}</p>",
    ]
    policy = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">{policy}'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><title>{escape(truth.name)}</title>'
        f"<style>{PAGE_STYLE}{STYLE}</style></head>\n<body><main>\n" + "\n".join(parts) + "\n</main></body></html>\n"
    )


def verdict(truth: Truth, given: Given, result: Result) -> str:
    """One line: does it hold, and under which conditions."""
    said = {True: "It holds.", False: "It does not hold.", None: f"Nobody can tell: {result.lacking}"}[result.holds]
    return f"{said} (Control: without {truth.control}.)" if given.control else said


def figure_part(figure: Figure) -> str:
    head = f"<h2>{escape(figure.title)}</h2>"
    if isinstance(figure, Table):
        return head + wide(figure.title, rows_table([list(figure.head), *map(list, figure.rows)]))
    if isinstance(figure, Listing):
        return head + wide(figure.title, f"<pre>{escape(chr(10).join(figure.lines))}</pre>")
    rows = list(rows_of(figure))
    cut = [f"<p>The first {MOST_ROWS} of {len(rows) - 1} rows.</p>"] * (len(rows) > MOST_ROWS + 1)
    twin = wide(f"{figure.title}: the numbers", "".join([rows_table(rows[: MOST_ROWS + 1]), *cut]))
    drawn = f"<figure>{wide(figure.title, element(figure))}</figure>"
    return f"{head}{drawn}<details><summary>The numbers</summary>{twin}</details>"


def wide(what: str, inside: str) -> str:
    """What may be wider than a telephone moves by itself, by finger and by keyboard."""
    return f'<div class="wide" role="region" tabindex="0" aria-label="{escape(what)}">{inside}</div>'


def rows_table(rows: Sequence[Sequence[str]]) -> str:
    head, *others = rows
    named = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    lines = "".join(f"<tr>{''.join(f'<td>{escape(value)}</td>' for value in row)}</tr>" for row in others)
    return f"<table><thead><tr>{named}</tr></thead><tbody>{lines}</tbody></table>"


def listed(sentences: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(sentence)}</li>' for sentence in sentences)}</ul>"
