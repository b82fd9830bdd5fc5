"""The verb `evaluate`: how good a model is on pairs it has not seen, with what can be said about chance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from clearhead.config.load import build_experiment
from clearhead.data.readers.pairs import Pair
from clearhead.data.readers.read import open_pairs
from clearhead.evaluate.report import Evaluation, evaluate_outputs, lines
from clearhead.files import disk, write_atomic
from clearhead.native import build as native
from clearhead.text.normalise import normalise
from clearhead.verbs.model import Model
from clearhead.verbs.prepare import located
from clearhead.verbs.sift import sift
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
    pairs = list(test_set)
    sifted = sift(pairs, settings)
    for line in (*test_set.said, *test_set.passed_over, *sifted.said):
        say(line)
    model = open_model(path, threads, device, say)
    native.build(say)
    baseline = None
    if against is not None:
        other = open_model(against, threads, device)
        baseline = texts_of(other, [pairs[place].source for place in sifted.scored], changes or {}, None)
    ticker = Ticker(say, "translated", len(pairs))
    found = evaluate_model(
        model, pairs, sifted.scored, baseline, tokenize, changes or {}, worst, outputs, progress=ticker
    )
    counts = {"skipped": dict(test_set.skipped), "left_out": sifted.left_out, "suspicious": sifted.suspicious}
    return found.model_copy(update=counts)


def evaluate_model(
    model: Model,
    pairs: Sequence[Pair],
    scored: Sequence[int],
    baseline: Sequence[str] | None = None,
    tokenize: str | None = None,
    changes: Mapping[str, Any] | None = None,
    worst: int = 5,
    outputs: Path | None = None,
    progress: Callable[[int], None] | None = None,
) -> Evaluation:
    """All pairs are translated, so that `outputs` has a line for each; those at the places `scored` are scored.
    References are normalised as the model's text is: Unicode form, and lower case where it writes lower case."""
    written = texts_of(model, [pair.source for pair in pairs], changes or {}, progress)
    if outputs is not None:
        write_atomic(outputs, "".join(text.replace("\n", " ") + "\n" for text in written).encode())
    chosen = [pairs[place] for place in scored]
    sources = [pair.source for pair in chosen]
    references = [normalise(pair.target, model.experiment.text) for pair in chosen]
    fitting = model.fitting(list(zip(sources, references, strict=True)))
    likely = model.score(fitting)
    nats = -sum(value for value, _ in likely) / sum(tokens for _, tokens in likely) if likely else None
    return evaluate_outputs(
        [written[place] for place in scored],
        references,
        sources=sources,
        places=[(pair.file, pair.line) for pair in chosen],
        baseline=baseline,
        tokenize=tokenize or "13a",
        nats_per_token=nats,
        too_long=len(chosen) - len(fitting),
        worst=worst,
    )


def texts_of(
    model: Model, sources: Sequence[str], changes: Mapping[str, Any], progress: Callable[[int], None] | None
) -> list[str]:
    return [found.text for found in model.translations(sources, model.settings(**changes), progress)]
