"""The annotated Transformer: every line of docs/tour.md runs, and says what is written below it (row Y1).

The tour goes with the source, not with an installed package.
"""

from __future__ import annotations

import doctest
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from inspect import signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from clearhead.errors import MissingExtra
from clearhead.models import build as builder
from clearhead.models.protocol import EncoderDecoder
from clearhead.truths.figure import Listing, Table
from clearhead.truths.truth import Given, Result, Truth

TOUR = Path(__file__).parents[3] / "docs" / "tour.md"
MOST_LINES = 40


@contextmanager
def put_back() -> Iterator[None]:
    """What the tour sets for the whole process, and where it stands, are as before when the block ends."""
    dtype, options, here = torch.get_default_dtype(), vars(torch._tensor_str.PRINT_OPTS).copy(), Path.cwd()
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(here)
            torch.set_default_dtype(dtype)
            torch.set_printoptions(**options)


@contextmanager
def other_seed(wanted: bool) -> Iterator[None]:
    """While the block runs, models are built from the next seed."""
    build = builder.build

    def next_seed(*given: Any, **more: Any) -> EncoderDecoder:
        asked = signature(build).bind(*given, **more)
        asked.arguments["seed"] += 1
        return build(*asked.args, **asked.kwargs)

    builder.build = next_seed if wanted else build
    try:
        yield
    finally:
        builder.build = build


def walk(text: str) -> tuple[int, int, str]:
    """(examples, those that said something else, what they said)."""
    examples = doctest.DocTestParser().get_doctest(
        text.replace("\n```", "\n\n```"), {"__name__": "tour"}, "tour", str(TOUR), 0
    )
    said = io.StringIO()
    with redirect_stdout(said):
        found = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS).run(examples)
    return found.attempted, found.failed, said.getvalue()


def experiment(given: Given) -> Result:
    if not TOUR.is_file():
        raise MissingExtra("docs/tour.md is not here", hint="the tour is in the source repository, not in the package")
    text = TOUR.read_text(encoding="utf-8")
    with put_back(), other_seed(given.control):
        attempted, failed, said = walk(text)
    chapters = [[line.lstrip("# ")] for line in text.splitlines() if line.startswith("## ")]
    return Result(
        {"examples": attempted, "that said something else": failed},
        {"there is something to run": attempted > 0, "every example says what is written below it": failed == 0},
        [Table("the tour", ["chapter"], chapters), Listing("differences", said.splitlines()[:MOST_LINES] or ["none"])],
    )


TRUTH = Truth(
    name="tour",
    row="Y1",
    claim="The annotated Transformer: one sentence's journey through the files, with real shapes and numbers.",
    refuted_by="a line of the tour that says something else than what is written below it",
    control="the tour's own model: one built from the next seed walks in its place",
    experiment=experiment,
)
