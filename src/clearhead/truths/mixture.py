"""Softmax turns similarities into weights; the new value is Σ weight × value (row A2).

weight(n, m) = exp(score(n, m)) / Σ_j exp(score(n, j))        mixed_n = Σ_m weight(n, m) v_m
"""

from __future__ import annotations

import numpy as np

from clearhead.truths.figure import Heat, Table
from clearhead.truths.score import divided, named
from clearhead.truths.translator import SENTENCE, traced, translator
from clearhead.truths.truth import Given, Result, Truth

WHERE = "encoder.layers.0.self_attention"
SHOWN = 4
"""Channels of the values that are shown."""


def experiment(given: Given) -> Result:
    model = translator(given)
    trace = traced(model, SENTENCE)
    scores = trace[f"{WHERE}.scores"].astype(np.float64)
    raised = scores if given.control else np.exp(scores)
    weights = raised if given.control else raised / raised.sum(2, keepdims=True)
    values = trace[f"{WHERE}.value"].astype(np.float64)
    values = values.repeat(len(weights) // len(values), axis=0)
    sums = weights @ values
    head, word = divided(trace[f"{WHERE}.pattern"])
    tokens = list(trace.source)
    rows = [
        [name, f"{weights[head, word, m]:.4f}", *(f"{v:.3f}" for v in weights[head, word, m] * values[head, m, :SHOWN])]
        for m, name in enumerate(named(tokens))
    ]
    rows.append(["Σ", f"{weights[head, word].sum():.4f}", *(f"{v:.3f}" for v in sums[head, word, :SHOWN])])
    rows.append(["the model's own", "", *(f"{v:.3f}" for v in trace[f"{WHERE}.mixed"][head, word, :SHOWN])])
    measured = {
        "weights sum to 1, up to": float(np.abs(weights.sum(2) - 1).max()),
        "smallest weight": float(weights.min()),
        "weights against the model's own": float(np.abs(weights - trace[f"{WHERE}.pattern"]).max()),
        "Σ weight × value against the model's own": float(np.abs(sums - trace[f"{WHERE}.mixed"]).max()),
    }
    return Result(
        measured,
        {
            "the weights of every word are positive and sum to 1": measured["weights sum to 1, up to"] < 1e-6
            and measured["smallest weight"] >= 0,
            "the new value is Σ weight × value": measured["Σ weight × value against the model's own"] < 1e-4,
        },
        [
            Table(
                f"{tokens[word]} reads, head {head}: weight × value, the first {SHOWN} channels",
                ["from", "weight", *(f"channel {c}" for c in range(SHOWN))],
                rows,
            ),
            Heat(f"weights of head {head}", tokens, tokens, weights[head].tolist()),
        ],
    )


TRUTH = Truth(
    name="mixture",
    row="A2",
    claim="Softmax turns similarities into weights; the new value is Σ weight × value.",
    refuted_by="weights that do not sum to 1, or a mixed value that is not the sum shown",
    control="the softmax: the scores themselves are the weights",
    experiment=experiment,
)
