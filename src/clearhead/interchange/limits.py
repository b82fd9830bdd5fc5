"""What another program can express, setting by setting; everything else is refused by name, before anything is written.

A setting that a program's table does not mention is free; a test asks that this was meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clearhead.config import ModelSettings
from clearhead.errors import UsageError

Allowed = Mapping[str, tuple[Any, ...]]

PLAIN_SHAPE: dict[str, tuple[Any, ...]] = {
    "kind": ("seq2seq",),
    "attention_window": (None,),
    "attention_stride": (None,),
    "scale_scores": (True,),
}
"""Of a Transformer encoder-decoder as everybody knows it."""

FREE = (
    *("d_model", "d_ff", "n_heads", "encoder_layers", "decoder_layers", "max_len", "embedding_scale", "tie"),
    *("dropout", "attention_dropout", "activation_dropout", "word_dropout"),
)
"""Sizes that everybody can express; two choices that every writer writes; and what has no part in a finished model."""


def refuse_other(settings: ModelSettings, program: str, allowed: Allowed) -> None:
    """An error that names every setting in the way."""
    wrong = [name for name, values in allowed.items() if getattr(settings, name) not in values]
    wrong += [name for name, usual in usual_heads(settings).items() if getattr(settings, name) not in (None, usual)]
    if wrong:
        said = "; ".join(f"model.{name} = {written(getattr(settings, name))}" for name in wrong)
        ways = "; ".join(
            f"model.{name}: {' or '.join(map(written, allowed[name]))}" for name in wrong if name in allowed
        )
        raise UsageError(
            f"{program} cannot express this model: {said}", hint=f"it reads {ways}" if ways else "train without it"
        )


def usual_heads(settings: ModelSettings) -> dict[str, int]:
    """Heads as wide as the model divided by their number, each with its own keys and values."""
    width = settings.d_model // settings.n_heads
    return {"d_head": width, "d_value": width, "n_kv_heads": settings.n_heads}


def written(value: Any) -> str:
    """As in a recipe; None is how an empty setting reads."""
    if value is None:
        return "empty"
    return str(value).lower() if isinstance(value, bool) else str(value)
