"""References, and outputs of two invented systems: one changes a few words, the other many."""

from collections.abc import Callable

import numpy as np
import pytest

from clearhead.randomness import numpy_generator

WORDS = ["der", "die", "Hund", "Häuser", "läuft", "schnell", "heute", "und", "ein", "Auto", "steht", "dort", "(rot)"]


@pytest.fixture(scope="session")
def references() -> list[str]:
    draws = numpy_generator(1, "references")
    return [" ".join(draws.choice(WORDS, draws.integers(3, 13))) + "." for _ in range(97)]


@pytest.fixture(scope="session")
def spoilt(references: list[str]) -> Callable[[float], list[str]]:
    """spoilt(p): the references with a share p of the words exchanged."""

    def outputs(share: float) -> list[str]:
        draws = numpy_generator(2, "spoilt", round(share * 1000))
        return [" ".join(exchanged(word, share, draws) for word in text.split()) for text in references]

    return outputs


def exchanged(word: str, share: float, draws: np.random.Generator) -> str:
    return str(draws.choice(WORDS)) if draws.random() < share else word
