"""Why the dot product is divided by √d_k (row A6).

    q, k with independent channels of variance 1:        Var(q · k) = d_k        Var(q · k / √d_k) = 1

Large scores saturate the softmax: one weight near 1, entropy near 0, and the gradient p (1 − p) near 0 with it.
A trained model's own queries and keys are not independent; what their products vary by is shown beside.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch

from clearhead.errors import MissingExtra
from clearhead.truths.figure import Curves, Figure, Table, number
from clearhead.truths.translator import SENTENCE, traced, translator
from clearhead.truths.truth import Given, Result, Truth

WIDTHS = (4, 16, 64, 256, 1024)
KEYS, QUERIES = 32, 500


class Measured(NamedTuple):
    variance: float
    entropy: float
    """Of the weights, as a share of the largest possible."""
    gradient: float
    """Mean size of ∂weight/∂score, Σ p (1 − p)."""


def measure(d_k: int, scale: float, generator: torch.Generator) -> Measured:
    query = torch.randn(QUERIES, 1, d_k, generator=generator)
    key = torch.randn(QUERIES, KEYS, d_k, generator=generator)
    scores = (query * key).sum(-1) * scale
    p = scores.double().softmax(-1)
    entropy = -(p * p.clamp_min(1e-300).log()).sum(-1).mean() / math.log(KEYS)
    return Measured(scores.var().item(), entropy.item(), (p * (1 - p)).sum(-1).mean().item())


def own(given: Given) -> list[Figure]:
    """What the trained model's own products vary by, attention by attention; nothing when there is no model."""
    try:
        trace = traced(translator(given), SENTENCE)
    except MissingExtra:
        return []
    rows = []
    for path in trace.attentions():
        products = trace[f"{path}.products"]
        finite = trace[f"{path}.scores"][trace[f"{path}.pattern"] > 0]
        width = trace[f"{path}.query"].shape[-1]
        rows.append([path, str(width), f"{products.var():.1f}", f"{finite.var():.2f}"])
    return [Table("the trained model's own", ["attention", "d_k", "Var(q·k)", "Var(score)"], rows)]


def experiment(given: Given) -> Result:
    plain = {d: measure(d, 1.0, given.generator(f"d_k {d}")) for d in WIDTHS}
    scales = {d: 1.0 if given.control else d**-0.5 for d in WIDTHS}
    scaled = {d: measure(d, scales[d], given.generator(f"d_k {d}")) for d in WIDTHS}
    first, last = WIDTHS[0], WIDTHS[-1]
    furthest = max(abs(found.variance / d - 1) for d, found in plain.items())
    rows = [[str(d), *map(number, plain[d]), *map(number, scaled[d])] for d in WIDTHS]
    return Result(
        {
            "Var(q·k) / d_k is furthest from 1 by": furthest,
            f"variance at d_k {last}, divided by √d_k": scaled[last].variance,
            f"entropy at d_k {last}, without": plain[last].entropy,
            f"entropy at d_k {last}, with": scaled[last].entropy,
            f"gradient at d_k {last}, without": plain[last].gradient,
            f"gradient at d_k {last}, with": scaled[last].gradient,
        },
        {
            "Var(q·k) is d_k, to a tenth": furthest < 0.1,
            "undivided, the softmax saturates: entropy and gradient fall to less than a third": (
                plain[last].entropy < plain[first].entropy / 3 and plain[last].gradient < plain[first].gradient / 3
            ),
            "divided by √d_k the variance is 1 and the gradient stays": abs(scaled[last].variance - 1) < 0.1
            and scaled[last].gradient > 0.9 * scaled[first].gradient,
        },
        [
            Table(
                f"softmax over {KEYS} random keys",
                ["d_k", "Var", "entropy", "gradient", "Var, divided", "entropy, divided", "gradient, divided"],
                rows,
            ),
            Curves(
                "gradient through the softmax",
                "d_k",
                "Σ p (1 − p)",
                {
                    "as it is": [(d, found.gradient) for d, found in plain.items()],
                    "divided by √d_k": [(d, found.gradient) for d, found in scaled.items()],
                },
                log_x=True,
            ),
            *own(given),
        ],
    )


TRUTH = Truth(
    name="scaling",
    row="A6",
    claim="Divide by √d_k: the dot product's variance grows with d_k, large variance saturates the softmax, gradients "
    "vanish.",
    refuted_by="a variance that does not grow with d_k, or a gradient that vanishes although the score was divided",
    control="the division",
    experiment=experiment,
)
