"""`make audit` never calls safe what it could not look up; every dependency is pinned for it."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
GOOD: dict[str, Any] = {"name": "a", "version": "1", "vulns": []}
HOLED: dict[str, Any] = {"name": "b", "version": "2", "vulns": [{"id": "PYSEC-1", "fix_versions": ["3"]}]}
SKIPPED: dict[str, Any] = {"name": "c", "skip_reason": "not found"}


@pytest.fixture(scope="module")
def audit() -> ModuleType:
    spec = importlib.util.spec_from_file_location("audit", HERE / "audit.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("dependencies", "code"),
    [([GOOD], 0), ([GOOD, HOLED], 1), ([GOOD, SKIPPED], 3), ([HOLED, SKIPPED], 1), ([SKIPPED], 3), ([], 3)],
)
def test_the_verdict(dependencies: list[dict[str, Any]], code: int, audit: ModuleType) -> None:
    found, said = audit.verdict(dependencies)
    assert found == code
    assert any("PYSEC-1, mended in 3" in line for line in said) == (HOLED in dependencies)
    assert any("nothing is known of them: c" in line for line in said) == (SKIPPED in dependencies)


def test_without_its_tool_it_says_so() -> None:
    """-S: nothing installed can be imported."""
    words = [sys.executable, "-S", str(HERE / "audit.py"), "constraints.txt"]
    told = subprocess.run(words, capture_output=True, text=True, check=False)
    assert told.returncode == 3 and "nothing was audited" in told.stdout


def test_every_dependency_is_pinned() -> None:
    """constraints.txt names one version of each package that is needed, for use and for tests."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
    pinned = {normal(line.partition("==")[0]) for line in lines if "==" in line}
    assert len(pinned) == len(lines)
    needed = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    assert {normal(re.split(r"[<>=\[]", text)[0]) for text in needed} <= pinned


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
