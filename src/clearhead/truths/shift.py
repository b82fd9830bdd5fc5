"""The encoding k positions on is a fixed linear map of the encoding here (row P5).

    P(pos + k) = T_k · P(pos)        T_k: one 2×2 rotation per pair, by k / 10000^(2i/d)

T_k does not depend on pos, so "k further on" need not be stored: it is the same turn everywhere. And
P(pos) · P(pos + k) depends on k alone.
"""

from __future__ import annotations

import torch

from clearhead.nn.positions import sinusoidal
from clearhead.truths.figure import Curves, Heat
from clearhead.truths.truth import Given, Result, Truth

WIDTH, LENGTH = 32, 256
SHIFTS = (1, 2, 7, 50)


def turn(k: int) -> torch.Tensor:
    """T_k, block by block: sin(a + b) = cos b sin a + sin b cos a, cos(a + b) = −sin b sin a + cos b cos a."""
    angle = k / 10000 ** (torch.arange(0, WIDTH, 2, dtype=torch.float64) / WIDTH)
    blocks = torch.stack((angle.cos(), angle.sin(), -angle.sin(), angle.cos()), -1).view(-1, 2, 2)
    return torch.block_diag(*blocks)


def residual(table: torch.Tensor, k: int) -> float:
    """How far T_k misses, at worst, over all positions."""
    return (table[:-k] @ turn(k).T - table[k:]).abs().max().item()


def experiment(given: Given) -> Result:
    table = sinusoidal(LENGTH, WIDTH).double()
    if given.control:
        table[:, 1::2] = 0.0
    misses = {k: residual(table, k) for k in SHIFTS}
    products = table @ table.T
    profile = {k: products.diagonal(k) for k in range(60)}
    wobble = max((line.max() - line.min()).item() for line in profile.values())
    orthogonal = (turn(7) @ turn(7).T - torch.eye(WIDTH, dtype=torch.float64)).abs().max().item()
    means = [(float(k), line.mean().item()) for k, line in profile.items()]
    names = [str(channel) for channel in range(8)]
    return Result(
        {f"T_{k} misses by": miss for k, miss in misses.items()}
        | {"profile differs between places by": wobble, "T is a rotation up to": orthogonal},
        {
            "T_k maps every position to the one k further on": max(misses.values()) < 1e-5,
            "the product of two positions depends on their distance alone": wobble < 1e-4,
        },
        [
            Heat("T_7, the first four of its blocks", names, names, turn(7)[:8, :8].tolist()),
            Curves("distance profile", "k", "P(pos) · P(pos + k)", {"mean over pos": means}),
        ],
        [f"The table has {LENGTH} positions in float32; what T_k misses by is its rounding."],
    )


TRUTH = Truth(
    name="shift",
    row="P5",
    claim="The encoding k positions on is a fixed linear map, PE(pos+k) = T_k · PE(pos), so it need not be stored.",
    refuted_by="a position that T_k does not take to the one k further on",
    control="the cosines",
    experiment=experiment,
)
