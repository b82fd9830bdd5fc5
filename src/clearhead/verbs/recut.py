"""BPE-dropout in training: the store holds words, and every epoch cuts them into tokens anew.

The cuts of each word type are drawn once (text/sampling.py); which one a word gets in an epoch is counted, so a
resumed run sees what an unbroken one would have seen. A row cut into more tokens than the model reads at once is cut as
it would be without dropout.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from clearhead.config import Experiment
from clearhead.data.store import Side, Store, open_store
from clearhead.data.store_builder import Coding, build_store
from clearhead.errors import DataError
from clearhead.files import write_atomic
from clearhead.text.sampling import SegmentationTable
from clearhead.text.tokenizer import Tokenizer
from clearhead.verbs.tokenizers import Tokenizers

MOST_WORD_TYPES = 2**31


@dataclass(frozen=True)
class Recut:
    """Gives a row's ids as cut in this epoch."""

    store: Store
    drawn: tuple[SegmentationTable, SegmentationTable]
    """Of the source and of the target."""
    plain: tuple[SegmentationTable, SegmentationTable]
    """The same without dropout: for a row that would be cut into more tokens than the model reads."""
    seed: int
    longest: int

    def ids(self, side: Side, row: int, epoch: int) -> np.ndarray:
        number, words = ("source", "target").index(side), self.store.row(side, row)
        found = self.drawn[number].assemble(words, self.seed, epoch, row, side=number)
        return found if len(found) <= self.longest else self.plain[number].assemble(words, self.seed, epoch, row)


class WordCoder:
    """Texts as numbers of their word types; new types get new numbers."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.places: dict[str, int] = {}
        self.sizes: list[int] = []

    def encode(self, texts: list[str]) -> list[list[int]]:
        return [[self.place(word) for word in self.tokenizer.words(text)] for text in texts]

    def place(self, word: str) -> int:
        found = self.places.setdefault(word, len(self.places))
        if found == len(self.sizes):
            self.sizes.append(len(self.tokenizer.word_ids(word)))
        return found

    def count(self, rows: Sequence[Sequence[int]]) -> list[int]:
        """Tokens each row makes without dropout: what batches are planned by."""
        return [sum(self.sizes[word] for word in row) for row in rows]

    @property
    def coding(self) -> Coding:
        return Coding(self.encode, MOST_WORD_TYPES, self.count)


def word_store(
    pairs: Callable[[], Iterable[tuple[str, str]]],
    tokenizers: Tokenizers,
    experiment: Experiment,
    folder: Path,
    mark: str,
) -> tuple[Store, Recut]:
    """The store of word numbers, built once, and the tables that cut them."""
    listing = folder.with_name(f"{folder.name}-words.json")
    try:
        words = json.loads(listing.read_text(encoding="utf-8"))
        store = open_store(folder, mark)
    except (DataError, OSError, ValueError):
        source, target = WordCoder(tokenizers.source), WordCoder(tokenizers.target)
        limit = experiment.longest
        store = build_store(pairs(), source.coding, target.coding, folder, fingerprint=mark, max_tokens=limit)
        words = [list(source.places), list(target.places)]
        write_atomic(listing, json.dumps(words).encode())
    text, seed = experiment.text, experiment.train.seed

    def tables(dropout: float, entries: int) -> tuple[SegmentationTable, SegmentationTable]:
        build = partial(SegmentationTable.build, seed=seed, dropout=dropout, entries=entries)
        return build(tokenizers.source, words[0]), build(tokenizers.target, words[1])

    drawn, plain = tables(text.bpe_dropout, text.bpe_dropout_entries), tables(0.0, 1)
    return store, Recut(store, drawn, plain, seed, experiment.model.max_len - 1)
