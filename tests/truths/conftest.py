"""The model the truths look at: the one in the package."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from clearhead.verbs import model as models


@pytest.fixture(scope="session")
def translator() -> Path:
    """CLEARHEAD_MODEL names another one to try them on."""
    folder = Path(os.environ.get("CLEARHEAD_MODEL", models.PACKAGED))
    if not folder.is_dir():
        pytest.skip("the model of the package is not there: make packaged trains it, CLEARHEAD_MODEL names another")
    return folder
