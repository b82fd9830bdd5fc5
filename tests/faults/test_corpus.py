"""The kept inputs of the fuzzer, and what it once found: every loader answers or refuses, soon, in our words."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

CORPUS = Path(__file__).with_name("corpus")
SECONDS = 1.0


@pytest.fixture(scope="module")
def loaders() -> ModuleType:
    spec = importlib.util.spec_from_file_location("loaders", Path(__file__).with_name("loaders.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", sorted(path.name for path in CORPUS.iterdir()))
def test_every_kept_input(name: str, loaders: ModuleType, tmp_path: Path) -> None:
    became = {"read": 0, "refused": 0}
    for path in sorted((CORPUS / name).iterdir()):
        start = time.process_time()
        try:
            became[loaders.load(name, path.read_bytes(), tmp_path)] += 1
        except Exception as error:
            raise AssertionError(f"{path.name}: {type(error).__name__}: {str(error)[:300]}") from error
        assert time.process_time() - start < SECONDS, path.name
    assert min(became.values()) > 0, became


def test_every_loader_has_a_corpus(loaders: ModuleType) -> None:
    assert sorted(loaders.LOADERS) == sorted(path.name for path in CORPUS.iterdir())


def test_without_its_tool_the_fuzzer_says_so() -> None:
    """-S: nothing installed can be imported."""
    script = Path(__file__).with_name("fuzz_loaders.py")
    told = subprocess.run([sys.executable, "-S", str(script), "all"], capture_output=True, text=True, check=False)
    assert told.returncode == 3 and "nothing was fuzzed" in told.stderr
