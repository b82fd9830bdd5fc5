"""Without positions a sentence is a bag of words; with them it is a sentence (row P3).

The same encoder, with the same weights, reads "the woman ate the raccoon" and "the raccoon ate the woman". Without
positions each word comes out as it did before, only elsewhere: P · f(X) = f(P · X) for every reordering P.
"""

from __future__ import annotations

import torch

from clearhead.config import ModelSettings
from clearhead.models.build import build
from clearhead.truths.figure import Bars, Table
from clearhead.truths.truth import Given, Result, Truth

SENTENCE = ["the", "woman", "ate", "the", "raccoon"]
TURNED = ["the", "raccoon", "ate", "the", "woman"]
MOVED = [0, 4, 2, 3, 1]
"""Word i of the turned sentence is word MOVED[i] of the first."""
WORDS = {word: number for number, word in enumerate(dict.fromkeys(SENTENCE), start=5)}


def outputs(positions: str, words: list[str], seed: int) -> torch.Tensor:
    """What a two-layer encoder makes of each word."""
    settings = ModelSettings(d_model=32, d_ff=64, positions=positions, encoder_layers=2, decoder_layers=1)
    model = build(settings, 16, 16, seed).double().eval()
    with torch.no_grad():
        return model.encode(torch.tensor([[WORDS[word] for word in words]])).states[0]


def differences(positions: str, seed: int) -> torch.Tensor:
    """Per word: how far its output is from that of the same word in the other order."""
    here, there = outputs(positions, TURNED, seed), outputs(positions, SENTENCE, seed)[MOVED]
    return (here - there).abs().amax(-1)


def experiment(given: Given) -> Result:
    bag = differences("none", given.seed)
    order = differences("none" if given.control else "sinusoidal", given.seed)
    rows = [[word, f"{a:.1e}", f"{b:.2f}"] for word, a, b in zip(TURNED, bag.tolist(), order.tolist(), strict=True)]
    return Result(
        {"largest difference without positions": bag.max().item(), "smallest with positions": order.min().item()},
        {
            "without positions the outputs only change places": bag.max().item() < 1e-9,
            "with positions every word comes out different": order.min().item() > 1e-3,
        },
        [
            Table("the same word in both orders: how far apart are its outputs?", ["word", "without", "with"], rows),
            Bars("with positions", {f"{place} {word}": order[place].item() for place, word in enumerate(TURNED)}),
        ],
    )


TRUTH = Truth(
    name="raccoon",
    row="P3",
    claim="“The woman ate the raccoon” is not “the raccoon ate the woman”.",
    refuted_by="an output that depends on the order although no position was given, or does not although one was",
    control="the positions",
    experiment=experiment,
)
