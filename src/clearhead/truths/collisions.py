"""One wave repeats, many do not (row P4).

Two positions coincide when their vectors are closer than `NEAR`. One sinusoid brings many pairs of positions
together; sine and cosine at falling frequencies none.
"""

from __future__ import annotations

import torch

from clearhead.nn.positions import sinusoidal
from clearhead.truths.figure import Curves, Table, number
from clearhead.truths.truth import Given, Result, Truth

LENGTH, WIDTH, NEAR = 1000, 64, 0.05


def distances(table: torch.Tensor) -> torch.Tensor:
    """Between every two different positions."""
    rows, columns = torch.triu_indices(LENGTH, LENGTH, 1)
    return torch.cdist(table, table, compute_mode="donot_use_mm_for_euclid_dist")[rows, columns]


def tables(control: bool) -> dict[str, torch.Tensor]:
    full = sinusoidal(LENGTH, WIDTH).double()
    one_pair = full[:, :2]
    many = one_pair.repeat(1, WIDTH // 2) if control else full
    return {"one sine": full[:, :1], "one sine and its cosine": one_pair, "all pairs": many}


def experiment(given: Given) -> Result:
    found = {name: distances(table) for name, table in tables(given.control).items()}
    collisions = {name: int((away < NEAR).sum()) for name, away in found.items()}
    nearest = {name: away.min().item() for name, away in found.items()}
    sine = sinusoidal(LENGTH, WIDTH)[:, 0]
    rows = [[name, number(collisions[name]), number(nearest[name])] for name in found]
    return Result(
        {f"collisions of {name}": count for name, count in collisions.items()}
        | {"nearest two of all pairs": nearest["all pairs"]},
        {
            "one sine brings positions together": collisions["one sine"] > 0,
            "all pairs together bring none": collisions["all pairs"] == 0,
        },
        [
            Table(f"{LENGTH} positions", ["encoding", "pairs of positions that coincide", "nearest two"], rows),
            Curves("one sine comes back", "position", "value", {"sin(pos)": list(enumerate(sine[:60].tolist()))}),
        ],
        [f"Two positions coincide here when their vectors are less than {NEAR} apart."],
    )


TRUTH = Truth(
    name="collisions",
    row="P4",
    claim="One sinusoid repeats, so two positions may coincide; sine and cosine at falling frequencies do not.",
    refuted_by=f"two of the first {LENGTH} positions with the same vector",
    control="the falling frequencies: every pair gets the first one's",
    experiment=experiment,
)
