"""The unigram model of sub-words: pieces with probabilities, learned by expectation and pruning (Kudo 2018).

    p(word) = Σ over segmentations  Π p(piece)

Start from many frequent substrings; repeat: expected counts of every piece over all segmentations, new
probabilities from them, then drop the pieces that the others replace most cheaply; until the list fits.

The segmentations of all words are one graph of edges (from place, to place, piece), held in flat arrays; an edge's
place inside its word says when it is computed, so each step works on all words at once.

Knows words with counts. Refuses to know texts and ids.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

LONGEST_PIECE = 16
MOST_WORDS = 200_000  # the most frequent words are enough to learn from
SEEDS_PER_PIECE = 8
SHRINK = 0.75
ROUNDS = 2  # of expectation and maximisation between prunings
LEAST_COUNT = 0.5
CODE_POINTS = 1 << 21

Scores = tuple[float, ...]


@dataclass(frozen=True)
class Characters:
    """Texts end to end: code points, and for each which text it is of, and how many are left in it."""

    codes: np.ndarray
    owner: np.ndarray
    left: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray

    @classmethod
    def of(cls, texts: list[str]) -> Self:
        codes = np.frombuffer("".join(texts).encode("utf-32-le"), dtype="<u4").astype(np.int64)
        lengths = np.array([len(text) for text in texts], dtype=np.int64)
        ends = np.cumsum(lengths)
        owner = np.repeat(np.arange(len(texts)), lengths)
        return cls(codes, owner, ends[owner] - np.arange(len(codes)), ends - lengths, lengths)

    def longer(self, prefix: np.ndarray, at: np.ndarray, length: int) -> np.ndarray:
        """A number for each substring of this length, from the number of what comes before its last character;
        in the order of the alphabet."""
        return prefix * CODE_POINTS + self.codes[at + length - 1]


@dataclass(frozen=True)
class Lattice:
    """Edges of all words. Nodes of word w are first[w] … last[w]; every node is reached by single characters."""

    first: np.ndarray
    last: np.ndarray
    source: np.ndarray
    target: np.ndarray
    piece: np.ndarray
    word: np.ndarray
    place: np.ndarray  # of the source inside its word

    @classmethod
    def of(cls, words: list[str], pieces: list[str], proper: bool = False) -> Self:
        """All pieces inside the words; with `proper`, without the edge that is the whole word."""
        text = Characters.of(words)
        first = text.starts + np.arange(len(words))
        found = [np.empty((3, 0), dtype=np.int64)]
        at, prefix = np.arange(len(text.codes)), np.zeros(len(text.codes), dtype=np.int64)
        for length, (keys, numbers) in enumerate(prefixes(pieces), 1):
            at, prefix = at[text.left[at] >= length], prefix[text.left[at] >= length]
            key = text.longer(prefix, at, length)
            number = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
            known = keys[number] == key
            at, prefix = at[known], number[known]
            edge = (numbers[prefix] >= 0) & ~(proper & (text.lengths[text.owner[at]] == length))
            found.append(np.stack([at[edge], np.full(edge.sum(), length), numbers[prefix][edge]]))
        start, length_, piece = np.concatenate(found, axis=1)
        word = text.owner[start]
        source = start + word  # each word before it has one node more than characters
        return cls(first, first + text.lengths, source, source + length_, piece, word, source - first[word])

    def keep(self, pieces: np.ndarray, words: np.ndarray) -> Lattice:
        """Only the edges of these pieces, which get new numbers, inside these words, which keep theirs."""
        kept = pieces[self.piece] & words[self.word]
        renumbered = np.cumsum(pieces) - 1
        edges = (self.source[kept], self.target[kept], renumbered[self.piece[kept]], self.word[kept], self.place[kept])
        return Lattice(self.first, self.last, *edges)

    @cached_property
    def by_place(self) -> list[np.ndarray]:
        """Edges that start at the same place of their words: their targets are all different."""
        return groups(self.place)

    @cached_property
    def by_end(self) -> list[np.ndarray]:
        """Edges that end at the same place of their words: their sources are all different."""
        return groups(self.place + self.target - self.source)

    def forward(self, score: np.ndarray, add: np.ufunc) -> np.ndarray:
        """Log-probability of all ways (add = logaddexp), or of the best way (maximum), to each node."""
        reached = np.full(self.last[-1] + 1, -np.inf)
        reached[self.first] = 0.0
        for edges in self.by_place:
            target = self.target[edges]
            reached[target] = add(reached[target], reached[self.source[edges]] + score[self.piece[edges]])
        return reached

    def backward(self, score: np.ndarray) -> np.ndarray:
        """Log-probability of all ways from each node to the end of its word."""
        left = np.full(self.last[-1] + 1, -np.inf)
        left[self.last] = 0.0
        for edges in reversed(self.by_end):
            source = self.source[edges]
            left[source] = np.logaddexp(left[source], left[self.target[edges]] + score[self.piece[edges]])
        return left

    def best(self, score: np.ndarray) -> np.ndarray:
        """Log-probability of the best way through each word; -inf where there is none."""
        return self.forward(score, np.maximum)[self.last]

    def expected(self, score: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """How often each piece is used, over all segmentations of all words."""
        before, after = self.forward(score, np.logaddexp), self.backward(score)
        path = before[self.source] + score[self.piece] + after[self.target] - before[self.last][self.word]
        return np.bincount(self.piece, weights=np.exp(path) * counts[self.word], minlength=len(score))


def prefixes(pieces: list[str]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """For each length, the sorted numbers of the pieces' beginnings of that length, and which piece each is, or -1."""
    text = Characters.of(pieces)
    which, prefix = np.arange(len(pieces)), np.zeros(len(pieces), dtype=np.int64)
    for length in range(1, int(text.lengths.max(initial=0)) + 1):
        which, prefix = which[text.lengths[which] >= length], prefix[text.lengths[which] >= length]
        keys, prefix = np.unique(text.longer(prefix, text.starts[which], length), return_inverse=True)
        numbers = np.full(len(keys), -1)
        whole = text.lengths[which] == length
        numbers[prefix[whole]] = which[whole]
        yield keys, numbers


def groups(values: np.ndarray) -> list[np.ndarray]:
    """Indices of equal values, in the order of the values."""
    order = np.argsort(values.astype(np.int16), kind="stable")  # places are small, and two bytes sort fast
    return np.split(order, np.flatnonzero(np.diff(values[order])) + 1) if len(order) else []


def learn_unigram(runs: dict[str, int], letters: tuple[str, ...], room: int) -> tuple[tuple[str, ...], Scores]:
    """Pieces and their log-probabilities: at most `room`, the letters first, the others by falling score."""
    if not runs:
        return letters, (round(-math.log(len(letters)), 6),) * len(letters) if letters else ()
    words = sorted(sorted(runs, key=lambda run: (-runs[run], run))[:MOST_WORDS])
    pieces = seeds({word: runs[word] for word in words}, letters, SEEDS_PER_PIECE * room)
    score = learn_scores(words, np.array([runs[word] for word in words], dtype=np.float64), pieces, room)
    order = sorted(score, key=lambda piece: (len(piece) > 1, 0.0 if len(piece) == 1 else -score[piece], piece))
    return tuple(order), tuple(score[piece] for piece in order)


def seeds(runs: dict[str, int], letters: tuple[str, ...], most: int) -> list[str]:
    """The letters, and the substrings seen at least twice that cover the most text."""
    words = list(runs)
    text, counts = Characters.of(words), np.array([runs[word] for word in words], dtype=np.float64)
    found = []
    at, prefix = np.arange(len(text.codes)), np.zeros(len(text.codes), dtype=np.int64)
    for length in range(1, LONGEST_PIECE + 1):
        at, prefix = at[text.left[at] >= length], prefix[text.left[at] >= length]
        keys, first, prefix = np.unique(text.longer(prefix, at, length), return_index=True, return_inverse=True)
        seen = np.bincount(prefix, weights=counts[text.owner[at]], minlength=len(keys))
        if length > 1:
            frequent = np.flatnonzero(seen >= 2)
            found.append(np.stack([at[first[frequent]], np.full(len(frequent), length), -seen[frequent] * length]))
        again = seen[prefix] >= 2
        at, prefix = at[again], prefix[again]
    start, size, cover = np.concatenate(found, axis=1).astype(np.int64)
    joined = "".join(words)
    best = np.argsort(cover, kind="stable")[:most]  # among equals the shorter first, then by the alphabet
    return [*letters, *(joined[start[i] : start[i] + size[i]] for i in best.tolist())]


def learn_scores(words: list[str], counts: np.ndarray, pieces: list[str], room: int) -> dict[str, float]:
    """Expectation, maximisation and pruning until `room` pieces are left; rounded, so that last bits do not matter."""
    lattice, inner = Lattice.of(words, pieces), Lattice.of(pieces, pieces, proper=True)
    alive = np.arange(len(pieces))
    score = log_share(np.ones(len(pieces)))
    while True:
        for _ in range(ROUNDS):
            used = lattice.expected(score, counts)
            score = log_share(used)
        if len(alive) <= room:
            return {pieces[piece]: round(float(value), 6) for piece, value in zip(alive, score, strict=True)}
        keep = worth_keeping(used, score, inner.best(score)[alive], max(room, int(len(alive) * SHRINK)))
        alive, score = alive[keep], log_share(used[keep])
        lattice = lattice.keep(keep, np.ones(len(words), dtype=bool))
        inner = inner.keep(keep, np.isin(np.arange(len(pieces)), alive))


def worth_keeping(used: np.ndarray, score: np.ndarray, without: np.ndarray, wanted: int) -> np.ndarray:
    """True for the pieces whose absence would cost the most likelihood; single characters cost infinitely much."""
    loss = np.maximum(used, LEAST_COUNT) * (score - without)
    keep = np.zeros(len(used), dtype=bool)
    keep[np.argsort(-loss, kind="stable")[:wanted]] = True
    return keep


def log_share(used: np.ndarray) -> np.ndarray:
    used = np.maximum(used, LEAST_COUNT)
    return np.log(used / used.sum())
