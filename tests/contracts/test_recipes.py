"""Every recipe in recipes/ is read as `clearhead train` reads it, and describes a model that can be built."""

from __future__ import annotations

from pathlib import Path

import pytest

from clearhead.config import read_experiment
from clearhead.errors import UsageError
from clearhead.models.build import build
from clearhead.models.presets import SIZES
from clearhead.models.seq2seq import parameter_count
from clearhead.verbs.recipe import table_from
from clearhead.verbs.resolve import resolve

RECIPES = sorted((Path(__file__).parents[2] / "recipes").glob("*.toml"))
PAIRS = 50_000


def test_there_are_some() -> None:
    assert RECIPES


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_is_whole(path: Path) -> None:
    said = read_experiment(path)
    assert said.files and said.size in SIZES
    experiment = resolve(table_from([str(path)], {}), PAIRS)
    assert experiment.train.max_steps == said.train.max_steps
    assert parameter_count(build(experiment.model, 300, 300)) > 0


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_says_what_it_is_for(path: Path) -> None:
    assert path.read_text(encoding="utf-8").startswith("# ")


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_misspelt_recipe_is_noticed(path: Path, tmp_path: Path) -> None:
    spoilt = tmp_path / "spoilt.toml"
    spoilt.write_text(path.read_text(encoding="utf-8").replace("max_steps", "max_stepz"), encoding="utf-8")
    with pytest.raises(UsageError, match=r"did you mean train\.max_steps"):
        table_from([str(spoilt)], {})
