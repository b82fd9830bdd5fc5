"""Every verb, option and argument of the command line explains itself, and every verb stands in docs/cli.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer.main
from typer.testing import CliRunner

from clearhead.cli.main import app

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")


def commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """(words to type, command) of every command that does something."""
    if not hasattr(command, "commands"):
        yield words, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*words, name))


VERBS = dict(commands(typer.main.get_command(app)))


def silent(command: Any) -> list[str]:
    """Options and arguments without a word of help."""
    return [parameter.name for parameter in command.params if not (parameter.help or "").strip()]


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_a_verb_and_all_its_options_explain_themselves(words: tuple[str, ...]) -> None:
    command = VERBS[words]
    assert command.help and command.help.split("\n")[0].endswith((".", ";", ":"))
    assert silent(command) == []


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_help_shows_them_all(words: tuple[str, ...]) -> None:
    told = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "200"})
    assert told.exit_code == 0
    options = [option for parameter in VERBS[words].params for option in parameter.opts if option.startswith("--")]
    assert [option for option in options if option not in told.stdout] == []


def test_the_page_lists_every_verb_and_no_other() -> None:
    table = PAGE.partition("| verb |")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"^\| `([a-z ]+)` \|", table, re.MULTILINE)) == sorted(map(" ".join, VERBS))


def test_the_program_itself_explains_itself() -> None:
    root = typer.main.get_command(app)
    assert root.help and silent(root) == []


def test_silence_is_noticed() -> None:
    def shout(name: str, loud: Annotated[bool, typer.Option(help="Said.")] = False) -> None: ...

    mute = typer.Typer()
    mute.command()(shout)
    assert silent(typer.main.get_command(mute)) == ["name"]
