"""Covariate shift: trained on red roses, shown a white one (row L2).

Flowers are patterns over channels; a rose has one pattern, a tulip another. Colour is one gain and one offset for all
channels. A small network learns to tell them apart on red ones. White ones are brighter and paler: every activation
drifts away from what the layers above were trained on, unless each flower is normalised over its channels first.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from clearhead.nn.linear import Linear
from clearhead.nn.norm import LayerNorm
from clearhead.truths.figure import Bars, Table
from clearhead.truths.truth import Given, Result, Truth

CHANNELS, HIDDEN, STEPS, FLOWERS = 16, 32, 150, 256
RED, WHITE = (1.0, 0.0), (0.3, 4.0)
"""Gain and offset of a colour."""


def flowers(kinds: Tensor, colour: tuple[float, float], generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """(what is seen, which kind it is)."""
    which = torch.randint(2, (FLOWERS,), generator=generator)
    gain, offset = colour
    return gain * (kinds[which] + 0.3 * torch.randn(FLOWERS, CHANNELS, generator=generator)) + offset, which


def network(normed: bool, generator: torch.Generator) -> nn.Sequential:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(generator.initial_seed())
        norm = LayerNorm(CHANNELS) if normed else nn.Identity()
        return nn.Sequential(norm, Linear(CHANNELS, HIDDEN), nn.ReLU(), Linear(HIDDEN, 2))


def train(made: nn.Sequential, seen: Tensor, which: Tensor) -> None:
    optimiser = torch.optim.Adam(made.parameters(), lr=0.01)
    for _ in range(STEPS):
        optimiser.zero_grad()
        nn.functional.cross_entropy(made(seen), which).backward()
        optimiser.step()


def judged(normed: bool, given: Given) -> dict[str, float]:
    """Train on red, look at white: accuracy on both, and how far the hidden layer drifts, in deviations."""
    kinds = torch.randn(2, CHANNELS, generator=given.generator("kinds"))
    red, of_red = flowers(kinds, RED, given.generator("red"))
    white, of_white = flowers(kinds, WHITE, given.generator("white"))
    made = network(normed, given.generator("weights"))
    train(made, red, of_red)
    with torch.no_grad():
        usual, now = made[:2](red), made[:2](white)
        drift = ((now.mean(0) - usual.mean(0)).abs() / usual.std(0)).mean()
        right = [
            (made(seen).argmax(1) == which).float().mean().item() for seen, which in ((red, of_red), (white, of_white))
        ]
    return {"right on red": right[0], "right on white": right[1], "drift of the hidden layer": drift.item()}


def experiment(given: Given) -> Result:
    without, with_norm = judged(False, given), judged(not given.control, given)
    rows = [[name, f"{without[name]:.3f}", f"{with_norm[name]:.3f}"] for name in without]
    return Result(
        {f"{name}, without": value for name, value in without.items()}
        | {f"{name}, with": value for name, value in with_norm.items()},
        {
            "both learn the red ones": min(without["right on red"], with_norm["right on red"]) > 0.9,
            "without normalisation the hidden layer drifts by more than a deviation": without[
                "drift of the hidden layer"
            ]
            > 1,
            "with it, by less than a quarter of one": with_norm["drift of the hidden layer"] < 0.25,
            "and white roses are still roses": with_norm["right on white"] > 0.9,
        },
        [
            Table("trained on red, shown white", ["", "without normalisation", "with layer norm"], rows),
            Bars(
                "drift of the hidden layer, in deviations",
                {"without": without["drift of the hidden layer"], "with": with_norm["drift of the hidden layer"]},
            ),
        ],
    )


TRUTH = Truth(
    name="drift",
    row="L2",
    claim="Covariate shift: trained on red roses, shown a white one. Normalisation keeps the layers' inputs in place.",
    refuted_by="activations that drift as far with normalisation as without, or white roses that are no longer known",
    control="the normalisation",
    experiment=experiment,
)
