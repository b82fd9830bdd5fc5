"""The verb `evaluate`: how good a model is on pairs it has not seen, with what can be said about chance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from clearhead.config import DataSettings
from clearhead.config.load import build_experiment
from clearhead.data.readers.languages import same_language
from clearhead.data.readers.pairs import Pair, Pairs
from clearhead.data.readers.read import open_pairs
from clearhead.errors import UsageError
from clearhead.evaluate.metrics import bleu
from clearhead.evaluate.report import Evaluation, evaluate_outputs, lines
from clearhead.files import disk, write_atomic
from clearhead.native import build as native
from clearhead.text.normalise import normalise
from clearhead.verbs.model import Model
from clearhead.verbs.prepare import located
from clearhead.verbs.sift import sift
from clearhead.verbs.ticker import Ticker
from clearhead.verbs.translate import open_model

TOKENIZE = "13a"

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
        refuse_test_set(outputs, located(files))
    bleu(tokenize or TOKENIZE)  # a wrong name is told before anything is translated
    settings = build_experiment({"files": list(files), "data": dict(data or {})}).data
    model = open_model(path, threads, device, say)
    test_set = open_directed(model, located(files), settings)
    pairs = list(test_set)
    sifted = sift(pairs, settings)
    for line in (*test_set.said, *test_set.passed_over, *other_languages(model, test_set), *sifted.said):
        say(line)
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


def refuse_test_set(outputs: Path, files: Sequence[Path]) -> None:
    """Translations are never written over what they are compared with."""
    if outputs.exists() and any(file.exists() and file.samefile(outputs) for file in files):
        raise UsageError("is the test set itself, which would be lost", file=outputs, hint="choose another --outputs")


def open_directed(model: Model, files: Sequence[Path], settings: DataSettings) -> Pairs:
    """The test set, its sides the way round the model translates, unless a person says how to read it."""
    pairs = open_pairs(files, settings)
    source, target = pairs.source, pairs.target
    crossed = same_language(source, model.target_language) and same_language(target, model.source_language)
    if not crossed or settings.columns or settings.source or settings.target:
        return pairs
    return open_pairs(files, settings.model_copy(update={"source": target, "target": source}))


def other_languages(model: Model, pairs: Pairs) -> list[str]:
    """A warning where both say what they are, and it is not the same."""
    ours, theirs = (model.source_language, model.target_language), (pairs.source, pairs.target)
    if all(not a or not b or same_language(a, b) for a, b in zip(ours, theirs, strict=True)):
        return []
    was, wanted = (" → ".join(code or "?" for code in codes) for codes in (theirs, ours))
    return [f"warning: the test set is {was}, but the model translates {wanted}"]


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
        tokenize=tokenize or TOKENIZE,
        nats_per_token=nats,
        too_long=len(chosen) - len(fitting),
        worst=worst,
    )


def texts_of(
    model: Model, sources: Sequence[str], changes: Mapping[str, Any], progress: Callable[[int], None] | None
) -> list[str]:
    return [found.text for found in model.translations(sources, model.settings(**changes), progress)]
