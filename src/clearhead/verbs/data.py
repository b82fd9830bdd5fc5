"""The verb `data check`: the report, before any training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from clearhead.config import read_experiment
from clearhead.config.load import apply_overrides, build_experiment
from clearhead.data.readers.read import open_pairs
from clearhead.data.report import Report, lines
from clearhead.data.report import check as check_pairs
from clearhead.verbs.folder import CONFIG, refuse_no_folder
from clearhead.verbs.prepare import located
from clearhead.verbs.recipe import table_from
from clearhead.verbs.tokenizers import Tokenizers, load

__all__ = ["check", "lines"]


def check(
    files: Sequence[str],
    data: Mapping[str, Any],
    test: Sequence[str],
    model: str | None,
    overrides: Sequence[str] = (),
) -> Report:
    """`files`: pairs, or a recipe. `test`: a test set to look for among them. `model`: a folder whose vocabulary gives
    the unknown rate."""
    table = table_from(files, {})
    table["data"] = table.get("data", {}) | dict(data)
    experiment = build_experiment(apply_overrides(table, overrides))
    settings = experiment.data
    held_out = open_pairs(located(test), settings) if test else None
    unknown = None
    if model is not None:
        refuse_no_folder(Path(model))
        tokenizers = load(Path(model), read_experiment(Path(model) / CONFIG).text)
        unknown = rates_under(tokenizers)
    return check_pairs(
        open_pairs(located(experiment.files), settings), settings, unknown_rate=unknown, held_out=held_out
    )


def rates_under(tokenizers: Tokenizers) -> Callable[[Sequence[str], Sequence[str]], tuple[float, float]]:
    """Share of tokens a vocabulary has no word for, on each side."""
    return lambda source, target: (tokenizers.source.unknown_rate(source), tokenizers.target.unknown_rate(target))
