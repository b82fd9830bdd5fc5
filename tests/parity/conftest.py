"""Five words of a made-up beam search, for every way there is to take a step; and the compiled engine, if there is one.

The search moves hypotheses about, and sources leave it, so whatever a way keeps of the past has to follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

from clearhead.decode.step import Stepper
from clearhead.native import build

SOURCES = ([7, 9, 11, 13, 17], [5], [8, 6, 30, 29, 28, 27, 26], [12, 12, 12])
MOVES = (  # after each word: which rows go on, then which sources
    ([0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3], [0, 1, 2, 3]),
    ([2, 2, 0, 3, 4, 5, 7, 7, 7, 11, 9, 10], [0, 1, 2, 3]),
    ([0, 1, 1, 5, 4, 3, 6, 6, 7, 9, 9, 9], [0, 2, 3]),
    ([1, 0, 2, 3, 3, 4, 8, 7, 6], [2]),
    ([2, 2, 0], [0]),
)


@pytest.fixture(scope="session")
def sources() -> tuple[list[int], ...]:
    return SOURCES


@pytest.fixture(scope="session")
def walk() -> Callable[[Stepper], list[Tensor]]:
    """The log-probabilities a stepper over SOURCES gives at each of the words."""

    def five_words(stepper: Stepper) -> list[Tensor]:
        generator = torch.Generator().manual_seed(5)
        seen = []
        tokens = torch.ones(len(SOURCES), dtype=torch.long)
        for moved, kept in MOVES:
            seen.append(stepper.next(tokens))
            stepper.copies = 3
            stepper.reorder(torch.tensor(moved))
            tokens = torch.randint(5, 31, (len(moved),), generator=generator)
            if 3 * len(kept) < len(moved):
                stepper.keep(torch.tensor(kept))
                tokens = tokens.view(-1, 3)[kept].flatten()
        return [*seen, stepper.next(tokens)]

    return five_words


@pytest.fixture(scope="session")
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(build.OFF, raising=False)
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        made = build.build()
    if made is None:
        pytest.skip("no C++ compiler here: the compiled engine is optional")
    return made


@pytest.fixture
def compiled(compiled_once: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The engine is there while the test runs."""
    with monkeypatch.context() as patch:
        patch.delenv(build.OFF, raising=False)
        patch.setenv("XDG_CACHE_HOME", str(compiled_once.parents[2]))
        build.library.cache_clear()
        yield compiled_once
    build.library.cache_clear()
