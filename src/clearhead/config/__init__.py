"""Frozen settings, one class per room. Knows names, types, bounds and defaults; refuses to know torch."""

from clearhead.config.experiment import Experiment
from clearhead.config.load import apply_overrides, read_experiment, write_experiment
from clearhead.config.settings import (
    CheckpointSettings,
    DataSettings,
    DecodeSettings,
    ModelSettings,
    TextSettings,
    TrainSettings,
    ValidationSettings,
)

__all__ = [
    "CheckpointSettings",
    "DataSettings",
    "DecodeSettings",
    "Experiment",
    "ModelSettings",
    "TextSettings",
    "TrainSettings",
    "ValidationSettings",
    "apply_overrides",
    "read_experiment",
    "write_experiment",
]
