"""The vocabularies of a model: one for both sides, or one each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from clearhead.config import TextSettings
from clearhead.text.tokenizer import Tokenizer, load_tokenizer, train_tokenizer

SHARED = "tokenizer.json"
SOURCE, TARGET = "tokenizer.source.json", "tokenizer.target.json"


@dataclass(frozen=True)
class Tokenizers:
    """`source is target` when the vocabulary is shared."""

    source: Tokenizer
    target: Tokenizer

    @property
    def shared(self) -> bool:
        return self.source is self.target

    @property
    def fingerprint(self) -> str:
        return self.source.fingerprint if self.shared else f"{self.source.fingerprint}-{self.target.fingerprint}"

    def files(self) -> dict[str, bytes]:
        """File name → content."""
        if self.shared:
            return {SHARED: self.source.to_bytes()}
        return {SOURCE: self.source.to_bytes(), TARGET: self.target.to_bytes()}


def learn(pairs: Callable[[], Iterable[tuple[str, str]]], settings: TextSettings) -> Tokenizers:
    """Learn the vocabularies. `pairs` gives the same pairs each time it is called; none are held."""
    if settings.shared:
        both = train_tokenizer((text for pair in pairs() for text in pair), settings)
        return Tokenizers(both, both)
    return Tokenizers(
        train_tokenizer((source for source, _ in pairs()), settings),
        train_tokenizer((target for _, target in pairs()), settings),
    )


def tokenizer_names(settings: TextSettings) -> tuple[str, ...]:
    """The files that `load` reads."""
    return (SHARED,) if settings.shared else (SOURCE, TARGET)


def load(folder: Path, settings: TextSettings) -> Tokenizers:
    if settings.shared:
        both = load_tokenizer(folder / SHARED)
        return Tokenizers(both, both)
    return Tokenizers(load_tokenizer(folder / SOURCE), load_tokenizer(folder / TARGET))
