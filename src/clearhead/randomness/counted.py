"""Counted randomness without torch: keys, generators and uniform numbers.

    key(seed, purpose, a, b, …)  →  64 bits        (SplitMix64 over the words; Steele, Lea & Flood 2014)

The same arguments give the same number on every machine, in every process, in any order of asking. So a
resumed run needs integers, not the state of a generator. The masks of dropout are made the same way on
tensors, in `nn/dropout.py`, from the keys made here.

Knows integers and names. Refuses to know torch, clocks, ranks and micro-batches.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

MASK64 = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
MIX_1 = 0xBF58476D1CE4E5B9
MIX_2 = 0x94D049BB133111EB


def mix(word: int) -> int:
    """SplitMix64's finaliser: every input bit moves every output bit."""
    word = ((word ^ (word >> 30)) * MIX_1) & MASK64
    word = ((word ^ (word >> 27)) * MIX_2) & MASK64
    return word ^ (word >> 31)


@lru_cache(maxsize=4096)
def name_word(name: str) -> int:
    """64 bits for a name; the same on every machine, unlike Python's own hash."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")


def key(seed: int, purpose: str, *counters: int) -> int:
    """64 bits for one draw: the purpose is a name ("dropout", "order"), the counters say which one."""
    word = mix((seed + GOLDEN) & MASK64)
    word = mix(word ^ name_word(purpose))
    for counter in counters:
        word = mix((word + (counter + 1) * GOLDEN) & MASK64)
    return word


def numpy_generator(seed: int, purpose: str, *counters: int) -> np.random.Generator:
    """A NumPy generator that starts at this key: for draws of many numbers at once."""
    return np.random.Generator(np.random.Philox(key=key(seed, purpose, *counters)))


def permutation(n: int, seed: int, purpose: str, *counters: int) -> np.ndarray:
    """A shuffled 0 … n-1."""
    return numpy_generator(seed, purpose, *counters).permutation(n)


def mix_array(words: np.ndarray) -> np.ndarray:
    """`mix` on an array of uint64, for many keys at once."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(MIX_1)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(MIX_2)
    return words ^ (words >> np.uint64(31))


def uniform(keys: np.ndarray) -> np.ndarray:
    """uint64 keys → float64 in [0, 1): the upper 53 bits."""
    return (keys >> np.uint64(11)).astype(np.float64) * 2.0**-53


@dataclass(frozen=True)
class Site:
    """Where a draw happens: which run, what for, which step. Places of samples are counted below it."""

    seed: int
    purpose: str
    step: int

    def key(self, *counters: int) -> int:
        return key(self.seed, self.purpose, self.step, *counters)
