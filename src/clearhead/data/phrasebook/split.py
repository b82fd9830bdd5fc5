"""Which phrases are held out: new combinations of known words.

Every word of a held-out phrase, on either side, occurs in several training phrases; the phrase itself, on either
side, in none. So a score on them measures composition; memory alone scores nothing.

Knows phrases and words. Refuses to know what the phrases are about.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from clearhead.data.phrasebook.words import same, words
from clearhead.randomness import permutation

FLOOR = 6  # training phrases in which every word of the book occurs, at least


@dataclass(frozen=True)
class Phrase:
    kind: str
    source: str
    target: str

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """Its different words, each marked with its side."""
        sides = ("<", self.source), (">", self.target)
        return frozenset(mark + word for mark, side in sides for word in words(side))


def one_to_one(phrases: Iterable[Phrase]) -> list[Phrase]:
    """Each source once. A source heard with two targets is not the model's to guess: all its phrases go."""
    first: dict[str, Phrase] = {}
    ambiguous = set()
    for phrase in phrases:
        known = first.setdefault(same(phrase.source), phrase)
        if known.target != phrase.target:
            ambiguous.add(same(phrase.source))
    return [phrase for source, phrase in first.items() if source not in ambiguous]


def without_rare_words(phrases: list[Phrase]) -> list[Phrase]:
    """Drop phrases with a word that fewer than FLOOR phrases have, until no such word is left."""
    counts = Counter(word for phrase in phrases for word in phrase.vocabulary)
    while rare := {word for word, count in counts.items() if 0 < count < FLOOR}:
        dropped = [phrase for phrase in phrases if not rare.isdisjoint(phrase.vocabulary)]
        phrases = [phrase for phrase in phrases if rare.isdisjoint(phrase.vocabulary)]
        counts.subtract(word for phrase in dropped for word in phrase.vocabulary)
    return phrases


def hold_out(phrases: list[Phrase], count: int, seed: int) -> tuple[list[Phrase], list[Phrase]]:
    """(training, held-out), both in shuffled order."""
    counts = Counter(word for phrase in phrases for word in phrase.vocabulary)
    targets = Counter(same(phrase.target) for phrase in phrases)
    train: list[Phrase] = []
    held: list[Phrase] = []
    for place in permutation(len(phrases), seed, "phrasebook split"):
        phrase = phrases[place]
        spare = all(counts[word] > FLOOR for word in phrase.vocabulary)
        if len(held) < count and targets[same(phrase.target)] == 1 and spare:
            counts.subtract(phrase.vocabulary)
            held.append(phrase)
        else:
            train.append(phrase)
    return train, held
