"""`clearhead translate`"""

from __future__ import annotations

import sys
from io import BufferedIOBase
from pathlib import Path
from typing import Annotated, cast

import typer


def translate(
    model: Annotated[Path, typer.Argument(help="Model folder.", metavar="RUN")],
    text: Annotated[
        list[str] | None, typer.Argument(help="Texts, or one document (.txt .po .tmx .xlf); stdin when none.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Where a translated document goes.")] = None,
    source: Annotated[
        str | None, typer.Option("--from", help="Of a document: language code of what is translated.")
    ] = None,
    target: Annotated[str | None, typer.Option("--to", help="Of a document: language code of the translation.")] = None,
    beam: Annotated[int | None, typer.Option(help="Hypotheses kept; 1 is greedy.", min=1)] = None,
    n_best: Annotated[int | None, typer.Option(help="Outputs per text.", min=1)] = None,
    sample: Annotated[bool, typer.Option("--sample", help="Draw instead of searching.")] = False,
    prefix: Annotated[str | None, typer.Option(help="What every output begins with, in whole words.")] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A decoding setting, e.g. length_penalty=0.6."),
    ] = None,
    threads: Annotated[int | None, typer.Option(help="CPU threads.", min=1, max=1024)] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per text, with scores.")] = False,
) -> None:
    """Translate: arguments, a document, or stdin → stdout, one line out per line in."""
    from clearhead.cli import output
    from clearhead.cli.progress import display
    from clearhead.verbs import translate as verb

    if out is None:
        verb.refuse_documents(text or [], display().say)
    changes = output.decoding_changes(beam, n_best, sample, overrides or [])
    if prefix is not None:
        changes["prefix"] = prefix
    opened = verb.open_model(model, threads, device, display().say)
    several = opened.settings(**changes).n_best > 1  # a wrong setting is told before a line is read
    if out is not None:
        document, say = output.one_document(text), display().say
        report = verb.translate_file(opened, document, out, say, source=source, target=target, **changes)
        typer.echo(report, err=True)
        return
    if text:
        output.write_translations(verb.translations(opened, text, **changes), as_json, several)
        return
    read = 0
    for batch in verb.line_batches(cast(BufferedIOBase, sys.stdin.buffer)):
        output.write_translations(verb.translations(opened, batch, read, **changes), as_json, several, read)
        read += len(batch)
