"""`clearhead bench`"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def bench(
    model: Annotated[
        Path | None, typer.Argument(help="A model folder; the tiny size when none.", metavar="[RUN]")
    ] = None,
    threads: Annotated[int | None, typer.Option(help="CPU threads.", min=1, max=1024)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """How fast a model learns and writes here, beside what this machine can do at most. Under a minute."""
    from clearhead.cli.progress import display
    from clearhead.verbs import bench as verb

    found = verb.bench(model, threads, display(quiet=as_json).say)
    typer.echo(json.dumps(found.as_table()) if as_json else "\n".join(verb.lines(found)))
