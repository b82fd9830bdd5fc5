"""`clearhead pack`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def pack(
    model: Annotated[Path, typer.Argument(help="Model folder.", metavar="RUN")],
    out: Annotated[Path, typer.Option("--out", "-o", help="New folder, to hand on.")],
    half: Annotated[bool, typer.Option("--half", help="Store the weights in bfloat16: half the bytes.")] = False,
) -> None:
    """A model to hand on: no logs, no optimiser, no training text, no paths."""
    from clearhead.verbs import pack as verb

    typer.echo("\n".join(verb.pack(model, out, half=half)), err=True)
