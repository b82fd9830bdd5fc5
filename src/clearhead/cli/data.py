"""`clearhead data check`"""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(help="Look at data before any training.", no_args_is_help=True)


@app.callback()
def data() -> None:
    """Look at data before any training."""


@app.command()
def check(
    files: Annotated[list[str], typer.Argument(help="Pairs, two text files, or a recipe.toml.")],
    test: Annotated[list[str] | None, typer.Option(help="A test set: is any of it among the pairs?")] = None,
    columns: Annotated[str | None, typer.Option(help='Columns, source first: "1,2" or "en,de".')] = None,
    source: Annotated[str | None, typer.Option("--from", help="Language code of the source.")] = None,
    target: Annotated[str | None, typer.Option("--to", help="Language code of the target.")] = None,
    drop_unpaired: Annotated[
        bool, typer.Option("--drop-unpaired", help="Two text files, one longer: leave its end out, counted.")
    ] = False,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting of data, e.g. data.bad_utf8=skip."),
    ] = None,
    model: Annotated[str | None, typer.Option(help="Model folder: unknown rate under its vocabulary.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Report pairs, lengths, duplicates, copies, mismatches, scripts, control characters, leakage."""
    from clearhead.verbs import data as verb

    said = {"columns": columns, "source": source, "target": target, "drop_unpaired": drop_unpaired}
    data = {name: value for name, value in said.items() if value}
    report = verb.check(files, data, test or [], model, overrides or ())
    typer.echo(report.model_dump_json() if as_json else "\n".join(verb.lines(report)))
