"""Attention written as loops over words and as three matrices: the same numbers (row A4).

word by word    v_m = Ω_v x_m + β_v        sa_n = Σ_m softmax_m(k_m · q_n / √d_k) v_m
all at once     Sa[X] = V[X] · softmax(K[X]ᵀ Q[X] / √d_k)        one column per word
"""

from __future__ import annotations

import math

import torch

from clearhead.nn.attention import Attention
from clearhead.nn.positions import ScorePositions
from clearhead.truths.figure import Table
from clearhead.truths.truth import Given, Result, Truth

WORDS, CHANNELS = 7, 5
Row = list[float]


def affine(omega: list[Row], beta: Row, x: Row) -> Row:
    return [sum(w * v for w, v in zip(row, x, strict=True)) + b for row, b in zip(omega, beta, strict=True)]


def by_loops(maps: dict[str, tuple[list[Row], Row]], xs: list[Row]) -> list[Row]:
    """Plain Python: no matrix anywhere."""
    queries, keys, values = ([affine(*maps[name], x) for x in xs] for name in ("query", "key", "value"))
    outputs = []
    for query in queries:
        scores = [sum(q * k for q, k in zip(query, key, strict=True)) / math.sqrt(CHANNELS) for key in keys]
        total = sum(math.exp(score) for score in scores)
        weights = [math.exp(score) / total for score in scores]
        outputs.append([sum(w * v[c] for w, v in zip(weights, values, strict=True)) for c in range(CHANNELS)])
    return outputs


def by_matrices(maps: dict[str, tuple[list[Row], Row]], xs: list[Row]) -> torch.Tensor:
    """The notes' form: X has one column per word."""
    x = torch.tensor(xs, dtype=torch.float64).T
    parts = {
        name: torch.tensor(omega, dtype=torch.float64) @ x + torch.tensor(beta, dtype=torch.float64)[:, None]
        for name, (omega, beta) in maps.items()
    }
    scores = parts["key"].T @ parts["query"] / math.sqrt(CHANNELS)
    return (parts["value"] @ scores.softmax(0)).T


def brick(given: Given) -> Attention:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(given.generator("weights").initial_seed())
        made = Attention(CHANNELS, 1, CHANNELS, CHANNELS, 1, ScorePositions()).double()
        for linear in (made.query, made.key, made.value):
            torch.nn.init.normal_(linear.bias)  # type: ignore[arg-type]
        torch.nn.init.eye_(made.out.weight)
    return made


def experiment(given: Given) -> Result:
    attention = brick(given)
    maps = {
        name: (getattr(attention, name).weight.tolist(), getattr(attention, name).bias.tolist())
        for name in ("query", "key", "value")
    }
    if given.control:
        maps["value"] = (maps["value"][0], [0.0] * CHANNELS)
    xs = torch.randn(WORDS, CHANNELS, generator=given.generator("words")).double()
    loops = torch.tensor(by_loops(maps, xs.tolist()), dtype=torch.float64)
    matrices = by_matrices(maps, xs.tolist())
    with torch.no_grad():
        bricks = attention(xs[None])[0]
    measured = {
        "loops against matrices": (loops - matrices).abs().max().item(),
        "loops against the brick": (loops - bricks).abs().max().item(),
    }
    rows = [[f"channel {c}", *(f"{way[0, c]:.12f}" for way in (loops, matrices, bricks))] for c in range(CHANNELS)]
    return Result(
        measured,
        {f"{name}: equal in float64": value < 1e-12 for name, value in measured.items()},
        [Table("the first word's new value", ["", "loops", "matrices", "nn/attention.py"], rows)],
    )


TRUTH = Truth(
    name="loops",
    row="A4",
    claim="v_m = Ω_v x_m + β_v, linear maps with bias; and all at once Sa[X] = V[X] · softmax(K[X]ᵀ Q[X]).",
    refuted_by="a number that differs between the loops, the matrices and the toolkit's own attention",
    control="the bias β_v, in the loops and the matrices",
    experiment=experiment,
)
