"""How often pairs repeat, and sources with other targets, at 8 bytes per pair.

A pair becomes one 64-bit number: 40 bits of its source's hash, 24 bits of the whole pair's. Sorted at the end, equal
numbers are duplicates, and equal upper parts the same source. Among ten million pairs, about 50 sources are taken for
another by chance (n² / 2⁴¹), and practically no pair; it all takes about 120 MB then: the buffer is sorted in place.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

SOURCE_BITS = np.uint64(0xFFFF_FFFF_FF00_0000)
SLICE = 1 << 20
EARLY = 50_000  # pairs remembered by their place, to give examples


class Repeats:
    def __init__(self) -> None:
        self.buffer: NDArray[np.uint64] = np.empty(SLICE, np.uint64)
        self.count = 0
        self.early_pairs: set[int] = set()
        self.early_sources: set[int] = set()

    def add(self, sources: Sequence[str], targets: Sequence[str]) -> tuple[list[int], list[int]]:
        """Take in a block; which of its pairs are seen to repeat, and which have a new target for a known source.

        Only the first pairs are remembered for that answer: it is for examples, `counts` is for numbers.
        """
        keys = make_keys(sources, targets)
        self.reserve(self.count + len(keys))
        self.buffer[self.count : self.count + len(keys)] = keys
        self.count += len(keys)
        return self.recognise(keys) if self.count <= EARLY else ([], [])

    def reserve(self, size: int) -> None:
        if size > len(self.buffer):
            self.buffer.resize(max(size, len(self.buffer) * 5 // 4), refcheck=False)

    def recognise(self, keys: NDArray[np.uint64]) -> tuple[list[int], list[int]]:
        duplicates: list[int] = []
        variants: list[int] = []
        for i, (key, source) in enumerate(zip(keys.tolist(), (keys & SOURCE_BITS).tolist(), strict=True)):
            if key in self.early_pairs:
                duplicates.append(i)
            elif source in self.early_sources:
                variants.append(i)
            self.early_pairs.add(key)
            self.early_sources.add(source)
        return duplicates, variants

    def counts(self) -> tuple[int, int]:
        """Pairs that repeat an earlier one; different pairs whose source also stands with another target."""
        keys = self.buffer[: self.count]
        keys.sort()
        pairs = sources = min(self.count, 1)
        for start in range(1, self.count, SLICE):
            here, before = keys[start : start + SLICE], keys[start - 1 : start - 1 + SLICE]
            before = before[: len(here)]
            pairs += int(np.count_nonzero(here != before))
            sources += int(np.count_nonzero((here & SOURCE_BITS) != (before & SOURCE_BITS)))
        return self.count - pairs, pairs - sources


def make_keys(sources: Sequence[str], targets: Sequence[str]) -> NDArray[np.uint64]:
    size = len(sources)
    source = np.fromiter(map(hash, sources), np.int64, size).view(np.uint64)
    pair = np.fromiter(map(hash, zip(sources, targets, strict=True)), np.int64, size).view(np.uint64)
    return (source & SOURCE_BITS) | (pair >> np.uint64(40))
