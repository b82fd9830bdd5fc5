"""Counting for the data report, block by block.

Rules that drop look at pairs as the gate will have cleaned them, the others at pairs as they are.
"""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np

from clearhead.data.block import Block, Standards
from clearhead.data.duplicates import Repeats
from clearhead.data.findings import KINDS, Kind
from clearhead.data.gate import clean_pair
from clearhead.data.lengths import LengthTally
from clearhead.data.readers.pairs import Pair

EXAMPLES = 3

DUPLICATE = Kind("duplicate", "the same pair stands there before", "note", "keep", lambda _: ())
VARIANT = Kind("several targets", "its source stands there with another target, too", "note", "keep", lambda _: ())


class Tally:
    def __init__(self, standards: Standards) -> None:
        self.standards = standards
        self.kinds = (*KINDS, DUPLICATE, VARIANT)
        self.read = 0
        self.dropped: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.examples: defaultdict[str, list[Pair]] = defaultdict(list)
        self.characters = LengthTally(), LengthTally()
        self.words = LengthTally(), LengthTally()
        self.repeats = Repeats()

    def add(self, pairs: list[Pair]) -> None:
        block = Block([pair.source for pair in pairs], [pair.target for pair in pairs], self.standards)
        cleaned = self.clean(pairs, block)
        reasons: dict[int, str] = {}
        for kind in KINDS:
            hits = [int(i) for i in kind.rule(cleaned if kind.verdict == "drop" else block)]
            self.take(kind, hits, pairs)
            if kind.verdict == "drop":
                reasons = {**dict.fromkeys(hits, kind.name), **reasons}
        self.dropped.update(reasons.values())
        self.read += len(pairs)
        self.measure(block)
        duplicates, variants = self.repeats.add(block.sources, block.targets)
        self.remember(DUPLICATE, duplicates, pairs)
        self.remember(VARIANT, variants, pairs)

    def clean(self, pairs: list[Pair], block: Block) -> Block:
        """The block as the gate sees it; the very same when there is nothing to clean."""
        if not block.odd:
            return block
        cleaned = [clean_pair(pair) for pair in pairs]
        return Block([pair.source for pair in cleaned], [pair.target for pair in cleaned], self.standards)

    def take(self, kind: Kind, hits: list[int], pairs: list[Pair]) -> None:
        if hits:
            self.counts[kind.name] += len(hits)
            self.remember(kind, hits, pairs)

    def remember(self, kind: Kind, hits: list[int], pairs: list[Pair]) -> None:
        wanted = EXAMPLES - len(self.examples[kind.name])
        self.examples[kind.name] += [pairs[i] for i in hits[:wanted]]

    def measure(self, block: Block) -> None:
        for side, texts in enumerate((block.sources, block.targets)):
            self.characters[side].add(block.lengths[side])
            self.words[side].add(np.fromiter(map(len, map(str.split, texts)), np.int64, len(texts)))

    def count_repeats(self) -> None:
        self.counts[DUPLICATE.name], self.counts[VARIANT.name] = self.repeats.counts()
