"""docs/promises.md: every proof it names exists, is run by the targets it names, and no test of faults is left out."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
PROOF = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
PROMISES = 9


@cache
def cases_of(file: str) -> dict[str, bool]:
    """The tests of a file, and which of them are run by `make test-all` only."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    return {node.name: any(ast.unparse(mark) == "pytest.mark.slow" for mark in node.decorator_list) for node in found}


def test_every_proof_exists() -> None:
    named = PROOF.findall(PAGE)
    assert len(named) > 60
    assert not [f"{file}::{name}" for file, name in named if name not in cases_of(file)]


def test_every_promise_has_its_proofs() -> None:
    sections = re.split(r"\n## ", PAGE)[1:]
    assert [section.partition(".")[0] for section in sections] == [str(n + 1) for n in range(PROMISES)]
    for section in sections:
        rows = [line for line in section.split("\n") if line.startswith("|")][2:]
        assert rows and all(PROOF.search(row) for row in rows), section[:60]


def test_long_forms_are_called_long() -> None:
    """A row whose proofs are all run by `make test-all` only says so."""
    for row in (line for line in PAGE.split("\n") if PROOF.search(line)):
        if all(cases_of(file)[name] for file, name in PROOF.findall(row)):
            assert "(*long*)" in row, row


def test_no_file_of_faults_is_left_out() -> None:
    named = {file for file, _ in PROOF.findall(PAGE)}
    files = {str(path.relative_to(ROOT)) for path in (ROOT / "tests" / "faults").glob("test_*.py")}
    assert files <= named, files - named


def test_every_command_is_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"`make ([\w-]+)`", PAGE))
    assert {"test", "test-all", "fuzz", "audit"} <= targets
    assert all(re.search(rf"(?m)^{target}:", makefile) for target in targets)
    for script in re.findall(r"`python (\S+)`", PAGE):
        assert (ROOT / script).is_file()
