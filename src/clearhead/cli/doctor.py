"""`clearhead doctor`"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def doctor(
    model: Annotated[Path | None, typer.Argument(help="A model folder to examine too.", metavar="[RUN]")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """What is installed, what is wrong, what to type. Exits with 3 when something is missing, 2 when a model is ill."""
    from clearhead.verbs import doctor as verb

    findings = verb.examine(model)
    if as_json:
        typer.echo(json.dumps([finding.as_table() for finding in findings]))
    else:
        typer.echo("\n".join(map(str, findings)))
    raise typer.Exit(verb.exit_code(findings))
