"""Association of word lists in an embedding space (WEAT; Caliskan et al. 2017), with what must stand beside it.

    s(w)    mean cosine of w with the words of A − mean cosine with those of B
    effect  (mean s over X − mean s over Y) / deviation of s over X ∪ Y            between −2 and 2
    p       share of all ways to divide X ∪ Y in two that separate at least as far

Controls: random word lists of the same sizes in place of A and B, and word frequency: rare and frequent words lie apart
in such spaces, so lists of unequal frequency associate for no other reason (van Loon et al. 2022). An effect near ±2 is
saturated and says no more than "completely". Association in a space is not behaviour.

Knows a table of vectors and lists of words as ids. Refuses to call anything a bias of the model's output.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from clearhead.errors import UsageError
from clearhead.glass.findings import Clock, Control, Finding
from clearhead.glass.layout import Array
from clearhead.glass.lenses.space import unit
from clearhead.randomness import numpy_generator

MOST = 20_000
"""Divisions tried one by one; of more, as many are drawn."""
RANDOM_LISTS = 500
SATURATED = 1.9

Words = Mapping[str, Sequence[int]]
"""Each word with its ids; a word of several is the mean of its pieces, and marked."""

CAVEAT = "An association in one space, of these words only; it says nothing of what the model writes."


@dataclass(frozen=True)
class Association(Finding):
    """values: s(w) of every word of X, then of Y."""

    effect: float
    p: float
    """One-sided, by permutation."""
    random_lists: float
    """Share of random lists in place of A and B whose effect is at least as large, either way."""
    frequency: dict[str, float] | None
    """Mean log count of each list; None when no counts were given."""
    frequency_correlation: float | None
    """Of s(w) with the log count of w, over X ∪ Y."""
    split: tuple[str, ...]
    """Words that are more than one token, and so a mean."""


def association(
    table: Array, x: Words, y: Words, a: Words, b: Words, counts: Mapping[int, int] | None = None
) -> Association:
    """Do the words of X lie nearer to A than to B, compared with those of Y? `counts`: how often each id was seen."""
    clock = Clock()
    lists = {"X": x, "Y": y, "A": a, "B": b}
    for name, words in lists.items():
        if len(words) < 2:
            raise UsageError(f"list {name} has {len(words)} words; an association test needs at least 2 in each")
    units = unit(table)
    vectors = {name: vectors_of(units, words) for name, words in lists.items()}
    targets = np.concatenate((vectors["X"], vectors["Y"]))
    leaning = leanings(targets, vectors["A"], vectors["B"])
    effect = effect_size(leaning, len(x))
    chance = random_effects(units, targets, len(x), len(a), len(b))
    return Association(
        "word embedding association test",
        leaning,
        ("word",),
        ((*x, *y),),
        clock.cost(),
        Control("95th percentile of the effect's size with random words for A and B", float(np.quantile(chance, 0.95))),
        CAVEAT + (" The effect is saturated." if abs(effect) > SATURATED else ""),
        (),
        effect,
        permutation_p(leaning, len(x)),
        float(np.mean(chance >= abs(effect))),
        None if counts is None else {name: float(log_counts(words, counts).mean()) for name, words in lists.items()},
        None if counts is None else correlation(leaning, log_counts({**x, **y}, counts)),
        tuple(word for words in lists.values() for word, ids in words.items() if len(ids) > 1),
    )


def vectors_of(units: Array, words: Words) -> Array:
    return unit(np.stack([units[list(ids)].mean(0) for ids in words.values()]))


def leanings(targets: Array, a: Array, b: Array) -> Array:
    """s(w) of each target."""
    found: Array = (targets @ a.T).mean(1) - (targets @ b.T).mean(1)
    return found


def effect_size(leaning: Array, first: int) -> float:
    spread = float(leaning.std())
    return float(leaning[:first].mean() - leaning[first:].mean()) / spread if spread else 0.0


def permutation_p(leaning: Array, first: int) -> float:
    """How many divisions of the words separate at least as far as the one given; all of them, or as many drawn."""
    n, total = len(leaning), leaning.sum()
    own = separation(leaning[:first].sum(), total, first, n)
    if math.comb(n, first) <= MOST:
        sums = np.array([leaning[list(chosen)].sum() for chosen in combinations(range(n), first)])
        return float(np.mean(separation(sums, total, first, n) >= own - 1e-12))
    draws = numpy_generator(1, "glass permutations")
    order = draws.permuted(np.tile(np.arange(n), (MOST, 1)), axis=1)[:, :first]
    found = separation(leaning[order].sum(1), total, first, n)
    return float((1 + np.sum(found >= own - 1e-12)) / (1 + MOST))


def separation(of_first: Array, total: float, first: int, n: int) -> Array:
    """Mean of the first part minus mean of the rest."""
    return of_first / first - (total - of_first) / (n - first)


def random_effects(units: Array, targets: Array, first: int, size_a: int, size_b: int) -> Array:
    """Sizes of the effect with random rows of the table in place of A and B."""
    draws = numpy_generator(1, "glass random lists")
    found = []
    for _ in range(RANDOM_LISTS):
        rows = units[draws.integers(len(units), size=size_a + size_b)]
        found.append(abs(effect_size(leanings(targets, rows[:size_a], rows[size_a:]), first)))
    return np.array(found)


def log_counts(words: Words, counts: Mapping[int, int]) -> Array:
    """Log of one more than the count of each word's rarest piece."""
    return np.array([math.log1p(min(counts.get(i, 0) for i in ids)) for ids in words.values()])


def correlation(a: Array, b: Array) -> float:
    x, y = a - a.mean(), b - b.mean()
    size = math.sqrt(float((x @ x) * (y @ y)))
    return float(x @ y) / size if size else 0.0
