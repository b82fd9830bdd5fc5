"""A convolution sees only its filter's width (row B1).

L layers with filters of 2w + 1 tokens know of at most L · w tokens to each side, however much is learned; one layer
of attention knows of all. One source token is changed, and each memory says how far away anybody noticed.
"""

from __future__ import annotations

import torch

from clearhead.config import ModelSettings
from clearhead.models.build import build
from clearhead.truths.figure import Curves, Table
from clearhead.truths.reach import LENGTH, furthest
from clearhead.truths.truth import Given, Result, Truth

WIDTHS, DEPTHS = (1, 2, 3), (1, 2, 4)


def noticed(kind: str, width: int, layers: int, given: Given) -> int:
    """The furthest token whose memory changes with the middle word."""
    settings = ModelSettings.model_validate(
        {"kind": kind, "d_model": 16, "d_ff": 16, "n_heads": 2, "encoder_layers": layers, "decoder_layers": 1}
        | ({"attention_window": width} if kind == "convolutional" else {})
    )
    model = build(settings, 32, 32, given.seed).double().eval()
    source = torch.randint(5, 32, (1, LENGTH), generator=given.generator("source"))
    other = source.clone()
    other[0, LENGTH // 2] = 5 + (source[0, LENGTH // 2] - 4) % 27
    with torch.no_grad():
        return furthest((model.encode(source).states - model.encode(other).states)[0].abs().amax(-1))


def experiment(given: Given) -> Result:
    narrow = "seq2seq" if given.control else "convolutional"
    found = {(w, n): noticed(narrow, w, n, given) for w in WIDTHS for n in DEPTHS}
    attention = noticed("seq2seq", 1, 1, given)
    rows = [[f"filter of {2 * w + 1}", *(str(found[w, n]) for n in DEPTHS)] for w in WIDTHS]
    rows.append(["attention", *[f"{attention} (all)"] * len(DEPTHS)])
    return Result(
        {f"filter of {2 * w + 1}, {n} layers: reach": reach for (w, n), reach in found.items()}
        | {"attention, 1 layer: reach": attention},
        {
            "a convolution reaches layers × half its filter, and not one token more": all(
                reach == w * n for (w, n), reach in found.items()
            ),
            "one layer of attention reaches the end of the sentence": attention == LENGTH // 2,
        },
        [
            Table("how far a changed word is noticed", ["", *(f"{n} layers" for n in DEPTHS)], rows),
            Curves(
                "reach by depth",
                "layers",
                "tokens",
                {f"filter of {2 * w + 1}": [(n, found[w, n]) for n in DEPTHS] for w in WIDTHS}
                | {"attention": [(n, attention) for n in DEPTHS]},
            ),
        ],
    )


TRUTH = Truth(
    name="filter",
    row="B1",
    claim="A CNN sees only its filter's width.",
    refuted_by="a token beyond layers × half the filter that notices a change",
    control="the filter: attention stands in its place",
    experiment=experiment,
)
