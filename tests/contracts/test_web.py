"""The tools that build the page run on the Node that docs/explore.md names."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = json.loads((ROOT / "web" / "package-lock.json").read_text(encoding="utf-8"))["packages"]
NEEDS = {name: package["engines"]["node"] for name, package in PACKAGES.items() if "node" in package.get("engines", {})}


def promised() -> tuple[int, int]:
    """Major and minor version, as the page about the page says."""
    found = re.search(r"needs\s+Node (\d+)\.(\d+)", (ROOT / "docs" / "explore.md").read_text(encoding="utf-8"))
    assert found, "docs/explore.md does not say which Node `make web` needs"
    return int(found[1]), int(found[2])


def admits(ranges: str, version: tuple[int, int]) -> bool:
    """Is this version in one of the ranges, ^a.b or >=a.b, parted by ||?"""
    for one in ranges.split("||"):
        found = re.fullmatch(r"\s*(\^|>=)\s*(\d+)(?:\.(\d+))?(?:\.\d+)?\s*", one)
        assert found, f"a range this test does not read: {one!r}"
        lowest = (int(found[2]), int(found[3] or 0))
        if lowest <= version and (found[1] == ">=" or lowest[0] == version[0]):
            return True
    return False


@pytest.mark.parametrize("name", NEEDS)
def test_every_tool_runs_on_the_node_that_is_promised(name: str) -> None:
    version = promised()
    assert admits(NEEDS[name], version), f"{name} wants Node {NEEDS[name]}, promised is {version[0]}.{version[1]}"
