"""clearhead: a Transformer you can train, run and see through.

    import clearhead as ch

    model = ch.load("runs/de")
    model.translate("guten Morgen")

The names below are promised; whatever else can be imported is not.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from clearhead.errors import (
    ClearheadError,
    DataError,
    DiskError,
    Interrupted,
    MissingExtra,
    ModelFileError,
    NumbersError,
    UsageError,
)

if TYPE_CHECKING:
    from clearhead.config import DecodeSettings, Experiment
    from clearhead.verbs.api import data_check, doctor, evaluate, plan, train, translate
    from clearhead.verbs.model import Model, Output, Translation, load

__version__ = "0.1.0"

_HOMES = {
    "DecodeSettings": "clearhead.config",
    "Experiment": "clearhead.config",
    "Model": "clearhead.verbs.model",
    "Output": "clearhead.verbs.model",
    "Translation": "clearhead.verbs.model",
    "data_check": "clearhead.verbs.api",
    "doctor": "clearhead.verbs.api",
    "evaluate": "clearhead.verbs.api",
    "load": "clearhead.verbs.model",
    "plan": "clearhead.verbs.api",
    "train": "clearhead.verbs.api",
    "translate": "clearhead.verbs.api",
}

__all__ = [
    "ClearheadError",
    "DataError",
    "DecodeSettings",
    "DiskError",
    "Experiment",
    "Interrupted",
    "MissingExtra",
    "Model",
    "ModelFileError",
    "NumbersError",
    "Output",
    "Translation",
    "UsageError",
    "data_check",
    "doctor",
    "evaluate",
    "load",
    "plan",
    "train",
    "translate",
]


def __getattr__(name: str) -> Any:
    """Names are fetched when first used: `import clearhead` alone does not wait for torch."""
    if name not in _HOMES:
        raise AttributeError(f"module 'clearhead' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


class _Face(ModuleType):
    """`train` and `evaluate` are verbs here and rooms below. The names stay the verbs', whatever was imported before;
    a room is reached by its path: `from clearhead.train.loop import Training`."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):  # else Python binds a room it has just imported
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Face
