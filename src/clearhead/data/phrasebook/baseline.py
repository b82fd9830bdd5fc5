"""The score of memory: answer with the target of the training phrase whose source looks most alike.

Alike is Dice's coefficient over sets of character trigrams, each weighted by how rare it is:

    likeness(a, b) = 2 · Σ weight(a ∩ b) / (Σ weight(a) + Σ weight(b))        weight = log(phrases / phrases with it)

Knows pairs of text. Refuses to know languages and models.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from clearhead.data.phrasebook.book import Phrasebook


def nearest_copy(book: Phrasebook) -> float:
    """The share of held-out phrases that copying answers exactly.

    No held-out target is a training target, so for a book as it is made this is zero; the number guards the split.
    """
    places = nearest_places([source for source, _ in book.train], [source for source, _ in book.held_out])
    answers = [book.train[place][1] for place in places]
    return sum(answer == target for answer, (_, target) in zip(answers, book.held_out, strict=True)) / len(answers)


def nearest_places(known: Sequence[str], asked: Sequence[str]) -> list[int]:
    """For each text asked, the place of the most similar known one; among equals the first."""
    index = Trigrams(known)
    return [index.nearest(text) for text in asked]


class Trigrams:
    """Which known texts have which trigram: the places of trigram t are `places[starts[t] : starts[t + 1]]`."""

    def __init__(self, known: Sequence[str]) -> None:
        self.ids: dict[str, int] = {}
        grams = [[self.ids.setdefault(gram, len(self.ids)) for gram in trigrams(text)] for text in known]
        owners = np.repeat(np.arange(len(known)), [len(row) for row in grams])
        flat = np.fromiter((gram for row in grams for gram in row), dtype=np.int64, count=len(owners))
        self.places = owners[np.argsort(flat, kind="stable")]
        counts = np.bincount(flat, minlength=len(self.ids))
        self.starts = np.concatenate([[0], np.cumsum(counts)])
        self.weights = np.log((len(known) + 1) / counts)
        self.totals = np.bincount(owners, weights=self.weights[flat], minlength=len(known))

    def nearest(self, text: str) -> int:
        grams = [self.ids[gram] for gram in trigrams(text) if gram in self.ids]
        own = self.weights[grams].sum()
        shared = np.zeros(len(self.totals))
        for gram in grams:  # a text has a trigram once, so plain indexing adds it once
            shared[self.places[self.starts[gram] : self.starts[gram + 1]]] += self.weights[gram]
        return int(np.argmax(2 * shared / (own + self.totals)))


def trigrams(text: str) -> list[str]:
    """Different trigrams, in order; the edges of the text count as spaces."""
    padded = f"  {text} "
    return list(dict.fromkeys(padded[place : place + 3] for place in range(len(padded) - 2)))
