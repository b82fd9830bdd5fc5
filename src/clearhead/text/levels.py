"""From one unit of text to ids, at each of the four levels. Joined over the units of a text, this is encoding.

    sentence, character   the unit is a piece, or it is lacking
    word                  the same, but a word that is known only without its space gets the space as its own token
    subword               runs of known characters go through BPE or the unigram model (Rust); others are lacking

A character that no piece spells never takes part in a merge, so cutting there first changes nothing.

Knows one unit at a time. Refuses to know how texts are cut into units and where the pieces come from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from tokenizers import models

from clearhead.text.parts import Parts
from clearhead.text.vocabulary import Vocabulary

Segmenter = Callable[[str], tuple[int, ...]]


def segmenter(parts: Parts) -> Segmenter:
    """The function from a unit to its ids."""
    level = parts.settings.level
    if level == "subword":
        return Subwords(parts.vocabulary, library_model(parts))
    if level == "word":
        return lambda unit: word_ids(unit, parts.vocabulary)
    return lambda unit: tuple(piece_ids(unit, parts.vocabulary))


def piece_ids(unit: str, vocabulary: Vocabulary) -> list[int]:
    known = vocabulary.ids.get(unit)
    return vocabulary.lacking(unit) if known is None else [known]


def word_ids(unit: str, vocabulary: Vocabulary) -> tuple[int, ...]:
    if unit in vocabulary.ids or not unit.startswith(" ") or unit == " ":
        return tuple(piece_ids(unit, vocabulary))
    return (*piece_ids(" ", vocabulary), *piece_ids(unit[1:], vocabulary))


class Subwords:
    """Runs of known characters go to the library's model, each other character is lacking."""

    def __init__(self, vocabulary: Vocabulary, tokenise: Callable[[str], Sequence[int]]) -> None:
        self.vocabulary = vocabulary
        self.tokenise = tokenise
        self.alphabet = frozenset(piece for piece in vocabulary.pieces if len(piece) == 1)

    def __call__(self, unit: str) -> tuple[int, ...]:
        if self.alphabet.issuperset(unit):
            return tuple(self.tokenise(unit))
        ids: list[int] = []
        for known, run in groupby(unit, self.alphabet.__contains__):
            if known:
                ids += self.tokenise("".join(run))
            else:
                ids += [token_id for character in run for token_id in self.vocabulary.lacking(character)]
        return tuple(ids)


def library_model(parts: Parts) -> Callable[[str], list[int]]:
    """The Rust model made from our own lists: no pattern and no component of a file ever reaches the library."""
    vocabulary = parts.vocabulary
    if parts.settings.algorithm == "bpe":
        pieces, first = vocabulary.pieces, vocabulary.first_piece
        merges = [(pieces[left - first], pieces[right - first]) for left, right in parts.merges]
        bpe = models.BPE(vocabulary.ids, merges, cache_capacity=0)
        return lambda text: [token.id for token in bpe.tokenize(text)]
    unigram = models.Unigram(list(zip(vocabulary.pieces, parts.scores, strict=True)))
    first = vocabulary.first_piece
    return lambda text: [token.id + first for token in unigram.tokenize(text)]
