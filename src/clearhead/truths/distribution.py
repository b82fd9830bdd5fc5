"""Finally a fully connected layer and a softmax choose the word (row F1).

    logits = hidden Eᵀ        P(word) = exp(logit) / Σ exp        over the whole vocabulary, not the best few

What is shown adds up to 1: the likeliest words, and "the rest".
"""

from __future__ import annotations

import numpy as np

from clearhead.truths.figure import Bars, Table
from clearhead.truths.translator import SENTENCE, traced, translator
from clearhead.truths.truth import Given, Result, Truth

SHOWN = 6


def experiment(given: Given) -> Result:
    model = translator(given)
    trace = traced(model, SENTENCE)
    hidden, logits = trace["hidden"].astype(np.float64), trace["logits"].astype(np.float64)
    table = model.network.output_weight.detach().double().numpy()
    by_hand = hidden @ table.T
    raised = np.exp(by_hand - by_hand.max(1, keepdims=True))
    chances = by_hand if given.control else raised / raised.sum(1, keepdims=True)
    step = int(np.argmin(np.abs(trace["probabilities"].max(1) - 0.7)))
    best = np.argsort(-chances[step])[:SHOWN]
    shown = {model.tokenizers.target.token(int(i)): float(chances[step, i]) for i in best}
    shown[f"the rest ({chances.shape[1] - SHOWN:,} tokens)"] = float(np.delete(chances[step], best).sum())
    units = trace[next(name for name in reversed(trace.names()) if name.endswith("feedforward.hidden"))]
    fired = np.argsort(-units[step])[:SHOWN]
    rows = [[f"unit {u}", f"{units[step, u]:.3f}"] for u in fired]
    chosen = chances.argmax(1)
    return Result(
        {
            "words in the distribution": chances.shape[1],
            "shown and rest add up to": sum(shown.values()),
            "logits by hand against the model's": float(np.abs(by_hand - logits).max()),
            "chances against the model's": float(np.abs(chances - trace["probabilities"]).max()),
            "share of hidden units that fired": float((units[step] > 0).mean()),
        },
        {
            "every step's chances are positive and add up to 1": bool(
                (chances >= 0).all() and np.abs(chances.sum(1) - 1).max() < 1e-6
            ),
            "they are the model's own": bool(np.abs(chances - trace["probabilities"]).max() < 1e-4),
            "the likeliest is what greedy decoding wrote": chosen.tolist() == trace.ids("written"),
        },
        [
            Bars(f"after {' '.join(trace.target[: step + 1])}: the next token", shown),
            Table("hidden units that fired most, last feed-forward", ["", "value"], rows),
        ],
    )


TRUTH = Truth(
    name="distribution",
    row="F1",
    claim="Finally a fully connected layer and a softmax choose the word.",
    refuted_by="chances that do not add up to 1 over the whole vocabulary, or a word that was not the likeliest",
    control="the softmax",
    experiment=experiment,
)
