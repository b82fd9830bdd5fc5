"""Tasks made of nothing but rules: for tests of learning, for the small truths, and for measuring scale.

Each task is a function of (n, seed, …) → n pairs of texts of words between spaces. The i-th pair depends on the seed
and the task only, so two seeds give a training set and a test set; short inputs repeat between them, long ones do not.

Knows rules and counted chance. Refuses to know models, tokenizers and files.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

import numpy as np

from clearhead.errors import UsageError
from clearhead.randomness import numpy_generator

Pair = tuple[str, str]

BLOCK = 4096
ALPHABET = "abcdefghijklmnopqrstuvwxyz"
CONSONANTS = "bdfgklmnprstvz"
VOWELS = "aeiou"
NOUNS = ("dog", "key", "teacher", "boat", "painter", "apple", "cousin", "river", "singer", "clock")
PLACES = ("near", "behind", "above", "beside", "under")


def copy(n: int, seed: int, length: int = 10, symbols: int = 26) -> list[Pair]:
    """Say it again. Tests: attention that reads its own position."""
    return [(text, text) for text in _strings(n, seed, "copy", length, symbols)]


def reverse(n: int, seed: int, length: int = 10, symbols: int = 26) -> list[Pair]:
    """Say it backwards. Tests: attention by position, counted from the other end."""
    return [(text, " ".join(reversed(text.split()))) for text in _strings(n, seed, "reverse", length, symbols)]


def sort(n: int, seed: int, length: int = 10, symbols: int = 26) -> list[Pair]:
    """Say it in order. Tests: attention by content, and counting of repeats."""
    return [(text, " ".join(sorted(text.split()))) for text in _strings(n, seed, "sort", length, symbols)]


def add(n: int, seed: int, digits: int = 3) -> list[Pair]:
    """ "3 4 7 + 5 2" → "3 9 9". Tests: lining up two numbers of different lengths, and carrying."""
    _at_least(digits, 1, "digits")
    if digits > 18:
        raise UsageError(f"numbers of {digits} digits are too long", field="digits", hint="18 or fewer")
    generator = numpy_generator(seed, "synthetic add")
    ends = 10 ** generator.integers(1, digits + 1, size=(n, 2))
    numbers = generator.integers(0, ends).tolist()
    return [(f"{_spell(a)} + {_spell(b)}", _spell(a + b)) for a, b in numbers]


def recall(n: int, seed: int, entries: int = 8, distance: int | None = None, symbols: int = 26) -> list[Pair]:
    """ "k3 v7 k1 v2 ? k1" → "v2". Tests: looking a value up by its key, anywhere or at a fixed distance.

    The asked entry is the `distance`-th from the end: 1 is the last, `entries` the first, None is anywhere.
    """
    _at_least(entries, 1, "entries")
    _at_least(symbols, entries, "symbols")
    if distance is not None and not 1 <= distance <= entries:
        raise UsageError(f"distance {distance} among {entries} entries", field="distance", hint=f"1 to {entries}")
    generator = numpy_generator(seed, "synthetic recall")
    keys = generator.permuted(np.tile(np.arange(symbols), (n, 1)), axis=1)[:, :entries]
    values = generator.integers(0, symbols, size=(n, entries))
    asked = generator.integers(0, entries, size=n) if distance is None else np.full(n, entries - distance)
    return [_looked_up(*row) for row in zip(keys.tolist(), values.tolist(), asked.tolist(), strict=True)]


def parity(n: int, seed: int, length: int = 10) -> list[Pair]:
    """ "1 0 1 1" → "odd". Tests: a function of every symbol at once, which no single attention head can read off."""
    texts = _strings(n, seed, "parity", length, 2, letters="01")
    return [(text, "odd" if text.count("1") % 2 else "even") for text in texts]


def agreement(n: int, seed: int, distance: int = 2) -> list[Pair]:
    """ "the keys near the boat" → "are". Tests: the verb's number comes from the first noun, past `distance` others."""
    _at_least(distance, 0, "distance")
    generator = numpy_generator(seed, "synthetic agreement")
    nouns = generator.integers(0, len(NOUNS), size=(n, distance + 1)).tolist()
    plural = generator.integers(0, 2, size=(n, distance + 1)).tolist()
    places = generator.integers(0, len(PLACES), size=(n, distance)).tolist()
    return [_sentence(*row) for row in zip(nouns, plural, places, strict=True)]


def pairs(n: int, seed: int, vocabulary: int = 30_000, mean_length: int = 20) -> Iterator[Pair]:
    """n sentence pairs with words as unequal as in language (Zipf's law), without holding more than a block of them.

    The target says the source's words in another spelling, backwards.
    """
    _at_least(vocabulary, 1, "vocabulary")
    _at_least(mean_length, 1, "mean_length")
    blocks = (_block(seed, block, vocabulary, mean_length) for block in range(-(-n // BLOCK)))
    return islice((pair for block in blocks for pair in block), n)


def _block(seed: int, block: int, vocabulary: int, mean_length: int) -> Iterator[Pair]:
    """The block's pairs. Lengths are Poisson; the word of rank r has a probability of about 1 / r."""
    generator = numpy_generator(seed, "synthetic pairs", block)
    lengths = 1 + generator.poisson(mean_length - 1, size=BLOCK)
    ranks = (vocabulary + 1) ** generator.random(int(lengths.sum()))
    places = np.minimum(ranks.astype(np.int64), vocabulary) - 1
    sources, targets = (spelling[places].tolist() for spelling in _spellings(vocabulary))
    end = 0
    for length in lengths.tolist():
        start, end = end, end + length
        yield " ".join(sources[start:end]), " ".join(reversed(targets[start:end]))


@lru_cache(maxsize=2)
def _spellings(vocabulary: int) -> tuple[np.ndarray, np.ndarray]:
    """Every word twice: the source spells syllables as consonant and vowel, the target as vowel and consonant."""
    syllables = [consonant + vowel for consonant in CONSONANTS for vowel in VOWELS]
    sources = np.array([_word(rank, syllables) for rank in range(vocabulary)], dtype=object)
    targets = np.array([_word(rank, [one[::-1] for one in syllables]) for rank in range(vocabulary)], dtype=object)
    return sources, targets


def _word(rank: int, syllables: list[str]) -> str:
    """A number written in syllables: frequent words are short, and no two are alike."""
    rest, last = divmod(rank, len(syllables))
    return (_word(rest - 1, syllables) if rest else "") + syllables[last]


def _strings(n: int, seed: int, task: str, length: int, symbols: int, letters: str = ALPHABET) -> list[str]:
    """n texts of `length` symbols, all equally likely."""
    _at_least(length, 1, "length")
    _at_least(symbols, 2, "symbols")
    if symbols > len(letters):
        raise UsageError(f"{symbols} symbols", field="symbols", hint=f"there are {len(letters)}")
    drawn = numpy_generator(seed, f"synthetic {task}").integers(0, symbols, size=(n, length))
    return [" ".join(letters[symbol] for symbol in row) for row in drawn.tolist()]


def _looked_up(keys: list[int], values: list[int], asked: int) -> Pair:
    told = " ".join(f"k{key} v{value}" for key, value in zip(keys, values, strict=True))
    return f"{told} ? k{keys[asked]}", f"v{values[asked]}"


def _sentence(nouns: list[int], plural: list[int], places: list[int]) -> Pair:
    first, *others = [f"the {NOUNS[noun]}{'s' if many else ''}" for noun, many in zip(nouns, plural, strict=True)]
    tail = [f"{PLACES[place]} {other}" for place, other in zip(places, others, strict=True)]
    return " ".join([first, *tail]), "are" if plural[0] else "is"


def _spell(number: int) -> str:
    return " ".join(str(number))


def _at_least(value: int, least: int, field: str) -> None:
    if value < least:
        raise UsageError(f"{field} is {value}", field=field, hint=f"{least} or more")
