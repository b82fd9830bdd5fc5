"""Cross-attention: the query from the decoder, keys and values from the encoder (row D2).

Where an output word read from is one question; what it would have become without a source word is another, and only
the second is causal. Both are shown side by side, with how far they agree: attention is "read from", never "why".
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from clearhead.decode.step import BOS
from clearhead.glass.lenses.ranks import spearman
from clearhead.glass.trace import Trace
from clearhead.nn.tap import listen
from clearhead.truths.figure import Heat, Table
from clearhead.truths.translator import SENTENCES, traced, translator
from clearhead.truths.truth import Given, Result, Truth
from clearhead.verbs.model import Model

NEEDED = 1.0
"""Nats an output word must lose without some source word to be said to depend on the source."""


def blunt(name: str, pattern: Tensor) -> Tensor:
    """Cross-attention that cannot choose: every source word alike."""
    return torch.full_like(pattern, 1 / pattern.shape[-1])


def read_from(trace: Trace) -> np.ndarray:
    """Mean weight over layers and heads: output word by source word."""
    patterns = [trace[name].mean(0) for name in trace.names("pattern") if trace.across(name)]
    mean: np.ndarray = np.mean(patterns, axis=0)
    return mean


@torch.inference_mode()
def missed(model: Model, source: list[int], written: list[int]) -> np.ndarray:
    """How much log-probability each output word loses when one source word is left out."""
    rows = [source, *(source[:m] + source[m + 1 :] for m in range(len(source) - 1))]
    found = []
    for row in rows:
        hidden = model.network(torch.tensor([row]), torch.tensor([[BOS, *written[:-1]]]))[0]
        chances = model.network.logits(hidden).log_softmax(-1)
        found.append(chances.gather(1, torch.tensor(written)[:, None])[:, 0])
    return (found[0] - torch.stack(found[1:])).T.numpy()


def rank_correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Spearman's; 0 when one of them cannot tell its places apart."""
    found = spearman(np.round(a, 6), np.round(b, 6))
    return 0.0 if math.isnan(found) else found


def both(given: Given, model: Model, text: str) -> tuple[Trace, np.ndarray, np.ndarray]:
    """(trace, read from, missed) of one sentence, the source's EOS left aside."""

    def look() -> tuple[Trace, np.ndarray, np.ndarray]:
        trace = traced(model, text)
        return trace, read_from(trace)[:, :-1], missed(model, trace.ids("source"), trace.ids("written"))

    if not given.control:
        return look()
    with listen(model.network, blunt, lambda name: name.endswith("cross_attention.pattern")):
        return look()


def experiment(given: Given) -> Result:
    model = translator(given)
    looked = [both(given, model, text) for text in SENTENCES]
    agreements = [
        rank_correlation(weights, loss)
        for _, read, lost in looked
        for weights, loss in zip(read, lost, strict=True)
        if len(weights) > 2
    ]
    pairs = [pair for _, read, lost in looked for pair in zip(read, lost, strict=True) if pair[1].max() > NEEDED]
    hits = float(np.mean([weights.argmax() == loss.argmax() for weights, loss in pairs])) if pairs else 0.0
    guessed = float(np.mean([1 / len(weights) for weights, _ in pairs])) if pairs else 0.0
    trace, read, lost = looked[0]
    words, sources = list(trace.written), list(trace.source[:-1])
    rows = [
        [word, sources[r.argmax()], sources[m.argmax()], f"{m.max():.2f}"]
        for word, r, m in zip(words, read, lost, strict=True)
    ]
    return Result(
        {
            f"output words that lose {NEEDED:g} nat without a source word": len(pairs),
            "of these, most read is most missed": hits,
            "by guessing": guessed,
            "rank correlation of reading and missing, over all": float(np.mean(agreements)),
        },
        {
            "output words depend on source words": len(pairs) > 0,
            "these words read most from what they miss most: mostly, and far above guessing": hits
            > max(0.5, 3 * guessed),
        },
        [
            Table("per output word", ["wrote", "read most from", "misses most", "loses (nats)"], rows),
            Heat("read from (mean of layers and heads)", words, sources, read.tolist(), 0.0, 1.0),
            Heat("missed: log P lost without the source word", words, sources, lost.tolist()),
        ],
        ["Reading is not a reason: the two agree on the whole, not word by word."],
    )


TRUTH = Truth(
    name="reading",
    row="D2",
    claim="Encoder-decoder attention: the query from the decoder, keys and values from the encoder; it keeps track of "
    "the significant input words.",
    refuted_by="output words that lose nothing without any source word, or reading unrelated to what is missed",
    control="the choice: cross-attention reads every source word alike",
    experiment=experiment,
)
