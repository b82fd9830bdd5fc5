"""Which pairs go on to training: control characters are cleaned away, hopeless pairs dropped and counted.

    settings.gate   drop: clean and drop · warn: count what would be dropped, change nothing · off: look at nothing

Duplicates are kept: they may be meant. Knows the dropping rules of `findings`. Refuses to hold the corpus in memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Self, TypeVar

from clearhead.config import DataSettings
from clearhead.data.block import Block, HeldOut, Standards
from clearhead.data.cleaning import clean
from clearhead.data.findings import DROPPING
from clearhead.data.readers.pairs import Pair
from clearhead.data.scripts import common_script

BLOCK = 4096  # pairs looked at together
BLOCK_CHARACTERS = 8 << 20
SAMPLE = 10_000  # at least so many pairs, evenly spaced, show each side's script
SAMPLED_LENGTH = 1000  # characters of each text in the sample
SCRIPT_SHARE = 0.95  # of the texts must be in one script before another can be wrong

T = TypeVar("T")
U = TypeVar("U")


class Gate:
    """Call it with pairs, as often as you like; the counts are those of the latest call."""

    def __init__(self, settings: DataSettings, standards: Standards) -> None:
        self.settings = settings
        self.standards = standards
        self.read = self.kept = self.cleaned = 0
        self.dropped: Counter[str] = Counter()

    @classmethod
    def learn(cls, pairs: Iterable[Pair], settings: DataSettings) -> Self:
        """A gate that knows the scripts of both sides, from one look at all pairs."""
        if settings.gate == "off":
            return cls(settings, Standards(settings.max_ratio))
        return cls(settings, learn_standards(sample_pairs(pairs), settings))

    def __call__(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        self.read = self.kept = self.cleaned = 0
        self.dropped = Counter()
        for block in blocks(pairs, BLOCK):
            yield from self.pass_block(block)

    def pass_block(self, pairs: list[Pair]) -> list[Pair]:
        self.read += len(pairs)
        if self.settings.gate == "off":
            self.kept += len(pairs)
            return pairs
        cleaned = [clean_pair(pair) for pair in pairs]
        reasons = drop_reasons(cleaned, self.standards)
        self.dropped.update(reasons.values())
        if self.settings.gate == "warn":
            self.kept += len(pairs)
            return pairs
        kept = [i for i in range(len(pairs)) if i not in reasons]
        self.cleaned += sum(cleaned[i] is not pairs[i] for i in kept)
        self.kept += len(kept)
        return [cleaned[i] for i in kept]

    def reasons(self, pairs: Iterable[Pair]) -> dict[int, str]:
        """Which of these pairs would be dropped, by their places, and why."""
        return drop_reasons([clean_pair(pair) for pair in pairs], self.standards)

    @property
    def said(self) -> list[str]:
        """What happened, for people; nothing when nothing did."""
        verb = "dropped" if self.settings.gate == "drop" else "would be dropped"
        lines = [f"{count:,} of {self.read:,} pairs {verb}: {reason}" for reason, count in self.dropped.most_common()]
        return [*lines, f"{self.cleaned:,} pairs cleaned of control characters"] if self.cleaned else lines


def learn_standards(
    sample: Sequence[tuple[str, str]], settings: DataSettings, held_out: HeldOut | None = None
) -> Standards:
    return Standards(
        settings.max_ratio,
        common_script((source for source, _ in sample), SCRIPT_SHARE),
        common_script((target for _, target in sample), SCRIPT_SHARE),
        held_out,
    )


def sample_pairs(pairs: Iterable[Pair]) -> list[tuple[str, str]]:
    return spread(pairs, SAMPLE, lambda pair: (pair.source[:SAMPLED_LENGTH], pair.target[:SAMPLED_LENGTH]))


def spread(items: Iterable[T], least: int, part: Callable[[T], U]) -> list[U]:
    """The part that matters of evenly spaced items: `least` of them or all there are, and fewer than twice as many."""
    kept: list[U] = []
    stride = 1
    for number, item in enumerate(items):
        if number % stride == 0:
            kept.append(part(item))
            if len(kept) == 2 * least:
                kept = kept[::2]
                stride *= 2
    return kept


def clean_pair(pair: Pair) -> Pair:
    """The pair itself where there is nothing to clean."""
    if pair.source.isprintable() and pair.target.isprintable():
        return pair
    source, target = clean(pair.source), clean(pair.target)
    if source is pair.source and target is pair.target:
        return pair
    return pair._replace(source=source, target=target)


def drop_reasons(cleaned: Sequence[Pair], standards: Standards) -> dict[int, str]:
    """Which of some cleaned pairs are dropped, each for the first reason that applies."""
    block = Block([pair.source for pair in cleaned], [pair.target for pair in cleaned], standards)
    reasons: dict[int, str] = {}
    for kind in DROPPING:
        for i in kind.rule(block):
            reasons.setdefault(int(i), kind.name)
    return reasons


def blocks(pairs: Iterable[Pair], size: int) -> Iterator[list[Pair]]:
    """So many pairs at a time, fewer where they are long."""
    block: list[Pair] = []
    characters = 0
    for pair in pairs:
        block.append(pair)
        characters += len(pair[0]) + len(pair[1])
        if len(block) == size or characters > BLOCK_CHARACTERS:
            yield block
            block, characters = [], 0
    if block:
        yield block
