"""Order could enter by anything that encodes position (row P2).

One task, the same small model, every kind of position: which letter stands between the two marks?

    d a ? f ? c e   →   f

Without positions the marks stand nowhere, and all that is left is guessing among the letters.
"""

from __future__ import annotations

from typing import get_args

from clearhead.config import ModelSettings
from clearhead.config.settings import Positions
from clearhead.data.synthetic import Pair
from clearhead.models.build import build
from clearhead.randomness import numpy_generator
from clearhead.truths.figure import Bars, Curves
from clearhead.truths.learn import TEST_SEED, Words, accuracy, learn, smooth, steps
from clearhead.truths.truth import Given, Result, Truth

KINDS: tuple[str, ...] = get_args(Positions)
LETTERS, LENGTH = "abcdefgh", 5
STEPS, ROWS, TESTED = 600, 64, 200


def between(n: int, seed: int) -> list[Pair]:
    """n texts of different letters with two marks in them, and the letter between the marks."""
    generator = numpy_generator(seed, "between two marks")
    pairs = []
    for order, place in zip(
        generator.permuted([range(len(LETTERS))] * n, axis=1), generator.integers(0, LENGTH, n), strict=True
    ):
        said = [LETTERS[letter] for letter in order[:LENGTH]]
        answer = said[place]
        said[place] = f"? {answer} ?"
        pairs.append((" ".join(said), answer))
    return pairs


def trained(positions: str, given: Given) -> tuple[float, list[float]]:
    """(share of right answers, losses) of one kind."""
    vocabulary = Words([*LETTERS, "?"])
    settings = ModelSettings.model_validate(
        {"d_model": 32, "d_ff": 64, "encoder_layers": 1, "decoder_layers": 1, "max_len": 16}
        | {"positions": positions, "dropout": 0.0}
    )
    model = build(settings, vocabulary.size, vocabulary.size, given.seed)
    losses = learn(model, vocabulary, lambda step: between(ROWS, given.seed * 10_000 + step), steps(STEPS, 5e-3))
    return accuracy(model, vocabulary, between(TESTED, given.seed + TEST_SEED)), losses


def experiment(given: Given) -> Result:
    found = {kind: trained("none" if given.control else kind, given) for kind in KINDS}
    right = {kind: share for kind, (share, _) in found.items()}
    encoding = [kind for kind in KINDS if kind != "none"]
    return Result(
        {kind: right[kind] for kind in KINDS} | {"guessing": 1 / LENGTH},
        {
            "every kind of position learns where the marks stand": min(right[kind] for kind in encoding) > 0.9,
            "without positions it is guessing": right["none"] < 2 / LENGTH,
        },
        [
            Bars(f"right answers after {STEPS} steps", right),
            Curves("learning", "step", "loss", {kind: smooth(losses) for kind, (_, losses) in found.items()}),
        ],
        ["Which kind learns fastest on so small a task says little about which is best on language."],
    )


TRUTH = Truth(
    name="positions",
    row="P2",
    claim="Positional encoding could be anything that encodes position.",
    refuted_by="a kind of position with which the task cannot be learned, or a model that learns it without any",
    control="the positions, of every kind",
    experiment=experiment,
)
