"""One evaluation as data, and in plain lines.

Knows scores and texts. Refuses to know models, files, colours and terminals.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict

from clearhead.errors import NumbersError, UsageError
from clearhead.evaluate.intervals import compare, interval
from clearhead.evaluate.metrics import Metric, check_sides, chrf, standard_metrics

MOST_NATS = 700.0  # exp of more is no float


class Record(BaseModel):
    """Frozen data that goes to JSON and comes back."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ScoreWithInterval(Record):
    """A score, the settings that made it, and its 95 % interval."""

    name: str
    value: float
    low: float
    high: float
    signature: str


class Difference(Record):
    """This system's score minus the baseline's, with 95 % interval and the chance of such a difference by luck."""

    name: str
    value: float
    low: float
    high: float
    p_value: float
    baseline: float


class Sentence(Record):
    """One output beside what was wanted; `number` counts the scored sentences from 1."""

    number: int
    file: str | None = None
    """Where the pair stands, when that is known."""
    line: int | None = None
    chrf: float
    source: str | None
    reference: str
    output: str


class Evaluation(Record):
    """How a system did on a set of sentences."""

    n: int
    scores: tuple[ScoreWithInterval, ...]
    perplexity: float | None = None
    """exp of the mean negative log-likelihood per target token."""
    too_long: int = 0
    """Pairs the model cannot read at once: they have no part in the perplexity."""
    skipped: dict[str, int] = {}
    """What the readers of the test set passed over, by reason."""
    left_out: dict[str, int] = {}
    """Pairs that were read and not scored, by reason."""
    suspicious: dict[str, int] = {}
    """Pairs that were scored and look wrong, by reason."""
    against: tuple[Difference, ...] = ()
    """The paired test, when a baseline was given."""
    worst: tuple[Sentence, ...] = ()
    """Lowest sentence chrF first."""

    def value(self, name: str) -> float:
        """The score of this name."""
        found = {score.name: score.value for score in self.scores}
        if name not in found:
            raise UsageError(f"no score is called {name!r}", hint=f"there are {', '.join(found)}")
        return found[name]


def evaluate_outputs(
    outputs: Sequence[str],
    references: Sequence[str],
    *,
    sources: Sequence[str] | None = None,
    places: Sequence[tuple[str, int]] | None = None,
    baseline: Sequence[str] | None = None,
    tokenize: str = "13a",
    nats_per_token: float | None = None,
    too_long: int = 0,
    worst: int = 5,
    seed: int = 1,
    resamples: int = 1000,
) -> Evaluation:
    """Score outputs; with a baseline's outputs, also test the difference; `nats_per_token` comes from the model.
    `places`: file and line of each sentence."""
    check_sides(outputs, references)
    if sources is not None:
        check_sides(sources, references, "sources and {} references")
    metrics = standard_metrics(tokenize)
    return Evaluation(
        n=len(outputs),
        scores=tuple(with_interval(metric, outputs, references, seed, resamples) for metric in metrics),
        perplexity=None if nats_per_token is None else perplexity(nats_per_token),
        too_long=too_long,
        against=() if baseline is None else differences(metrics, baseline, outputs, references, seed, resamples),
        worst=worst_sentences(outputs, references, sources, places, worst),
    )


def with_interval(
    metric: Metric, outputs: Sequence[str], references: Sequence[str], seed: int, resamples: int
) -> ScoreWithInterval:
    rows = metric.statistics(outputs, references)
    around = interval(metric, rows, seed, resamples)
    value = metric.value(rows.sum(axis=0))
    return ScoreWithInterval(
        name=metric.name, value=value, low=around.low, high=around.high, signature=metric.signature
    )


def differences(
    metrics: Sequence[Metric],
    baseline: Sequence[str],
    outputs: Sequence[str],
    references: Sequence[str],
    seed: int,
    resamples: int,
) -> tuple[Difference, ...]:
    found = [compare(metric, baseline, outputs, references, seed, resamples) for metric in metrics]
    return tuple(
        Difference(name=c.name, value=c.difference, low=c.low, high=c.high, p_value=c.p_value, baseline=c.baseline)
        for c in found
    )


def perplexity(nats_per_token: float) -> float:
    if not 0.0 <= nats_per_token <= MOST_NATS:
        raise NumbersError(f"a loss of {nats_per_token} nats per token has no perplexity")
    return math.exp(nats_per_token)


def worst_sentences(
    outputs: Sequence[str],
    references: Sequence[str],
    sources: Sequence[str] | None,
    places: Sequence[tuple[str, int]] | None,
    most: int,
) -> tuple[Sentence, ...]:
    """The sentences furthest from their references, the first of equals first."""
    metric = chrf()
    values = np.array([metric.value(row) for row in metric.statistics(outputs, references)])
    return tuple(
        Sentence(
            number=at + 1,
            file=None if places is None else places[at][0],
            line=None if places is None else places[at][1],
            chrf=float(values[at]),
            source=None if sources is None else sources[at],
            reference=references[at],
            output=outputs[at],
        )
        for at in np.argsort(values, kind="stable")[: max(most, 0)].tolist()
    )


def lines(evaluation: Evaluation) -> list[str]:
    """The evaluation in plain text."""
    return [
        sentences_line(evaluation),
        *score_lines(evaluation),
        *difference_lines(evaluation),
        *sentence_lines(evaluation),
    ]


def sentences_line(evaluation: Evaluation) -> str:
    left_out = ", ".join(f"{count:,} × {reason}" for reason, count in evaluation.left_out.items())
    return f"{evaluation.n} sentences" + (f", besides those left out: {left_out}" if left_out else "")


def score_lines(evaluation: Evaluation) -> Iterator[str]:
    for score in evaluation.scores:
        yield f"{score.name:<12} {score.value:8.2f}   [{score.low:.2f}, {score.high:.2f}]   {score.signature}"
    if evaluation.perplexity is not None:
        nats = math.log(evaluation.perplexity)
        yield f"{'perplexity':<12} {evaluation.perplexity:8.2f}   {nats:.4f} nats per token"
    if evaluation.too_long:
        yield f"{evaluation.too_long:,} of the pairs are too long for the model to read at once: not in the perplexity"


def difference_lines(evaluation: Evaluation) -> Iterator[str]:
    if evaluation.against:
        yield "against the baseline (difference, 95 % interval, chance of such a difference by luck)"
    for found in evaluation.against:
        yield f"{found.name:<12} {found.value:+8.2f}   [{found.low:+.2f}, {found.high:+.2f}]   p = {found.p_value:.3f}"


def sentence_lines(evaluation: Evaluation) -> Iterator[str]:
    if evaluation.worst:
        yield "worst sentences by chrF"
    for sentence in evaluation.worst:
        place = sentence.number if sentence.file is None else f"{sentence.file}:{sentence.line}"
        yield f"{place}: chrF {sentence.chrf:.1f}"
        if sentence.source is not None:
            yield f"  source     {one_line(sentence.source)}"
        yield f"  reference  {one_line(sentence.reference)}"
        yield f"  output     {one_line(sentence.output)}"


def one_line(text: str) -> str:
    """Line breaks and what cannot be seen are escaped, so that a text cannot break the table."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
