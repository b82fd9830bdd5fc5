"""Sixty steps of three recipes give the losses they gave before: exactly, on the class of machines they were taken on;
within a tolerance elsewhere. `make golden` takes them again."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from clearhead.train.machine import TOLERANCE, Machine, this_machine


@pytest.fixture(scope="module")
def golden() -> ModuleType:
    spec = importlib.util.spec_from_file_location("golden_losses", Path(__file__).with_name("golden_losses.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["plain", "everything", "rounded"])
def test_losses_are_as_they_were(name: str, golden: ModuleType, tmp_path: Path) -> None:
    stored = json.loads(golden.STORED.read_text(encoding="utf-8"))
    expected = stored["losses"][name]
    found = golden.losses(golden.RECIPES[name], tmp_path)
    assert len(found) == len(expected) == golden.STEPS and found[-1] < 0.8 * found[0]
    if Machine.model_validate(stored["machine"]) == this_machine():
        assert found == expected
    else:
        assert found == pytest.approx(expected, rel=TOLERANCE)
