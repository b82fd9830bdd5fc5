"""Which pairs of a test set are scored: all that have text on both sides, however odd they look.

A pair without a source or without a reference says nothing about a model, so it is left out; any other pair the gate
would drop may be meant, so it is scored, and told. `data.gate` = "warn" scores the empty ones too, "off" looks at
nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from clearhead.config import DataSettings
from clearhead.data.findings import EMPTY
from clearhead.data.gate import Gate
from clearhead.data.readers.pairs import Pair
from clearhead.errors import DataError


@dataclass(frozen=True)
class Sifted:
    """The places of the pairs to score, and why others are not or should be looked at: counts by reason."""

    scored: tuple[int, ...]
    left_out: dict[str, int]
    suspicious: dict[str, int]
    said: tuple[str, ...]


def sift(pairs: Sequence[Pair], settings: DataSettings) -> Sifted:
    reasons = {} if settings.gate == "off" else Gate.learn(pairs, settings).reasons(pairs)
    out = {place for place, reason in reasons.items() if settings.gate == "drop" and reason == EMPTY}
    if len(out) == len(pairs):
        hint = "look at it with `clearhead data check`"
        raise DataError("holds no pair with text on both sides", file=pairs[0].file, hint=hint)
    looked_at = {place: reason for place, reason in reasons.items() if place not in out}
    left_out = Counter(reasons[place] for place in out)
    said = [
        *in_words("left out", {place: reasons[place] for place in out}, pairs),
        *in_words("scored, but to be looked at", looked_at, pairs),
    ]
    scored = tuple(place for place in range(len(pairs)) if place not in out)
    return Sifted(scored, dict(left_out), dict(Counter(looked_at.values())), tuple(said))


def in_words(what: str, reasons: dict[int, str], pairs: Sequence[Pair]) -> list[str]:
    """A line for each reason, with the place of the first pair it hits."""
    firsts: dict[str, Pair] = {}
    for place in sorted(reasons):
        firsts.setdefault(reasons[place], pairs[place])
    counts = Counter(reasons.values())
    return [
        f"{counts[reason]:,} of {len(pairs):,} pairs {what}: {reason}; the first is {pair.file}:{pair.line}"
        for reason, pair in firsts.items()
    ]
