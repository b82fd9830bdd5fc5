"""The command line: one verb per file, errors as one message and an exit code.

    0 done · 1 our bug · 2 usage or bad input · 3 something optional is missing · 4 disk · 5 numbers went wrong
    130, 143 stopped by a signal

Nothing heavy is imported here: `clearhead --help` answers at once.
"""

from __future__ import annotations

import importlib
import os
import sys
from contextlib import suppress
from io import TextIOWrapper, UnsupportedOperation
from itertools import pairwise
from typing import Any

import typer

from clearhead import __version__
from clearhead.cli import bench, data, demo, doctor, evaluate, explain, export, pack, plan, show, train, translate
from clearhead.errors import ClearheadError, Interrupted

app = typer.Typer(
    name="clearhead",
    help="A Transformer you can train, run and see through.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"clearhead {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(False, "--version", callback=show_version, is_eager=True, help="Say the version."),
) -> None:
    pass


app.command()(demo.demo)
app.command()(train.train)
app.command()(translate.translate)
app.command()(evaluate.evaluate)
app.command()(explain.explain)
app.command()(show.show)
app.add_typer(data.app, name="data")
app.command()(plan.plan)
app.command()(pack.pack)
app.command()(export.export)
app.command()(bench.bench)
app.command()(doctor.doctor)


def main() -> None:
    """Run, and turn what went wrong into a message and an exit code."""
    speak_utf8()
    try:
        code = app(standalone_mode=False)
        if code == 130:  # Ctrl-C, of which typer says nothing
            raise KeyboardInterrupt
        sys.exit(code)
    except ClearheadError as error:
        typer.echo(str(error) if isinstance(error, Interrupted) else f"error: {error}", err=True)
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        typer.echo("stopped", err=True)
        sys.exit(130)
    except BrokenPipeError:
        leave_quietly()
    except OSError as error:
        typer.echo(f"error: {error.filename or 'output'}: {error.strerror or error}", err=True)
        leave_quietly(4)
    except Exception as error:
        show_other(error)


def speak_utf8() -> None:
    """Whatever the locale: text is UTF-8, and what is no text at all (a file's name, perhaps) is escaped."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def show_other(error: Exception) -> None:
    """A wrong option or argument explains itself (`show`); anything else is our bug and keeps its traceback."""
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        typer.echo("error: out of memory\n  → a smaller train.batch_tokens, decode.batch_tokens or size", err=True)
        sys.exit(2)
    show = getattr(error, "show", None)
    if show is None:
        raise error
    show()
    if (value := value_given(getattr(error, "param", None))) is not None and value not in str(error):
        typer.echo(f"  you gave {value!r}", err=True)
    sys.exit(2)


def value_given(parameter: Any) -> str | None:
    """What stands behind this option on the command line."""
    words = [part for word in sys.argv for part in word.split("=", 1)]
    behind = dict(pairwise(words))
    return next((behind[option] for option in getattr(parameter, "opts", ()) if option in behind), None)


def leave_quietly(code: int = 0) -> None:
    """Whoever read our output has left, or it cannot be written: what is still to be said there goes nowhere."""
    with suppress(UnsupportedOperation):  # a stream that is no file has nothing left to say
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def verbs(name: str):  # type: ignore[no-untyped-def]  # a module, whose functions keep their own types
    """`clearhead.verbs.NAME`, imported when a verb needs it: torch takes a second."""
    return importlib.import_module(f"clearhead.verbs.{name}")


if __name__ == "__main__":
    main()
