"""What two locales can both talk about: names, units, currencies and styles, chosen so that a source has one target.

An item enters the stock when both locales have a plain name for it, and when no earlier item is said the same way
in the source while meaning something else in the target: a point of type and a pint are both "pt", and nothing in
the phrase would tell which is meant, so the later one stays out.

Knows two voices and codes. Refuses to know phrases and chance.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from clearhead.data.phrasebook import codes
from clearhead.data.phrasebook.voice import Length, Price, Voice
from clearhead.data.phrasebook.words import same

T = TypeVar("T")

# Probes: whatever two items have in common, they have in common here.
AMOUNTS = (1, 2, 5, 21, 100, 1.5)
DAYS = tuple(dt.datetime(2001 + month, month, 2 + month, 2 * month - 1, 5) for month in range(1, 13))
WHILE = dt.timedelta(days=40, hours=1)

BRACKETED = re.compile(r"[\d()\[\]（）/,;،、]")
WORDS_IN_A_NAME = 4
CALENDAR = ("weekday", "month")
# How many names a large book takes of each kind: enough to be a language, few enough to be met often.
MOST = {"territory": 300, "weekday": 7, "month": 12, "language": 300, "currency": 160, "script": 50, "city": 335}
FEWEST = 12
SHORT_UNITS = 40
SIGNED_CURRENCIES = 50


@dataclass(frozen=True)
class Stock:
    """The things a pair of locales can say; each sequence from the most prominent to the least."""

    names: dict[str, list[str]]
    units: list[tuple[str, Length]]
    rates: list[tuple[str, str]]
    currencies: list[tuple[str, Price]]
    days: list[str]
    moments: list[str]
    clocks: list[str]
    periods: list[str]
    intervals: list[str]


class Sieve:
    """Remembers what every source text means, and lets through only what agrees with it."""

    def __init__(self, source: Voice, target: Voice) -> None:
        self.source, self.target = source, target
        self.meaning: dict[str, str] = {}

    def keep(self, items: Iterable[T], said: Callable[[Voice, T], list[str]]) -> list[T]:
        return [item for item in items if self._agrees(said(self.source, item), said(self.target, item))]

    def _agrees(self, sources: list[str], targets: list[str]) -> bool:
        if not (all(sources) and all(targets)):
            return False
        pairs = {same(source): target for source, target in zip(sources, targets, strict=True)}
        if any(self.meaning.get(source, target) != target for source, target in pairs.items()):
            return False
        self.meaning.update(pairs)
        return True


def make_stock(source: Voice, target: Voice, share: float = 1.0) -> Stock:
    """`share` of the names: a small book needs few of them, or none would occur often enough to be learned."""
    sieve = Sieve(source, target)

    def dated(*styles: str) -> list[str]:
        return sieve.keep(styles, lambda voice, style: [voice.date(day, style) for day in DAYS])

    return Stock(
        days=dated("full", "long", "short", "yMMMEd", "MMMEd", "MMMMd", "yMMMM"),
        clocks=dated("EHm", "EBhm"),
        periods=dated("yQQQQ", "MMMMW", "yw"),
        moments=_moments(sieve),
        intervals=_intervals(sieve),
        names={category: first(_names(sieve, category)[:most], share) for category, most in MOST.items()},
        units=first(_units(sieve), share),
        rates=first(_rates(sieve), share),
        currencies=first(_currencies(sieve), share),
    )


def first(items: list[T], share: float) -> list[T]:
    return items[: max(FEWEST, round(len(items) * share))]


def _moments(sieve: Sieve) -> list[str]:
    return sieve.keep(("full", "long", "short"), lambda voice, style: [voice.moment(day, style) for day in DAYS])


def _intervals(sieve: Sieve) -> list[str]:
    styles = ("yMMMd", "MMMd", "yMMMEd", "yMMMM", "Hm")
    return sieve.keep(styles, lambda voice, style: [voice.interval(day, day + WHILE, style) for day in DAYS])


def is_plain(name: str) -> bool:
    """A name in a few words, without digits, brackets and commas."""
    return 0 < len(name.split()) <= WORDS_IN_A_NAME and not BRACKETED.search(name)


def _names(sieve: Sieve, category: str) -> list[str]:
    def plain(voice: Voice, code: str) -> list[str]:
        name = voice.name(category, code)
        return [name if category in CALENDAR or is_plain(name) else ""]

    return sieve.keep(codes.codes_of(category), plain)


def _units(sieve: Sieve) -> list[tuple[str, Length]]:
    """Units with their length: all written out, then the commonest in short."""
    items: list[tuple[str, Length]] = [(unit, "long") for unit in codes.units()]
    items += [(unit, "short") for unit in codes.units()[:SHORT_UNITS]]
    return sieve.keep(items, lambda voice, item: [voice.quantity(value, *item) for value in AMOUNTS])


def _rates(sieve: Sieve) -> list[tuple[str, str]]:
    items = [(unit, per) for unit in codes.RATED for per in codes.PER]
    return sieve.keep(items, lambda voice, item: [voice.rate(value, *item) for value in AMOUNTS])


def _currencies(sieve: Sieve) -> list[tuple[str, Price]]:
    """Currencies with their style: all by name, then the commonest by sign."""
    voices, known = (sieve.source, sieve.target), codes.codes_of("currency")
    known = [code for code in known if all(is_plain(voice.name("currency", code)) for voice in voices)]
    items: list[tuple[str, Price]] = [(code, "name") for code in known[: MOST["currency"]]]
    items += [(code, "standard") for code in known[:SIGNED_CURRENCIES]]
    return sieve.keep(items, lambda voice, item: [voice.money(value, *item) for value in AMOUNTS])
