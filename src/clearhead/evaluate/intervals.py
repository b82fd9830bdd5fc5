"""How sure a score is: bootstrap intervals, and a paired test of two systems.

    interval     score many sets of sentences drawn with replacement; 95 % of the scores lie in it (Koehn 2004)
    p-value      swap the two systems' outputs of sentences at random; how often is the difference as large as the
                 one seen? (approximate randomisation, Noreen 1989; Riezler & Maxwell 2005)

Every draw follows from the seed and the number of sentences, so the same files give the same interval, and all
metrics of one set see the same draws.

Knows rows of statistics. Refuses to know what they count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from clearhead.evaluate.metrics import Metric, check_sides
from clearhead.randomness import numpy_generator

COVERED = (0.025, 0.975)
TIE = 1e-9  # differences closer than this are equal: sums in another order differ in the last bits


@dataclass(frozen=True)
class Interval:
    """95 % of resampled scores lie between these; the score itself always does."""

    low: float
    high: float


@dataclass(frozen=True)
class Comparison:
    """A system against a baseline on the same sentences: the difference, its interval, and how likely chance is."""

    name: str
    signature: str
    baseline: float
    value: float
    low: float
    high: float
    p_value: float

    @property
    def difference(self) -> float:
        return self.value - self.baseline


def interval(metric: Metric, statistics: np.ndarray, seed: int = 1, resamples: int = 1000) -> Interval:
    """The interval of a corpus score, from the metric's rows."""
    values = [metric.value(total) for total in resampled(statistics, seed, resamples)]
    return around(metric.value(statistics.sum(axis=0)), values)


def resampled(statistics: np.ndarray, seed: int, resamples: int) -> Iterator[np.ndarray]:
    """Sums over sentences drawn with replacement, as many as there are."""
    n = len(statistics)
    draws = numpy_generator(seed, "bootstrap")
    for _ in range(resamples):
        yield np.bincount(draws.integers(0, n, n), minlength=n) @ statistics


def around(point: float, values: Sequence[float]) -> Interval:
    low, high = np.quantile(values, COVERED)
    return Interval(min(float(low), point), max(float(high), point))


def compare(
    metric: Metric,
    baseline: Sequence[str],
    outputs: Sequence[str],
    references: Sequence[str],
    seed: int = 1,
    resamples: int = 1000,
) -> Comparison:
    """Two systems on the same sentences."""
    check_sides(outputs, references)
    check_sides(baseline, references, "outputs of the baseline and {} references")
    old, new = metric.statistics(baseline, references), metric.statistics(outputs, references)
    was, now = metric.value(old.sum(axis=0)), metric.value(new.sum(axis=0))
    both, width = np.hstack([old, new]), old.shape[1]
    differences = [metric.value(t[width:]) - metric.value(t[:width]) for t in resampled(both, seed, resamples)]
    inner = around(now - was, differences)
    chance = p_value(metric, old, new, seed, resamples)
    return Comparison(metric.name, metric.signature, was, now, inner.low, inner.high, chance)


def p_value(metric: Metric, old: np.ndarray, new: np.ndarray, seed: int, trials: int) -> float:
    """Share of random swaps that make a difference at least as large as the real one, which counts as one of them."""
    total, difference = old.sum(axis=0) + new.sum(axis=0), new - old
    seen = abs(metric.value(new.sum(axis=0)) - metric.value(old.sum(axis=0)))
    draws = numpy_generator(seed, "swaps")
    as_large = 0
    for _ in range(trials):
        one = old.sum(axis=0) + draws.integers(0, 2, len(old)) @ difference
        as_large += abs(metric.value(one) - metric.value(total - one)) >= seen - TIE
    return (as_large + 1) / (trials + 1)
