"""`clearhead export`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def export(
    model: Annotated[Path, typer.Argument(help="Model folder.", metavar="RUN")],
    to: Annotated[str, typer.Option("--to", help="ctranslate2 or hf (the Marian layout of Hugging Face).")],
    out: Annotated[Path, typer.Option("--out", "-o", help="New folder, for the other program.")],
) -> None:
    """The model in another program's layout; what that program cannot express is refused by name."""
    from clearhead.verbs import export as verb

    typer.echo("\n".join(verb.export(model, to, out)), err=True)
