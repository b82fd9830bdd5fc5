"""The phrasebook: genuine parallel phrases of any two locales, made without a network.

Knows the order of the work: two voices, a stock, thoughts of every kind, the split. Refuses to know files and models.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import babel
from babel.core import get_global

from clearhead.data.phrasebook.draws import Draws, NothingToChoose
from clearhead.data.phrasebook.kinds import KINDS
from clearhead.data.phrasebook.locales import voices
from clearhead.data.phrasebook.split import Phrase, hold_out, one_to_one, without_rare_words
from clearhead.data.phrasebook.stock import Stock, make_stock
from clearhead.data.phrasebook.voice import Voice
from clearhead.errors import UsageError

Pair = tuple[str, str]

SIZE = 75_000
SIZE_OF_FULL_STOCK = 60_000  # phrases it takes to say every name often enough
SMALLEST = 2000
HELD_OUT = 1500
TRIES = 3  # draws per phrase wanted, before a kind is taken to have said all it can
LONGEST = 16  # words between spaces

LICENCE_NOTICE = """\
The phrases are made from the Unicode Common Locale Data Repository (CLDR), as carried by Babel.
Copyright © 2004-2025 Unicode, Inc. Used and passed on under the Unicode License v3 (SPDX: Unicode-3.0),
whose terms are at https://www.unicode.org/license.txt and, with Babel, in locale-data/LICENSE.unicode.
The data are provided "as is", without warranty of any kind."""


@dataclass(frozen=True)
class Phrasebook:
    """Pairs to train on and pairs held out, the kind of each beside them, and where they come from."""

    source: str
    target: str
    train: list[Pair]
    train_kinds: list[str]
    held_out: list[Pair]
    held_out_kinds: list[str]
    provenance: dict[str, str | int]


def phrasebook(source: str = "en", target: str = "de", seed: int = 1, size: int = SIZE) -> Phrasebook:
    """About `size` phrases in two locales. Equal arguments and an equal Babel give an equal book.

    Text is NFC, every kind of space is one plain space, invisible marks are gone (`words.normalise`).
    """
    if size < SMALLEST:
        raise UsageError(f"{size} phrases are too few for a book", field="size", hint=f"ask for {SMALLEST} or more")
    pair = voices(source, target)
    stock = make_stock(*pair, share=min(1.0, size / SIZE_OF_FULL_STOCK))
    drawn = [phrase for kind in KINDS for phrase in phrases(kind, *pair, stock, seed, size)]
    train, held = hold_out(without_rare_words(one_to_one(drawn)), min(HELD_OUT, size // 40), seed)
    return Phrasebook(
        source=str(pair[0].locale),
        target=str(pair[1].locale),
        train=[(phrase.source, phrase.target) for phrase in train],
        train_kinds=[phrase.kind for phrase in train],
        held_out=[(phrase.source, phrase.target) for phrase in held],
        held_out_kinds=[phrase.kind for phrase in held],
        provenance=provenance(*pair, seed, size),
    )


def phrases(kind: str, source: Voice, target: Voice, stock: Stock, seed: int, size: int) -> Iterator[Phrase]:
    """A kind's share of the book, each source once; fewer where the kind has no more to say."""
    thousandths, draw = KINDS[kind]
    draws, wanted = Draws(seed, f"phrasebook {kind}"), size * thousandths // 1000
    said: set[str] = set()
    for _ in range(TRIES * wanted):
        if len(said) == wanted:
            return
        try:
            thought = draw(draws, stock)
        except NothingToChoose:
            return
        phrase = Phrase(kind, thought(source), thought(target))
        if phrase.source not in said and sayable(phrase):
            said.add(phrase.source)
            yield phrase


def sayable(phrase: Phrase) -> bool:
    return all(0 < len(side.split()) <= LONGEST for side in (phrase.source, phrase.target))


def provenance(source: Voice, target: Voice, seed: int, size: int) -> dict[str, str | int]:
    return {
        "data": "Unicode CLDR",
        "cldr": str(get_global("cldr").get("version", "unknown")),
        "babel": babel.__version__,
        "licence": "Unicode-3.0",
        "source": str(source.locale),
        "target": str(target.locale),
        "seed": seed,
        "size": size,
    }
