"""BPE-dropout (Provilkov, Emelianenko & Voita 2020): the same word cut in varying ways while training.

    a step of BPE:   of all merges possible now, each is left out with probability p; the best of the rest is made;
                     the word is done when none is left

Every word type gets a fixed number of segmentations before training, in one flat table. An epoch then picks one per
word of a sentence. Both follow from counters (seed and word; seed, epoch, sample and position), so nothing has to be
remembered to resume, and neither the order of the words nor of the batches matters.

Going down the possible merges from the best, the number left out before the first that stays is geometric: one draw
per step is enough, log(u) / log(p) rounded down.

Knows ids and merges. Refuses to know batches, clocks and epochs' lengths.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from clearhead.errors import UsageError
from clearhead.randomness import key, uniform
from clearhead.randomness.counted import GOLDEN, mix_array, name_word
from clearhead.text.tokenizer import Tokenizer

CUT, PICK = "bpe-dropout cut", "bpe-dropout pick"
Symbols = tuple[int, ...]


@dataclass(frozen=True)
class SegmentationTable:
    """`entries` segmentations of each word, end to end in `flat`; segmentation j of word i starts at
    `offsets[i * entries + j]`."""

    words: tuple[str, ...]
    entries: int
    flat: np.ndarray
    offsets: np.ndarray

    @classmethod
    def build(
        cls, tokenizer: Tokenizer, words: Sequence[str], seed: int, dropout: float, entries: int
    ) -> SegmentationTable:
        """Draw the segmentations. Without dropout all entries of a word are its ordinary encoding."""
        draw = segmentations(tokenizer, seed, dropout, entries)
        flat: list[int] = []
        lengths: list[int] = []
        for word in words:
            for symbols in draw(word):
                flat += symbols
                lengths.append(len(symbols))
        offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
        return cls(tuple(words), entries, np.array(flat, dtype=np.int32), offsets)

    def ids(self, word_index: int, entry: int) -> np.ndarray:
        if not (0 <= word_index < len(self.words) and 0 <= entry < self.entries):
            raise UsageError(f"no entry {entry} of word {word_index} in {len(self.words)} words × {self.entries}")
        slot = word_index * self.entries + entry
        return self.flat[self.offsets[slot] : self.offsets[slot + 1]]

    def assemble(self, word_indices: np.ndarray, seed: int, epoch: int, sample: int, side: int = 0) -> np.ndarray:
        """The ids of one sentence as cut in this epoch: for every word one of its entries. `side` tells the source
        of a pair from its target."""
        keys = np.uint64(key(seed, PICK, epoch, sample, side)) + counter_steps(len(word_indices))
        entry = ((mix_array(keys) >> np.uint64(32)) * np.uint64(self.entries)) >> np.uint64(32)
        return self.gather(word_indices.astype(np.int64) * self.entries + entry.astype(np.int64))

    def gather(self, slots: np.ndarray) -> np.ndarray:
        """The segmentations in these places of the table, end to end."""
        starts = self.offsets[slots]
        lengths = self.offsets[slots + 1] - starts
        ends = np.cumsum(lengths)
        return self.flat[np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + lengths, lengths)]


def counter_steps(count: int) -> np.ndarray:
    """What `randomness.key` adds for the counters 0, 1, …, as an array."""
    return np.arange(1, count + 1, dtype=np.uint64) * np.uint64(GOLDEN)


def segmentations(tokenizer: Tokenizer, seed: int, dropout: float, entries: int) -> Callable[[str], list[Symbols]]:
    """The function that draws a word's segmentations."""
    if not (0.0 <= dropout < 1.0 and entries >= 1):
        raise UsageError(f"BPE-dropout needs 0 ≤ p < 1 and at least one entry, not p = {dropout} and {entries}")
    if dropout == 0.0:
        return lambda word: [tokenizer.word_ids(word)] * entries
    if (tokenizer.level, tokenizer.settings.algorithm) != ("subword", "bpe"):
        raise UsageError(
            "BPE-dropout needs sub-words learned by BPE",
            field="text.bpe_dropout",
            hint='set text.level = "subword" and text.algorithm = "bpe", or text.bpe_dropout = 0',
        )
    cutter = Cutter(tokenizer)

    def draw(word: str) -> list[Symbols]:
        symbols = cutter.symbols(word)
        skips = drawn_skips(key(seed, CUT, name_word(word)), entries, len(symbols), dropout)
        return cutter.cut(symbols, skips)

    return draw


def drawn_skips(word_key: int, entries: int, steps: int, dropout: float) -> list[list[int]]:
    """How many merges are left out before one stays: for each entry, for each step."""
    rows = mix_array(np.uint64(word_key) + counter_steps(entries))
    draws = uniform(mix_array(rows[:, None] + counter_steps(steps)[None, :]))
    skips: list[list[int]] = np.floor(np.log1p(-draws) / np.log(dropout)).astype(np.int64).tolist()
    return skips


class Cutter:
    """BPE one merge at a time, in Python, with some merges left out. Without omissions it is the library's BPE."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        parts, vocabulary = tokenizer.parts, tokenizer.vocabulary
        self.vocabulary = vocabulary
        self.ranks = {pair: rank for rank, pair in enumerate(parts.merges)}
        first = vocabulary.first_piece
        texts = [parts.pieces[left - first] + parts.pieces[right - first] for left, right in parts.merges]
        self.merged = [vocabulary.ids[text] for text in texts]

    def symbols(self, word: str) -> Symbols:
        """The word before any merge: its characters, or the bytes of those that are no piece."""
        ids = self.vocabulary.ids
        found: list[int] = []
        for character in word:
            found += [ids[character]] if character in ids else self.vocabulary.lacking(character)
        return tuple(found)

    def cut(self, symbols: Symbols, skips: list[list[int]]) -> list[Symbols]:
        """One segmentation per row of skips. What is possible at each stage is remembered for the other rows."""
        stages: dict[Symbols, list[tuple[int, int]]] = {}
        results = []
        for row in skips:
            now = symbols
            for skip in row:
                possible = stages.get(now)
                if possible is None:
                    possible = stages[now] = self.possible(now)
                if skip >= len(possible):
                    break
                rank, place = possible[skip]
                now = (*now[:place], self.merged[rank], *now[place + 2 :])
            results.append(now)
        return results

    def possible(self, symbols: Symbols) -> list[tuple[int, int]]:
        """The merges possible now, (rank, place), best first, leftmost first among equals."""
        ranks = self.ranks
        return sorted((ranks[pair], place) for place, pair in enumerate(pairwise(symbols)) if pair in ranks)
