"""A small invented corpus, and one tokenizer for each level and algorithm."""

from collections.abc import Callable
from functools import cache

import pytest

from clearhead.config import TextSettings
from clearhead.text import Tokenizer, train_tokenizer

NAMES = ("Anna", "Jürgen", "Zoë", "Łukasz", "Мария")
VERBS = ("sieht", "findet", "verkauft", "übersetzt", "wiederfindet")
THINGS = ("das Haus", "die Häuser", "den Hausschlüssel", "ein Wörterbuch", "3 Bücher", "1024 Wörter", "die Bücherei")
ENDS = (".", "!", "?", " …", ", oder?")


@pytest.fixture(scope="session")
def corpus() -> list[str]:
    return [f"{name} {verb} {thing}{end}" for name in NAMES for verb in VERBS for thing in THINGS for end in ENDS]


@pytest.fixture(scope="session")
def trained(corpus: list[str]) -> Callable[..., Tokenizer]:
    """trained(level="word", …): the tokenizer for these settings, made once."""

    @cache
    def make(**settings: object) -> Tokenizer:
        return train_tokenizer(corpus, TextSettings(**{"vocab_size": 400, **settings}))

    return make
