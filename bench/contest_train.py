"""Training, side by side: the same batches in the same order, the same architecture, a few steps a turn.

Between the contestants' turns the machine itself has one: the products of such a step at the model's own shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from bench.children import Child, Failed
from bench.rounds import Series, play, ratio

WARM_UP = 2
"""Steps that are not timed: batches have other shapes each time, and whatever is done once for a shape takes time."""
LIMITS = {"limit float32": "float32", "limit bf16": "bf16"}
Say = Callable[[str], None]


def contest(
    size: str,
    children: Mapping[str, Child],
    workshop: Child,
    batches: dict[str, Any],
    steps: int,
    rounds: int,
    say: Say,
) -> dict[str, Any]:
    """Everybody's figures, by name; the limits in GFLOP/s."""
    results: dict[str, Any] = {}
    for name, child in children.items():
        try:
            child.ask("train", steps=WARM_UP)
        except Failed as error:
            results[name] = {"failed": str(error)}
    running = [name for name in children if name not in results]
    series = play([*running, *LIMITS], rounds, partial(turn, children, workshop, size, steps))
    for name in running:
        results[name] = described(series[name], children[name].peak_mb)
        rate = results[name].get("tokens_per_s")
        say(f"train {size} {name:<24} {f'{rate:,.0f} target tokens/s' if rate else series[name].failed}")
    limits = {LIMITS[name]: series[name].median for name in LIMITS}
    for name, found in results.items():
        own = limits["bf16" if "bf16" in name else "float32"]
        if found.get("tokens_per_s"):
            found["gflops"] = found["tokens_per_s"] * batches["operations_per_token"] / 1e9
            found["fraction"] = ratio(found["gflops"], own)
    return {"contestants": results, "own_shapes_gflops": limits}


def turn(children: Mapping[str, Child], workshop: Child, size: str, steps: int, name: str) -> float:
    if name in LIMITS:
        rate: float = workshop.ask("own_rate", size=size, precision=LIMITS[name])["gflops"]
        return rate
    answer = children[name].ask("train", steps=steps)
    return float(answer["tokens"] / answer["seconds"])


def described(series: Series, peak_mb: float) -> dict[str, Any]:
    if series.failed is not None:
        return {"failed": series.failed}
    return {"tokens_per_s": series.median, "rounds": series.values, "spread": series.spread, "peak_mb": peak_mb}
