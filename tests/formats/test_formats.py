"""Every format a release has written is opened by every later one: the model works, the run goes on."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path
from types import ModuleType

import pytest

from clearhead.files.manifest import FORMAT
from clearhead.train.machine import TOLERANCE, Machine, this_machine
from clearhead.verbs.doctor import model_health
from clearhead.verbs.model import load

HERE = Path(__file__).parent
FORMATS = sorted(HERE.glob("format-*"))


@pytest.fixture(scope="module")
def make() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make", HERE / "make.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_current_format_is_stored() -> None:
    assert [path.name for path in FORMATS] == [f"format-{number}" for number in range(1, FORMAT + 1)]
    for path in FORMATS:
        assert sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) <= 200_000


@pytest.mark.parametrize("stored", FORMATS, ids=lambda path: path.name)
def test_the_model_opens_and_answers_as_it_did(stored: Path) -> None:
    findings = list(model_health(stored / "run"))
    assert [finding.state for finding in findings] == ["ok", "ok"], findings
    assert isinstance(load(stored / "run").translate("a b c d e"), str)


@pytest.mark.parametrize("stored", FORMATS, ids=lambda path: path.name)
def test_the_run_goes_on_with_the_same_losses(stored: Path, make: ModuleType, tmp_path: Path) -> None:
    run = Path(shutil.copytree(stored / "run", tmp_path / "run"))
    expected = json.loads((stored / "losses.json").read_text(encoding="utf-8"))
    found = make.go_on(run, make.FIRST + make.MORE)
    assert len(found) == make.MORE
    if Machine.model_validate(expected["machine"]) == this_machine():
        assert found == expected["losses"]
    else:
        assert found == pytest.approx(expected["losses"], rel=TOLERANCE)
