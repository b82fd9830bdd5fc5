"""Layer norm looks along the channels of one token, batch norm along the batch (row L1).

    y = (x − mean) / √(var + ε) · γ + β        mean and var over which axes?

So another sentence in the batch cannot touch a token under layer norm, and does under batch norm. On sequences batch
norm runs over all tokens of all sentences: they are its batch, as all pixels of all pictures are in a convolution.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from clearhead.nn.norm import BatchNorm, build_norm
from clearhead.truths.figure import Bars, Listing, Table
from clearhead.truths.truth import Given, Result, Truth

SENTENCES, WORDS, CHANNELS = 3, 4, 16
AXES = """
             linear layer          convolution               sequence
             (batch, channel)      (batch, channel, place)   (batch, word, channel)

batch norm   over batch            over batch and place      over batch and word       one mean per channel
layer norm   over channel          –                         over channel              one mean per word

             channel →             one word's channels        ■ ■ ■ ■ ■ ■ ■ ■   layer norm: these, alone
      word   □ □ □ □ □ ▣ □ □
         ↓   □ □ □ □ □ ▣ □ □       one channel's words        ▣ over all words of all sentences: batch norm
             ■ ■ ■ ■ ■ ■ ■ ■
             □ □ □ □ □ ▣ □ □
""".strip("\n").splitlines()


def moved(norm: nn.Module, batch: Tensor, others: Tensor) -> Tensor:
    """How far the outputs for `batch` go when `others` join it."""
    with torch.no_grad():
        alone, together = norm.train()(batch), norm(torch.cat((batch, others)))
    return (together[: len(batch)] - alone).abs().amax((1, 2))


def experiment(given: Given) -> Result:
    draw = given.generator("sentences")
    batch = torch.randn(SENTENCES, WORDS, CHANNELS, generator=draw)
    stranger = 2 + 3 * torch.randn(1, WORDS, CHANNELS, generator=draw)
    layer = build_norm("batch" if given.control else "layer", CHANNELS)
    with torch.no_grad():
        normed = layer(batch)
    by_layer, by_batch = moved(layer, batch, stranger), moved(BatchNorm(CHANNELS), batch, stranger)
    mean, deviation = normed.mean(-1).abs().max().item(), (normed.std(-1, correction=0) - 1).abs().max().item()
    rows = [
        [f"sentence {i}", f"{a:.4f}", f"{b:.4f}"]
        for i, (a, b) in enumerate(zip(by_layer.tolist(), by_batch.tolist(), strict=True))
    ]
    return Result(
        {
            "a word's mean is off 0 by": mean,
            "its deviation is off 1 by": deviation,
            "layer norm moves by": by_layer.max().item(),
            "batch norm moves by": by_batch.min().item(),
        },
        {
            "layer norm: mean 0 and deviation 1 over the channels of every word": mean < 1e-4 and deviation < 1e-3,
            "layer norm: another sentence in the batch changes nothing": by_layer.max().item() == 0.0,
            "batch norm: it changes every sentence": by_batch.min().item() > 0.01,
        },
        [
            Listing("which axes?", AXES),
            Table("a stranger joins the batch: outputs move by", ["", "layer norm", "batch norm"], rows),
            Bars("batch norm", {f"sentence {i}": value for i, value in enumerate(by_batch.tolist())}),
        ],
        [
            "Then scale γ and shift β, learned; they start at 1 and 0.",
            "Training curves of both: clearhead show norm-curves",
        ],
    )


TRUTH = Truth(
    name="norms",
    row="L1",
    claim="Layer norm: mean 0, deviation 1 over the channels of one token; batch norm takes the batch instead and does "
    "not suit sequences.",
    refuted_by="a token that layer norm changes because of another sentence in its batch",
    control="the layer norm: batch norm stands in its place",
    experiment=experiment,
)
