"""Learn a tokenizer from texts: count units, choose the alphabet, then words, BPE merges or unigram pieces.

Equal texts and settings give an equal vocabulary, in any order of the texts and on any number of threads: the
library's BPE trainer adds whole numbers and breaks ties by the characters' order; the unigram trainer is ours,
because the library's adds floating-point numbers in an order that changes from run to run.

With byte fallback a character, or a word, seen only once is left to the bytes: so the bytes are learned too.

Knows counts. Refuses to know files, languages and models.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby

from tokenizers import Tokenizer as LibraryTokenizer
from tokenizers import models, pre_tokenizers, trainers

from clearhead.config import TextSettings
from clearhead.errors import DataError, UsageError
from clearhead.text.normalise import normalise
from clearhead.text.parts import LONGEST_PIECE, Parts, meant_settings
from clearhead.text.splitting import LONGEST, mark, splitter
from clearhead.text.unigram import learn_unigram
from clearhead.text.vocabulary import SPECIAL

SEPARATOR = "\n"  # never inside a unit of more than one character
AT_ONCE = 1000  # repeated units per string handed to the library


def learn_parts(texts: Iterable[str], settings: TextSettings) -> Parts:
    """The parts of a tokenizer for these texts."""
    counts = count_units(texts, settings)
    if not counts:
        raise DataError("there is no text to learn a tokenizer from", hint="check that the file has filled columns")
    room = settings.vocab_size - len(SPECIAL) - 256 * settings.byte_fallback
    kept = meant_settings(settings)
    if settings.level == "subword":
        return learn_subwords(counts, kept, room)
    if settings.level == "character":
        return Parts(kept, alphabet(counts, kept, room))
    return Parts(kept, frequent_units(counts, kept, room))


def count_units(texts: Iterable[str], settings: TextSettings) -> Counter[str]:
    if isinstance(texts, str):
        raise UsageError("a tokenizer learns from several texts, not from one string", hint="put it into a list")
    counts: Counter[str] = Counter()
    units = splitter(settings.level)
    for number, text in enumerate(texts, 1):
        try:
            counts.update(units(mark(normalise(text, settings), settings.level)))
        except DataError as error:
            raise DataError(f"text {number}: {error.message}", hint=error.hint) from None
    return counts


def least_count(settings: TextSettings) -> int:
    return 2 if settings.byte_fallback else 1


def alphabet(counts: Counter[str], settings: TextSettings, room: int) -> tuple[str, ...]:
    """The most frequent characters that find room, in the order of their code points."""
    characters: Counter[str] = Counter()
    for unit, count in counts.items():
        for character in unit:
            characters[character] += count
    frequent = [character for character, count in characters.items() if count >= least_count(settings)]
    frequent.sort(key=lambda character: (-characters[character], character))
    return tuple(sorted(frequent[:room]))


def frequent_units(counts: Counter[str], settings: TextSettings, room: int) -> tuple[str, ...]:
    """The most frequent words or sentences that find room; the single space always belongs to the words."""
    words = settings.level == "word"
    least = least_count(settings) if words else 1
    first = (" ",) if words else ()
    units = [
        unit
        for unit, count in counts.items()
        if count >= least and unit not in first and len(unit.encode()) <= LONGEST_PIECE
    ]
    units.sort(key=lambda unit: (-counts[unit], unit))
    return (*first, *units[: room - len(first)])


def learn_subwords(counts: Counter[str], settings: TextSettings, room: int) -> Parts:
    """Characters get at most half of the room when what is left out can be spelled in bytes."""
    letters = alphabet(counts, settings, room // 2 if settings.byte_fallback else room)
    runs = known_runs(counts, frozenset(letters))
    if settings.algorithm == "unigram":
        pieces, scores = learn_unigram(runs, letters, room)
        return Parts(settings, pieces, scores=scores)
    return learn_bpe(runs, letters, settings, room)


def known_runs(counts: Counter[str], letters: frozenset[str]) -> dict[str, int]:
    """Runs of known characters inside the units, longer than one, with their counts."""
    runs: Counter[str] = Counter()
    for unit, count in counts.items():
        if letters.issuperset(unit):
            runs[unit] += count
        else:
            for known, run in groupby(unit, letters.__contains__):
                if known:
                    runs["".join(run)] += count
    return {run: count for run, count in runs.items() if len(run) > 1}


def learn_bpe(runs: dict[str, int], letters: tuple[str, ...], settings: TextSettings, room: int) -> Parts:
    """Byte-pair encoding (Sennrich, Haddow & Birch 2016) by the library's trainer."""
    used = {character for run in runs for character in run}
    learner = LibraryTokenizer(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.CharDelimiterSplit(SEPARATOR)
    trainer = trainers.BpeTrainer(
        vocab_size=len(used) + room - len(letters),
        min_frequency=2,
        max_token_length=LONGEST,
        show_progress=False,
        special_tokens=[],
    )
    learner.train_from_iterator(repeated(runs), trainer)
    learned = json.loads(learner.to_str())["model"]
    merged = sorted((piece for piece in learned["vocab"] if len(piece) > 1), key=learned["vocab"].__getitem__)
    parts = Parts(settings, (*letters, *merged))
    ids = parts.vocabulary.ids
    return Parts(settings, parts.pieces, tuple((ids[left], ids[right]) for left, right in learned["merges"]))


def repeated(runs: dict[str, int]) -> Iterator[str]:
    """Each run as often as it was counted: the library's trainer counts for itself."""
    for run, count in runs.items():
        whole, rest = divmod(count, AT_ONCE)
        block = SEPARATOR.join([run] * AT_ONCE)
        for _ in range(whole):
            yield block
        if rest:
            yield SEPARATOR.join([run] * rest)
