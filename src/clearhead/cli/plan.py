"""`clearhead plan`"""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer


def plan(
    files: Annotated[list[str], typer.Argument(help="Pairs, two text files, or a recipe.toml.")],
    size: Annotated[str | None, typer.Option(help="tiny, small, base, big; chosen from the data.")] = None,
    columns: Annotated[str | None, typer.Option(help='Columns, source first: "1,2" or "en,de".')] = None,
    source: Annotated[str | None, typer.Option("--from", help="Language code of the source.")] = None,
    target: Annotated[str | None, typer.Option("--to", help="Language code of the target.")] = None,
    drop_unpaired: Annotated[
        bool, typer.Option("--drop-unpaired", help="Two text files, one longer: leave its end out, counted.")
    ] = False,
    valid: Annotated[list[str] | None, typer.Option(help="Held-out pairs; twice for two text files.")] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Any setting, e.g. train.max_steps=2000.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Parameters by part, memory, disk and time of a training run, measured here in seconds, before it is begun."""
    from clearhead.cli.progress import display
    from clearhead.verbs import plan as verb
    from clearhead.verbs.recipe import table_from

    said: dict[str, Any] = {"size": size, "columns": columns, "source": source, "target": target, "valid": valid}
    said["drop_unpaired"] = drop_unpaired
    table = table_from(files, {name: value for name, value in said.items() if value})
    found = verb.plan(table, overrides or [], display(quiet=as_json).say)
    typer.echo(json.dumps(found.as_table()) if as_json else "\n".join(verb.lines(found)))
