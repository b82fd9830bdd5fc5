"""Attention is a soft database: a question, keys, values (row A5).

    answer = Σ_m softmax_m(sharpness · question · key_m) value_m

Sharpness 0 answers with the mean of everything; the sharper the softmax, the more it is a Python dictionary.
"""

from __future__ import annotations

import torch

from clearhead.nn.attention import attend_explicit
from clearhead.truths.figure import Curves, Table
from clearhead.truths.truth import Given, Result, Truth

CAPITALS = {"France": 1.0, "Italy": 2.0, "Spain": 3.0, "Norway": 4.0, "Poland": 5.0, "Greece": 6.0, "Malta": 7.0}
WIDTH = 16
SHARPNESS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)


def answers(keys: torch.Tensor, values: torch.Tensor, sharpness: float) -> torch.Tensor:
    """Every key asked for once, through the toolkit's own attention."""
    keys, values = keys[None, None], values[None, None, :, None]
    return attend_explicit(keys, keys, values, None, None, sharpness)[0, 0, :, 0]


def experiment(given: Given) -> Result:
    keys = torch.randn(len(CAPITALS), WIDTH, generator=given.generator("keys")).double()
    keys = keys / keys.norm(dim=1, keepdim=True)
    values = torch.tensor(list(CAPITALS.values()), dtype=torch.float64)
    sharpest = 1.0 if given.control else SHARPNESS[-1]
    tried = [value for value in SHARPNESS if value <= sharpest]
    errors = {s: (answers(keys, values, s) - values).abs().max().item() for s in tried}
    blunt, sharp = answers(keys, values, 0.0), answers(keys, values, sharpest)
    rows = [
        [country, f"{CAPITALS[country]:g}", f"{a:.4f}", f"{b:.4f}"]
        for country, a, b in zip(CAPITALS, blunt.tolist(), sharp.tolist(), strict=True)
    ]
    return Result(
        {
            "blunt: furthest from the mean": (blunt - values.mean()).abs().max().item(),
            "sharp: furthest from the dictionary": errors[sharpest],
            "sharpness": sharpest,
        },
        {
            "with no sharpness everyone gets the mean": (blunt - values.mean()).abs().max().item() < 1e-9,
            "sharpened, every question gets the dictionary's answer": errors[sharpest] < 1e-3,
        },
        [
            Table("looked up", ["key", "dictionary", "sharpness 0", f"sharpness {sharpest:g}"], rows),
            Curves("further from the dictionary", "sharpness", "worst error", {"error": list(errors.items())}),
        ],
    )


TRUTH = Truth(
    name="database",
    row="A5",
    claim="Attention is a soft key-value database: question, answer, value.",
    refuted_by="a question whose answer stays away from the dictionary's however sharp the softmax",
    control="the sharpening",
    experiment=experiment,
)
