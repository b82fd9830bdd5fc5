"""SIGKILL at any moment, and the same command again: bit for bit what an undisturbed run gives.

What is compared: the model, its stored outputs, and every file of the last checkpoint (weights, best weights,
averages, optimiser, and the state with its patience). Everything that could forget something is on: see conftest.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Outcome = Callable[[Path], dict[str, str]]
Recipes = dict[str, dict[str, Any]]

MOMENTS: list[dict[str, Any]] = [
    {"point": "before rename config.toml"},  # preparing
    {"point": "after rename data"},
    {"point": "before save", "nth": 1},  # a save, from its first to its last point
    {"point": "before write model.safetensors", "nth": 1},
    {"point": "before fsync best.safetensors", "nth": 2},
    {"point": "after fsync state.json", "nth": 2},
    {"point": "before rename step-8"},
    {"point": "after rename step-8"},
    {"point": "after verify", "nth": 3},
    {"point": "before rename step-4.partial"},  # an old step goes
    {"event": "validation", "nth": 2},  # the loop
    {"event": "epoch"},
    {"event": "step", "nth": 7},
    {"point": "after unlink manifest.json"},  # the finished model
    {"point": "before rename model.safetensors"},
    {"point": "before rename manifest.json"},
]
SLOW_KILLS = 200


@pytest.mark.parametrize("moment", MOMENTS, ids=lambda m: "-".join(map(str, m.values())).replace(" ", "_"))
def test_killed_once_and_continued(
    moment: dict[str, Any], runs: Any, recipes: Recipes, undisturbed: dict[str, str], outcome: Outcome, tmp_path: Path
) -> None:
    if "manifest" in moment.get("point", ""):  # the manifest is taken away only where there was one
        runs(continued(recipes["everything"], 8), tmp_path / "run")
    assert runs(recipes["everything"], tmp_path / "run", **moment)["killed"]
    again = runs(recipes["everything"], tmp_path / "run")
    assert not again["killed"] and "error" not in again, again
    assert outcome(tmp_path / "run") == undisturbed
    assert not list(tmp_path.rglob("*.partial")) and not list(tmp_path.rglob("*.old"))


def continued(table: dict[str, Any], steps: int) -> dict[str, Any]:
    return {**table, "train": {**table["train"], "max_steps": steps}}


def test_killed_at_random_moments(
    runs: Any, recipes: Recipes, undisturbed: dict[str, str], outcome: Outcome, tmp_path: Path
) -> None:
    assert kill_again_and_again(runs, recipes["everything"], undisturbed, outcome, tmp_path, wanted=6, seed=1) >= 6


def test_a_run_that_stops_early(runs: Any, recipes: Recipes, outcome: Outcome, tmp_path: Path) -> None:
    """Patience, batch norm's running averages, two vocabularies: resumed after a kill at every second step."""
    assert "error" not in runs(recipes["other"], tmp_path / "whole")
    assert (tmp_path / "whole" / "checkpoints" / "step-12").is_dir()
    for _ in range(5):
        assert runs(recipes["other"], tmp_path / "cut", event="step", nth=3)["killed"]
    assert "error" not in runs(recipes["other"], tmp_path / "cut")
    assert outcome(tmp_path / "cut") == outcome(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["everything", "other"])
def test_killed_at_every_point_it_passes(
    runs: Any, recipes: Recipes, outcome: Outcome, tmp_path: Path, recipe: str
) -> None:
    whole = runs(recipes[recipe], tmp_path / "whole", record=True)
    expected = outcome(tmp_path / "whole")
    seen: dict[str, int] = {}
    for number, point in enumerate(whole["points"]):
        seen[point] = seen.get(point, 0) + 1
        out = tmp_path / str(number)
        assert runs(recipes[recipe], out, point=point, nth=seen[point])["killed"]
        assert "error" not in runs(recipes[recipe], out)
        assert outcome(out) == expected, (point, seen[point])
    assert len(whole["points"]) > 80


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["everything", "other"])
def test_killed_at_many_random_moments(
    runs: Any, recipes: Recipes, outcome: Outcome, tmp_path: Path, recipe: str
) -> None:
    assert "error" not in runs(recipes[recipe], tmp_path / "whole")
    expected = outcome(tmp_path / "whole")
    killed = kill_again_and_again(runs, recipes[recipe], expected, outcome, tmp_path, wanted=SLOW_KILLS, seed=2)
    assert killed >= SLOW_KILLS
    print(f"{killed} kills of {recipe}: every final hash equal")


def kill_again_and_again(
    runs: Any, table: dict[str, Any], expected: dict[str, str], outcome: Outcome, where: Path, wanted: int, seed: int
) -> int:
    """Runs killed at random amounts of processor time, up to five times each, then let finish. How many kills."""
    chance, killed, number = random.Random(seed), 0, 0
    whole = runs(table, where / "measured")["cpu"]
    while killed < wanted:
        number += 1
        out = where / f"random-{number}"
        for _ in range(5):
            told = runs(table, out, cpu=chance.uniform(0.0, whole))
            assert "error" not in told, told
            if not told["killed"]:
                break
            killed += 1
        assert "error" not in runs(table, out)
        assert outcome(out) == expected
        assert number < 20 * wanted, "runs end before they can be killed"
    return killed
