"""From what a person said to every value of an experiment: defaults that depend on the amount of data.

Only what was not said is filled in. Everything filled in is written to config.toml, so a run is described whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from clearhead.config import Experiment
from clearhead.config.load import build_experiment, to_table
from clearhead.errors import UsageError, nearest
from clearhead.models.presets import SIZES, size_for
from clearhead.verbs.device import device

EPOCHS = 60
"""A run on small data sees each pair about this often, unless it stops early."""
TOKENS_PER_PAIR = 16
STEPS_AT_LEAST, STEPS_AT_MOST = 600, 100_000


def resolve(table: Mapping[str, Any], pairs: int, stored: Experiment | None = None) -> Experiment:
    """The experiment for this many training pairs; a folder's stored one decides where nothing new was said."""
    if stored is not None:
        return build_experiment(laid_over(to_table(stored), without_auto(table)))
    size = table.get("size") or size_for(pairs)
    defaults: dict[str, dict[str, Any]] = {
        "model": SIZES[size] | regularisation(pairs) | tying(table.get("text")),
        "text": {"vocab_size": vocabulary_for(pairs)},
        "train": training_for(size, pairs, table.get("train", {})),
    }
    filled = laid_over(defaults | {"size": size}, table)
    every = {"every_steps": max(50, min(1000, round(filled["train"]["max_steps"] / 20)))}
    filled = laid_over({"validation": every, "checkpoint": every}, filled)
    return with_precision(build_experiment(filled))


def refuse_other_size(size: str | None) -> None:
    if size and size not in SIZES:
        likely = nearest(size, SIZES)
        raise UsageError(
            f"there is no size {size!r}", field="size", hint=f"did you mean {likely}?" if likely else ", ".join(SIZES)
        )


def without_auto(table: Mapping[str, Any]) -> dict[str, Any]:
    """ "auto" was answered when the run began; the same command must not ask again."""
    train = table.get("train", {})
    if not isinstance(train, Mapping) or train.get("precision") != "auto":
        return dict(table)
    return {**table, "train": {name: value for name, value in train.items() if name != "precision"}}


def laid_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Two tables of sections as one; what is said above wins."""
    joined = dict(below)
    for name, value in above.items():
        joined[name] = {**below.get(name, {}), **value} if isinstance(value, Mapping) else value
    return joined


def regularisation(pairs: int) -> dict[str, Any]:
    return {"dropout": 0.3 if pairs < 200_000 else 0.1}


def tying(text: Any) -> dict[str, Any]:
    """Two vocabularies cannot share their rows; the target's two tables still can."""
    return {"tie": "target"} if isinstance(text, Mapping) and text.get("shared") is False else {}


def vocabulary_for(pairs: int) -> int:
    """Few pairs, few sub-words: each must be seen often enough to be learned."""
    if pairs < 32_000:
        return max(1_000, pairs // 4)
    return 8_000 if pairs < 1_000_000 else 32_000


def training_for(size: str, pairs: int, said: Mapping[str, Any]) -> dict[str, Any]:
    batch_tokens = said.get("batch_tokens", 4096 if size in ("tiny", "small") else 8192)
    epoch_steps = max(1, pairs * TOKENS_PER_PAIR // (batch_tokens * said.get("accumulate", 1)))
    steps = max(STEPS_AT_LEAST, min(STEPS_AT_MOST, EPOCHS * epoch_steps))
    steps = said.get("max_steps", round(steps, -2))
    peak = {"tiny": 4e-3, "small": 2e-3, "base": 1e-3, "big": 5e-4}[size]
    return {"batch_tokens": batch_tokens, "max_steps": steps, "lr": peak, "warmup_steps": min(2000, max(1, steps // 8))}


def with_precision(experiment: Experiment) -> Experiment:
    """ "auto" becomes what this machine does fast: by its instructions, never by a stopwatch."""
    if experiment.train.precision != "auto":
        return experiment
    precision = "bf16" if fast_bfloat16(device(experiment.train.device)) else "float32"
    return experiment.model_copy(update={"train": experiment.train.model_copy(update={"precision": precision})})


def fast_bfloat16(on: torch.device) -> bool:
    if on.type == "cuda":
        return torch.cuda.is_bf16_supported()
    if on.type != "cpu":
        return False
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())
