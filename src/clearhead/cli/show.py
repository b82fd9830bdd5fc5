"""`clearhead show`"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer


def show(
    name: Annotated[
        str | None, typer.Argument(help="Which truth; all are listed without it.", metavar="[NAME]")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Prove every one.")] = False,
    control: Annotated[bool, typer.Option("--control", help="Take the ingredient away: it must not hold.")] = False,
    seed: Annotated[int, typer.Option(help="Every random choice follows from it.", min=0)] = 1,
    model: Annotated[Path | None, typer.Option(help="Your own trained model instead of the package's.")] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder for NAME.html; without it this one, or no files with --all."),
    ] = None,
    png: Annotated[bool, typer.Option("--png", help="Write NAME.png too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="JSON; files are then written only with -o.")] = False,
) -> None:
    """Prove a small truth of the notes on the spot; list them without a name.

    Exits with 1 when it does not hold, with 3 when something it needs is missing.
    """
    from clearhead.truths import show as verb
    from clearhead.truths.truth import Given

    if name is None and not every:
        say([verb.as_entry(truth) for truth in verb.TRUTHS] if as_json else "\n".join(verb.listing()))
        return
    given = Given(seed, control, model)
    folder = out if as_json or every else out or Path()
    truths = verb.chosen(name, every)
    verb.prepare(folder, png)
    found = []
    for truth in truths:
        result = truth.prove(given)
        found.append((truth, result))
        if folder is not None:
            verb.write(truth, given, result, folder, png)
        if not as_json:
            say(verb.summary(truth, result) if every else "\n".join(verb.lines(truth, given, result)))
        if result.lacking and not every:
            typer.echo(result.lacking, err=True)
    if as_json:
        tables = [verb.as_table(truth, result) for truth, result in found]
        say(tables if every else tables[0])
    raise typer.Exit(verb.exit_code([result for _, result in found]))


def say(what: Any) -> None:
    typer.echo(what if isinstance(what, str) else json.dumps(what, ensure_ascii=False, allow_nan=False))
