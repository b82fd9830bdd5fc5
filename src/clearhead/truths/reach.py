"""Long sequences: every token need not read every token (row G6).

    everything    n² scores, one layer reaches everywhere
    local         at most 2w + 1 keys a query, L layers reach L · w tokens
    strided       besides, every s-th token: far places in one step

Reach is tried, not derived: one source token is changed, and the memory says which others noticed.
"""

from __future__ import annotations

from typing import Any

import torch

from clearhead.config import ModelSettings
from clearhead.models.build import build
from clearhead.nn import masks
from clearhead.truths.figure import Curves, Heat, Table
from clearhead.truths.truth import Given, Result, Truth

LENGTH, WINDOW, STRIDE, LAYERS = 48, 3, 8, 3
PATTERNS: dict[str, dict[str, Any]] = {
    "everything": {},
    "local": {"attention_window": WINDOW},
    "strided": {"attention_window": WINDOW, "attention_stride": STRIDE},
}


def mask(name: str, length: int) -> torch.Tensor:
    if name == "local":
        return masks.window(length, length, WINDOW)[0, 0]
    if name == "strided":
        return masks.strided(length, length, WINDOW, STRIDE)[0, 0]
    return torch.ones(length, length, dtype=torch.bool)


def noticed(pattern: dict[str, Any], layers: int, given: Given) -> torch.Tensor:
    """How far every token's memory moves when the middle one is another word."""
    settings = ModelSettings(d_model=16, d_ff=16, n_heads=2, encoder_layers=layers, decoder_layers=1, **pattern)
    model = build(settings, 32, 32, given.seed).double().eval()
    source = torch.randint(5, 32, (1, LENGTH), generator=given.generator("source"))
    other = source.clone()
    other[0, LENGTH // 2] = 5 + (source[0, LENGTH // 2] - 4) % 27
    with torch.no_grad():
        return (model.encode(source).states - model.encode(other).states)[0].abs().amax(-1)


def furthest(moved: torch.Tensor) -> int:
    """How far from the middle the furthest token stands that noticed at all."""
    return max(abs(place - LENGTH // 2) for place in moved.nonzero()[:, 0].tolist())


def experiment(given: Given) -> Result:
    patterns = {name: {} if given.control else pattern for name, pattern in PATTERNS.items()}
    reach = {name: [furthest(noticed(p, n, given)) for n in range(1, LAYERS + 1)] for name, p in patterns.items()}
    names = {name: "everything" if given.control else name for name in PATTERNS}
    lengths = (64, 128, 256, 512, 1024)
    cost = {name: [(float(n), float(mask(names[name], n).sum())) for n in lengths] for name in PATTERNS}
    growth = {name: points[-1][1] / points[-2][1] for name, points in cost.items()}
    rows = [[name, *map(str, reach[name]), f"{cost[name][-1][1]:,.0f}", f"×{growth[name]:.2f}"] for name in PATTERNS]
    shown = 24
    places = [""] * shown
    pictures = [
        Heat(f"who may read whom: {n}", places, places, mask(names[n], shown).float().tolist()) for n in PATTERNS
    ]
    return Result(
        {f"{name}: reach of {LAYERS} layers": reach[name][-1] for name in PATTERNS}
        | {f"{name}: scores at {lengths[-1]} tokens": cost[name][-1][1] for name in PATTERNS},
        {
            f"local attention reaches layers × {WINDOW} tokens, and not one more": (
                reach["local"] == [WINDOW * (n + 1) for n in range(LAYERS)]
            ),
            "everything and strided reach the ends of the sentence": reach["everything"][0] == LENGTH // 2
            and reach["strided"][-1] == LENGTH // 2,
            "twice the tokens are twice the scores when local, four times otherwise": growth["local"] < 2.1
            and growth["everything"] == 4,
        },
        [
            Table(
                "reach and cost by pattern",
                [
                    "",
                    *(f"{n + 1} layers reach" for n in range(LAYERS)),
                    f"scores at {lengths[-1]}",
                    "tokens ×2: scores",
                ],
                rows,
            ),
            Curves("scores by length", "tokens", "scores", cost, log_x=True, log_y=True),
            *pictures,
        ],
        [f"Strided keeps 1/{STRIDE} of all scores: cheaper everywhere, but still quadratic."],
    )


TRUTH = Truth(
    name="reach",
    row="G6",
    claim="Long sequences: local, dilated and global attention patterns; what they cost and how far they reach.",
    refuted_by="a token beyond layers × window that notices a change, or a local pattern of quadratic cost",
    control="the patterns: every token reads every token",
    experiment=experiment,
)
