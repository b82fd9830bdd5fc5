"""`clearhead explain`"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from clearhead.verbs.explain import Explained

SUFFIXES = (".html", ".json", ".safetensors", ".svg", ".png")


def explain(
    model: Annotated[Path, typer.Argument(help="Model folder.", metavar="RUN")],
    text: Annotated[str, typer.Argument(help="One sentence.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="A .html page, .json, .safetensors, .svg or .png.")],
    view: Annotated[
        str | None, typer.Option(help="Of .svg and .png: an attention's path, or leave-one-out.", metavar="NAME")
    ] = None,
    head: Annotated[int | None, typer.Option(help="Of .svg and .png: one head instead of their mean.", min=0)] = None,
    beam: Annotated[int | None, typer.Option(help="Hypotheses kept; 1 is greedy.", min=1)] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A decoding setting, e.g. length_penalty=0.6."),
    ] = None,
    threads: Annotated[int | None, typer.Option(help="CPU threads.", min=1, max=1024)] = None,
) -> None:
    """One sentence's journey through a model: one offline page, or its numbers, or one picture."""
    from clearhead.cli import output

    check(out, view, head)
    changes = output.decoding_changes(beam, None, False, overrides or [])
    from clearhead.verbs import translate as verb
    from clearhead.verbs.explain import explain as explained

    found = explained(verb.open_model(model, threads), text, **changes)
    writer(out, view, head)(found, out)
    typer.echo(f"{out}: {found.translation} ({out.stat().st_size:,} bytes)", err=True)


def check(out: Path, view: str | None, head: int | None) -> None:
    """Before anything slow: can this be written at all?"""
    from clearhead.errors import UsageError

    if out.suffix not in SUFFIXES:
        raise UsageError(f"a journey is written as {', '.join(SUFFIXES)}", file=out, hint="-o page.html")
    if out.suffix not in (".svg", ".png") and not (view is None and head is None):
        raise UsageError("--view and --head choose a picture", file=out, hint="-o view.svg")
    if head is not None and view in (None, "leave-one-out"):
        raise UsageError("leave-one-out has no heads", hint="--head goes with --view and an attention's path")
    folder = out.absolute().parent
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{out.parent} is a file, not a folder", file=out)
    if not folder.is_dir():
        raise UsageError("its folder does not exist", file=out, hint=f"mkdir -p {out.parent}")
    if out.is_dir():
        raise UsageError("is a folder", file=out, hint=f"-o {out / 'page.html'}")
    if out.suffix == ".png":
        from clearhead.truths.show import renderer

        renderer()


def writer(out: Path, view: str | None, head: int | None) -> Callable[[Explained, Path], None]:
    if out.suffix == ".safetensors":
        return lambda found, path: found.trace.save(path)
    if out.suffix in (".svg", ".png"):
        from clearhead.explore.picture import write_picture

        return lambda found, path: write_picture(found, path, view, head)
    from clearhead.explore.document import document
    from clearhead.explore.page import script_json, write_page

    if out.suffix == ".html":
        return lambda found, path: write_page(document(found), path)
    from clearhead.files.atomic import write_atomic

    return lambda found, path: write_atomic(path, script_json(document(found)).encode())
