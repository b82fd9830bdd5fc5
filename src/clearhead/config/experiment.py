"""A whole experiment: every room's settings in one frozen object, one TOML file.

`[text] [data] [model] [train] [validation] [checkpoint] [decode]`, plus `size`, the name of the preset the model
started from, and `files`, the pairs it was given.
"""

from __future__ import annotations

from pydantic import model_validator

from clearhead.config.settings import (
    CheckpointSettings,
    DataSettings,
    DecodeSettings,
    ModelSettings,
    Settings,
    TextSettings,
    TrainSettings,
    ValidationSettings,
)


class Experiment(Settings):
    """Everything that decides a result, apart from the data itself."""

    files: tuple[str, ...] = ()
    """The files of pairs, relative to the recipe's folder or absolute."""
    size: str | None = None
    """Preset the model's shape started from: tiny, small, base, big; chosen from the data when empty."""
    text: TextSettings = TextSettings()
    """How text becomes ids."""
    data: DataSettings = DataSettings()
    """Which pairs are read and kept."""
    model: ModelSettings = ModelSettings()
    """The model's shape."""
    train: TrainSettings = TrainSettings()
    """How it learns."""
    validation: ValidationSettings = ValidationSettings()
    """How it is judged on the way."""
    checkpoint: CheckpointSettings = CheckpointSettings()
    """What is saved on the way."""
    decode: DecodeSettings = DecodeSettings()
    """How the finished model writes."""

    @property
    def longest(self) -> int:
        """Tokens of a side at most, its end mark aside: what is asked for, and what the model reads at once."""
        return min(self.data.max_tokens, self.model.max_len - 1)

    @model_validator(mode="after")
    def _consistent(self) -> Experiment:
        if self.model.tie == "all" and not self.text.shared:
            raise ValueError('model.tie = "all" needs text.shared = true; use model.tie = "target"')
        if self.text.bpe_dropout > 0 and (self.text.level, self.text.algorithm) != ("subword", "bpe"):
            raise ValueError('text.bpe_dropout needs text.level = "subword" and text.algorithm = "bpe"')
        if self.validation.metric != "loss" and self.validation.decode_pairs == 0:
            raise ValueError(f'validation.metric = "{self.validation.metric}" needs validation.decode_pairs above 0')
        return self
