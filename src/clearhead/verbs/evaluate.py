"""The verb `evaluate`: how good a model is on pairs it has not seen, with what can be said about chance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from clearhead.config.load import build_experiment
from clearhead.data.readers.read import open_pairs
from clearhead.evaluate.report import Evaluation, evaluate_outputs, lines
from clearhead.files import disk, write_atomic
from clearhead.native import build as native
from clearhead.text.normalise import normalise
from clearhead.verbs.model import Model
from clearhead.verbs.prepare import located
from clearhead.verbs.ticker import Ticker
from clearhead.verbs.translate import open_model

__all__ = ["evaluate", "evaluate_model", "lines"]


def evaluate(
    path: Path,
    files: Sequence[str],
    *,
    against: Path | None = None,
    tokenize: str | None = None,
    data: Mapping[str, Any] | None = None,
    changes: Mapping[str, Any] | None = None,
    worst: int = 5,
    outputs: Path | None = None,
    threads: int | None = None,
    device: str = "auto",
    say: Callable[[str], None] = lambda text: None,
) -> Evaluation:
    """Score the model folder at `path` on files of pairs."""
    if outputs is not None:
        disk.require_place(outputs)
    settings = build_experiment({"files": list(files), "data": dict(data or {})}).data
    test_set = open_pairs(located(files), settings)
    pairs = [(pair.source, pair.target) for pair in test_set]
    for line in (*test_set.said, *test_set.passed_over):
        say(line)
    model = open_model(path, threads, device, say)
    native.build(say)
    baseline = None
    if against is not None:
        other = open_model(against, threads, device)
        baseline = texts_of(other, [source for source, _ in pairs], changes or {}, None)
    return evaluate_model(
        model, pairs, baseline, tokenize, changes or {}, worst, outputs, Ticker(say, "translated", len(pairs))
    )


def evaluate_model(
    model: Model,
    pairs: Sequence[tuple[str, str]],
    baseline: Sequence[str] | None = None,
    tokenize: str | None = None,
    changes: Mapping[str, Any] | None = None,
    worst: int = 5,
    outputs: Path | None = None,
    progress: Callable[[int], None] | None = None,
) -> Evaluation:
    """References are normalised as the model's text is: Unicode form, and lower case where it writes lower case."""
    sources = [source for source, _ in pairs]
    references = [normalise(target, model.experiment.text) for _, target in pairs]
    written = texts_of(model, sources, changes or {}, progress)
    if outputs is not None:
        write_atomic(outputs, "".join(text.replace("\n", " ") + "\n" for text in written).encode())
    fitting = model.fitting(list(zip(sources, references, strict=True)))
    scored = model.score(fitting)
    nats = -sum(value for value, _ in scored) / sum(tokens for _, tokens in scored) if scored else None
    return evaluate_outputs(
        written,
        references,
        sources=sources,
        baseline=baseline,
        tokenize=tokenize or "13a",
        nats_per_token=nats,
        too_long=len(pairs) - len(fitting),
        worst=worst,
    )


def texts_of(
    model: Model, sources: Sequence[str], changes: Mapping[str, Any], progress: Callable[[int], None] | None
) -> list[str]:
    return [found.text for found in model.translations(sources, model.settings(**changes), progress)]
