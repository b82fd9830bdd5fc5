"""docs/notation.md and the source use the same letters and words: neither knows one that the other does not."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from clearhead.config import ModelSettings
from clearhead.glass.table import SHAPES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "notation.md").read_text(encoding="utf-8")
KINDS = ("Float", "Int", "Bool", "UInt8")


def annotations(source: str) -> Iterator[str]:
    """The shape of every `Float[Tensor, "…"]` in a file."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in KINDS:
            assert isinstance(node.slice, ast.Tuple), ast.unparse(node)
            yield str(ast.literal_eval(node.slice.elts[1]))


def used() -> dict[str, str]:
    """Every dimension that is no number, and a file that has it."""
    found = {}
    for path in sorted((ROOT / "src" / "clearhead").rglob("*.py")):
        for shape in annotations(path.read_text(encoding="utf-8")):
            found |= {word: path.name for word in shape.split() if not word.isdecimal()}
    return found


def explained() -> list[tuple[str, str]]:
    """(letter, setting) of each row of the table of letters."""
    section = PAGE.partition("\n## Letters of shapes\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([^`]+)` \| [^|]+ \|(?: `(\w+)`)? \|$", section, re.MULTILINE)
    assert len(rows) == section.count("\n|") - 2, "a row that cannot be read"
    return rows


def test_every_letter_is_explained_and_every_explained_one_is_used() -> None:
    letters, where = [letter for letter, _ in explained()], used()
    assert len(letters) == len(set(letters)) and len(letters) > 20
    assert {letter: where[letter] for letter in where.keys() - set(letters)} == {}
    assert set(letters) - where.keys() == set()


def test_the_settings_beside_letters_exist_and_every_width_is_named() -> None:
    named = {setting for _, setting in explained() if setting}
    assert named <= set(ModelSettings.model_fields) and len(named) == 5
    widths = [name for name in ModelSettings.model_fields if name.startswith(("d_", "n_"))]
    assert [name for name in widths if f"`{name}`" not in PAGE] == []


def test_every_kind_of_record_has_its_word() -> None:
    assert [name for name in SHAPES if f"`{name}`" not in PAGE] == []


def test_shapes_are_found_wherever_they_stand() -> None:
    source = 'def f(x: Float[Tensor, "B {n} 1"] | None) -> tuple[Int[Tensor, "..."], Bool[Tensor, "Q _"]]: ...'
    assert sorted(annotations(source)) == ["...", "B {n} 1", "Q _"]
