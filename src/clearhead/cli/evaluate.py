"""`clearhead evaluate`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def evaluate(
    model: Annotated[Path, typer.Argument(help="Model folder.", metavar="RUN")],
    files: Annotated[list[str], typer.Argument(help="Test pairs, or two text files.")],
    against: Annotated[Path | None, typer.Option(help="Another model folder, for a paired test.")] = None,
    tokenize: Annotated[
        str | None, typer.Option(help='sacreBLEU tokeniser; "none" for files tokenised before.')
    ] = None,
    columns: Annotated[str | None, typer.Option(help='Columns, source first: "1,2" or "en,de".')] = None,
    source: Annotated[str | None, typer.Option("--from", help="Language code of the source.")] = None,
    target: Annotated[str | None, typer.Option("--to", help="Language code of the target.")] = None,
    drop_unpaired: Annotated[
        bool, typer.Option("--drop-unpaired", help="Two text files, one longer: leave its end out, counted.")
    ] = False,
    beam: Annotated[int | None, typer.Option(help="Hypotheses kept; 1 is greedy.", min=1)] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Of decoding or data: length_penalty=0.6, data.gate=warn."),
    ] = None,
    worst: Annotated[int, typer.Option(help="How many of the worst sentences to show.", min=0)] = 5,
    outputs: Annotated[Path | None, typer.Option(help="Write the translations here, one per line.")] = None,
    threads: Annotated[int | None, typer.Option(help="CPU threads.", min=1, max=1024)] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Score a model on held-out pairs: BLEU, chrF, TER with signature and 95 % interval, exact match, perplexity."""
    from clearhead.cli import output
    from clearhead.cli.progress import display
    from clearhead.verbs import evaluate as verb

    overrides = overrides or []
    of_data = [text for text in overrides if text.startswith("data.")]
    said = {"columns": columns, "source": source, "target": target, "drop_unpaired": drop_unpaired}
    found = verb.evaluate(
        model,
        files,
        against=against,
        tokenize=tokenize,
        data=output.data_settings(said, of_data),
        changes=output.decoding_changes(beam, None, False, [text for text in overrides if text not in of_data]),
        worst=worst,
        outputs=outputs,
        threads=threads,
        device=device,
        say=display(quiet=as_json).say,
    )
    typer.echo(found.model_dump_json() if as_json else "\n".join(verb.lines(found)))
