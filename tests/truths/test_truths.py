"""Every truth holds, and does not hold with its ingredient taken away: a truth that cannot fail is no truth."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch

from clearhead.errors import MissingExtra
from clearhead.truths.registry import TRUTHS
from clearhead.truths.truth import Given, Result, Truth
from clearhead.verbs import model as models

SLOW = ("positions", "heads", "depth", "norm-curves", "recall", "parity")
"""Those that train for more than a few seconds."""
NEED_A_MODEL = ("neighbours", "score", "mixture", "distribution", "walk", "words", "reading")
SYLLABUS = {"T1", "T2", "P1", "P2", "P3", "P4", "P5", "A1", "A2", "A3", "A4", "A5", "A6", "A7", "A8"}
SYLLABUS |= {"H1", "R1", "L1", "L2", "F1", "E1", "D1", "D2", "G6", "B1", "Y1"}
BY_NAME = {truth.name: truth for truth in TRUTHS}
QUICK = [truth.name for truth in TRUTHS if truth.name not in (*SLOW, *NEED_A_MODEL)]


def proved(truth: Truth, control: bool, model: Path | None = None) -> Result:
    result = truth.prove(Given(control=control, model=model))
    assert result.lacking == ""
    assert result.figures and result.measured and result.checks
    assert all(isinstance(name, str) and math.isfinite(value) for name, value in result.measured.items())
    json.dumps(dict(result.measured), allow_nan=False)
    return result


def holds_and_needs_its_ingredient(truth: Truth, model: Path | None = None) -> None:
    result = proved(truth, False, model)
    assert result.holds is True, [sentence for sentence, holds in result.checks.items() if not holds]
    control = proved(truth, True, model)
    assert control.holds is False, f"without {truth.control} it holds all the same"


@pytest.mark.parametrize("name", QUICK)
def test_a_truth(name: str) -> None:
    holds_and_needs_its_ingredient(BY_NAME[name])


@pytest.mark.parametrize("name", NEED_A_MODEL)
def test_a_truth_of_the_trained_model(name: str, translator: Path) -> None:
    holds_and_needs_its_ingredient(BY_NAME[name], translator)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_a_truth_that_trains(name: str) -> None:
    holds_and_needs_its_ingredient(BY_NAME[name])


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3])
@pytest.mark.parametrize("name", [*QUICK, *SLOW])
def test_it_was_not_the_seed(name: str, seed: int) -> None:
    assert BY_NAME[name].prove(Given(seed=seed)).holds is True


def test_every_row_of_the_syllabus_has_one() -> None:
    assert {truth.row for truth in TRUTHS} == SYLLABUS
    assert len(BY_NAME) == len(TRUTHS)
    for truth in TRUTHS:
        assert truth.claim.endswith(".") and truth.refuted_by and truth.control


def test_the_same_seed_gives_the_same_numbers() -> None:
    for name in ("fruit", "drift", "scaling"):
        first, second = (BY_NAME[name].prove(Given(seed=7)).measured for _ in range(2))
        assert first == second
        assert first != BY_NAME[name].prove(Given(seed=8)).measured


@pytest.mark.parametrize("name", NEED_A_MODEL)
def test_without_a_model_nobody_can_tell(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(models, "PACKAGED", tmp_path / "nothing")
    result = BY_NAME[name].prove(Given())
    assert result.holds is None and "a trained translator is needed" in result.lacking


def test_what_is_missing_is_a_result_and_what_is_wrong_is_not() -> None:
    def missing(given: Given) -> Result:
        raise MissingExtra("not here")

    def broken(given: Given) -> Result:
        raise ZeroDivisionError

    parts = {"name": "x", "row": "Z9", "claim": "It is so.", "refuted_by": "it is not", "control": "it"}
    assert Truth(**parts, experiment=missing).prove(Given()).holds is None
    with pytest.raises(ZeroDivisionError):
        Truth(**parts, experiment=broken).prove(Given())


def test_chance_is_by_purpose() -> None:
    def draw(given: Given, purpose: str) -> float:
        return torch.rand(1, generator=given.generator(purpose)).item()

    assert draw(Given(1), "a") == draw(Given(1), "a")
    assert len({draw(Given(1), "a"), draw(Given(1), "b"), draw(Given(2), "a")}) == 3
