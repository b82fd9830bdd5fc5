"""The order of the rooms, read from the imports: a room knows only rooms above it.

Every `import` in src/clearhead counts, also those inside functions. And only the command line speaks to the person
or ends the process: everywhere else there are return values and errors.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import clearhead

ROOT = Path(clearhead.__file__).parent
HOMES = {name: f"clearhead.errors.{name}" for name in clearhead.__all__} | clearhead._HOMES
# fmt: off
ROOMS = [
    "errors", "config", "randomness", "files", "text", "data", "nn", "models", "native", "train", "decode", "evaluate",
    "glass", "interchange", "verbs", "truths", "serve", "explore", "cli",
]
# fmt: on
STRANGERS = (("train", "decode"), ("text", "nn"), ("text", "models"), ("explore", "nn"), ("explore", "models"))
"""Pairs that never meet: training and writing are joined in verbs, ids are the only currency, the page reads traces."""
JOINERS = ("verbs", "truths")
"""Only these may know training, decoding and evaluation at once: the verbs, and the experiments of `show`."""


def files() -> list[Path]:
    return sorted(path for path in ROOT.rglob("*.py"))


def room_of(path: Path) -> str:
    """The top folder or file; the package's own __init__ is the face above all rooms."""
    first = path.relative_to(ROOT).parts[0]
    return "" if first == "__init__.py" else first.removesuffix(".py")


def imported_rooms(path: Path) -> Iterator[tuple[int, str]]:
    """(line, room) for every import of a part of clearhead, absolute or relative."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = from_names(node, path)
        for name in names:
            parts = name.split(".")
            if parts[0] == "clearhead" and len(parts) > 1 and parts[1] != "__version__":
                yield node.lineno, parts[1]


def from_names(node: ast.ImportFrom, path: Path) -> list[str]:
    """What `from base import a, b` may reach: base.a and base.b; promised names count where they live."""
    base = node.module or ""
    if node.level:
        above = ["clearhead", *path.relative_to(ROOT).parts[:-1]]
        base = ".".join([*above[: len(above) - node.level + 1], *([base] if base else [])])
    if base == "clearhead":
        return [HOMES.get(alias.name, f"clearhead.{alias.name}") for alias in node.names]
    return [f"{base}.{alias.name}" for alias in node.names]


def broken_rule(room: str, other: str) -> str | None:
    if other not in ROOMS:
        return f'"{other}" is no room'
    if room == other or room == "":
        return None
    if ROOMS.index(other) > ROOMS.index(room):
        return f"{other} stands below {room}"
    if (room, other) in STRANGERS or (other, room) in STRANGERS:
        return f"{room} and {other} do not know each other"
    return None


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_room_imports_only_rooms_above_it(path: Path) -> None:
    room = room_of(path)
    assert room == "" or room in ROOMS, f"{room} is not in the list of rooms: {', '.join(ROOMS)}"
    for line, other in imported_rooms(path):
        rule = broken_rule(room, other)
        assert rule is None, f"{path.relative_to(ROOT.parent)}:{line} imports clearhead.{other}: {rule}"


def test_few_rooms_join_training_decoding_and_evaluation() -> None:
    known: dict[str, set[str]] = {}
    for path in files():
        known.setdefault(room_of(path), set()).update(other for _, other in imported_rooms(path))
    for room, others in known.items():
        met = {"train", "decode", "evaluate"} & (others | {room})
        assert len(met) < 2 or room in ("", *JOINERS), f"{room} joins {' and '.join(sorted(met))}"


SPEAKS = {
    ("print",),
    ("exit",),
    ("quit",),
    ("input",),
    ("sys", "exit"),
    ("os", "_exit"),
    ("sys", "stdout"),
    ("sys", "stderr"),
}


def library(path: Path) -> Iterator[ast.AST]:
    """Everything in a file but what runs only when the file itself is the command."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if not (isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'"):
            yield from ast.walk(node)


def spoken(path: Path) -> Iterator[tuple[int, str]]:
    """(line, word) wherever a file prints, ends the process, or reaches for the terminal."""
    for node in library(path):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and (node.func.id,) in SPEAKS:
            yield node.lineno, node.func.id
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and (node.value.id, node.attr) in SPEAKS
        ):
            yield node.lineno, f"{node.value.id}.{node.attr}"
        if isinstance(node, ast.Name) and node.id == "SystemExit":
            yield node.lineno, "SystemExit"


@pytest.mark.parametrize(
    "path", [path for path in files() if room_of(path) != "cli"], ids=lambda path: str(path.relative_to(ROOT))
)
def test_only_the_command_line_prints_and_exits(path: Path) -> None:
    found = [f"{path.relative_to(ROOT.parent)}:{line} {word}" for line, word in spoken(path)]
    assert not found, f"library code returns or raises, it does not speak or exit: {'; '.join(found)}"


def test_the_rules_bite(tmp_path: Path) -> None:
    """Each rule on a made-up import; and the readers see imports inside functions, relative ones, and words."""
    assert broken_rule("nn", "models") == "models stands below nn"
    assert broken_rule("decode", "train") == "decode and train do not know each other"
    assert broken_rule("nn", "text") == "nn and text do not know each other"
    assert broken_rule("cli", "utils") == '"utils" is no room'
    assert broken_rule("verbs", "train") is broken_rule("models", "nn") is broken_rule("", "cli") is None
    assert broken_rule("explore", "models") == "explore and models do not know each other"
    file = tmp_path / "x.py"
    inside = ["def f():", "    from clearhead.cli import main", "    import clearhead.serve.app", "    print(1)"]
    file.write_text("\n".join([*inside, "if __name__ == '__main__':", "    print(2)", ""]))
    assert sorted(imported_rooms(file)) == [(2, "cli"), (3, "serve")]
    assert list(spoken(file)) == [(4, "print")]
    relative = ast.parse("from ..decode import beam\nfrom . import loss").body
    found = [name for node in relative for name in from_names(node, ROOT / "train" / "loop.py")]
    assert found == ["clearhead.decode.beam", "clearhead.train.loss"]
