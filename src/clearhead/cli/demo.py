"""`clearhead demo`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    source: Annotated[str, typer.Option("--from", help="Locale to translate from.")] = "en",
    target: Annotated[str, typer.Option("--to", help="Locale to translate into.")] = "de",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder of the model; clearhead-demo, or clearhead-demo-quick.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A few steps only: does everything run?")] = False,
) -> None:
    """Train a small translator on the built-in phrasebook, in about two minutes, and show what it learned."""
    from clearhead.cli.progress import display
    from clearhead.cli.signals import stopping
    from clearhead.train.loop import Stop
    from clearhead.verbs import demo as verb

    folder = out or Path("clearhead-demo-quick" if quick else "clearhead-demo")  # two runs of different lengths
    stop, shown = Stop(), display()
    try:
        with stopping(stop):
            shown_at_end = verb.demo(source, target, folder, shown, stop, quick)
    finally:
        shown.stop()
    typer.echo("\n".join(shown_at_end))
