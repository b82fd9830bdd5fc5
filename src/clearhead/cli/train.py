"""`clearhead train`"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer


def list_settings(asked: bool) -> None:
    if asked:
        from clearhead.config.document import lines

        typer.echo("\n".join(lines()))
        raise typer.Exit


def train(
    files: Annotated[
        list[str], typer.Argument(help="Pairs (TSV, JSONL, TMX, PO, XLIFF), two text files, or a recipe.toml.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the run; typed again, it goes on there.")],
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
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or mps.")] = None,
    max_seconds: Annotated[float | None, typer.Option(help="Save and stop after this long.", min=1)] = None,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Write events to RUN/tensorboard too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, only errors.")] = False,
    settings: Annotated[
        bool, typer.Option("--settings", callback=list_settings, is_eager=True, help="List every setting and leave.")
    ] = False,
) -> None:
    """Train a model on your pairs. The same command continues a stopped run."""
    from clearhead.cli.progress import display
    from clearhead.cli.signals import stopping
    from clearhead.train.loop import Stop
    from clearhead.verbs.board import Board
    from clearhead.verbs.recipe import table_from
    from clearhead.verbs.train import train as run

    said: dict[str, Any] = {"size": size, "columns": columns, "source": source, "target": target, "valid": valid}
    said["drop_unpaired"] = drop_unpaired
    table = table_from(files, {name: value for name, value in said.items() if value})
    overrides = [*(overrides or []), *([f"train.device={device}"] if device else [])]
    stop, shown = Stop(), display(quiet)
    try:
        with stopping(stop, max_seconds):
            finished = run(table, out, Board(out, shown) if tensorboard else shown, overrides=overrides, stop=stop)
    finally:
        shown.stop()
    if as_json:
        best = finished.best.model_dump(exclude={"sample"}) if finished.best else None
        result = {"folder": str(out), "steps": finished.steps, "parameters": finished.parameters, "best": best}
        typer.echo(json.dumps(result | {"already_finished": finished.already}))
    elif finished.already:
        typer.echo(f"{out}: this run is finished ({finished.steps:,} steps); a larger train.max_steps continues it")
    elif not quiet:
        folder = shlex.quote(str(out))
        typer.echo(f'{out}: done. Try:\n  clearhead translate {folder} "…"\n  clearhead evaluate {folder} test.tsv')
