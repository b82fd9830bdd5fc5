"""Positions as waves: sines and cosines of many frequencies, two channels to each (row P1).

    P(pos, 2i) = sin(pos / 10000^(2i/d))      P(pos, 2i+1) = cos(pos / 10000^(2i/d))

Each pair of channels walks round a circle, the first fast, the last hardly at all: hands of a clock. Two pairs
together are a ripple on a torus, all of them a path in d dimensions on which no place is visited twice.
"""

from __future__ import annotations

import math

import torch

from clearhead.nn.positions import sinusoidal
from clearhead.truths.figure import Curves, Figure, Heat
from clearhead.truths.truth import Given, Result, Truth

WIDTH, LENGTH, SHOWN = 32, 128, 40


def waves(given: Given) -> torch.Tensor:
    """The table of the bricks; as control with every cosine replaced by its sine."""
    table = sinusoidal(LENGTH, WIDTH).double()
    if given.control:
        table[:, 1::2] = table[:, 0::2]
    return table


def by_the_formula(position: int, channel: int) -> float:
    angle = position / 10000 ** (2 * (channel // 2) / WIDTH)
    return math.cos(angle) if channel % 2 else math.sin(angle)


def leaning(table: torch.Tensor) -> list[tuple[float, float]]:
    """Channels 4, 5 and 8 as a path in three dimensions, seen from the side."""
    x, y, z = table[:, 4], table[:, 5], table[:, 8]
    return list(zip((x + 0.5 * z).tolist(), (y + 0.9 * z).tolist(), strict=True))


def experiment(given: Given) -> Result:
    table = waves(given)
    formula = torch.tensor([[by_the_formula(p, c) for c in range(WIDTH)] for p in range(LENGTH)], dtype=torch.float64)
    radius = table.view(LENGTH, -1, 2).norm(dim=-1)
    halves = sinusoidal(LENGTH, WIDTH, halves=True).double()
    regrouped = torch.cat((table[:, 0::2], table[:, 1::2]), 1)
    word = torch.randn(WIDTH, generator=given.generator("a word")).double() * WIDTH**-0.5
    measured = {
        "largest distance from the formula": (table - formula).abs().max().item(),
        "smallest radius of a pair": radius.min().item(),
        "largest radius of a pair": radius.max().item(),
        "shortest wave in tokens": 2 * math.pi,
        "longest wave in tokens": 2 * math.pi * 10000 ** (1 - 2 / WIDTH),
        "interleaved against halves": (regrouped - halves).abs().max().item(),
    }
    checks = {
        "the table is the formula": measured["largest distance from the formula"] < 1e-6,
        "every pair stays on a circle of radius 1": (radius - 1).abs().max().item() < 1e-6,
        "all sines first, then all cosines: the same numbers": measured["interleaved against halves"] < 1e-6,
    }
    circles = {f"pair {i}": list(zip(*table[:SHOWN, 2 * i : 2 * i + 2].T.tolist(), strict=True)) for i in (0, 3)}
    rows = [word * math.sqrt(WIDTH), table[7], word * math.sqrt(WIDTH) + table[7]]
    names = ["word", "+ place 7", "= sum"]
    some = range(4, WIDTH, 4)[:3]
    figures: list[Figure] = [
        Curves("waves", "position", "value", {f"sine {c // 2}": list(enumerate(table[:60, c].tolist())) for c in some}),
        Curves("pairs in the plane: each a circle", "sine", "cosine", circles, joined=False, square=True),
        Curves("three channels, seen from the side", "→", "↑", {"path": leaning(table)}, square=True),
        Heat("ripples: position by channel", [str(p) for p in range(24)], [""] * WIDTH, table[:24].tolist()),
        Heat("embedding + position", names, [""] * WIDTH, [row.tolist() for row in rows]),
    ]
    return Result(measured, checks, figures)


TRUTH = Truth(
    name="waves",
    row="P1",
    claim="Positional encoding keeps word order: sines and cosines of many frequencies, merged.",
    refuted_by="a pair of channels that leaves its circle, or a value that is not the formula's",
    control="the cosines",
    experiment=experiment,
)
