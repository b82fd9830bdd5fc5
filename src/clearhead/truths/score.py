"""One score taken apart: every product of a query with a key, and what the score then does (row A1).

    score(n, m) = Σ_c q_n[c] · k_m[c] / √d_k

How much word m moves word n is tried: push m's value a little and see how far n's mix goes.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from clearhead.glass.trace import Trace
from clearhead.nn.tap import listen
from clearhead.truths.figure import Bars, Heat, Table
from clearhead.truths.translator import SENTENCE, traced, translator
from clearhead.truths.truth import Given, Result, Truth
from clearhead.verbs.model import Model

WHERE = "encoder.layers.0.self_attention"
PUSH = 0.5


def without_query(name: str, tensor: Tensor) -> Tensor:
    return tensor * 0.0


def look(given: Given, model: Model) -> Trace:
    if not given.control:
        return traced(model, SENTENCE)
    with listen(model.network, without_query, lambda name: name == f"{WHERE}.query"):
        return traced(model, SENTENCE)


def mixed(given: Given, model: Model, source: list[int], head: int, pushed: int | None) -> Tensor:
    """What the head mixes for every word, while one word's value is pushed."""
    found = {}

    def hear(name: str, tensor: Tensor) -> Tensor:
        if name.endswith("value") and pushed is not None:
            tensor = tensor.clone()
            tensor[0, head * tensor.shape[1] // model.experiment.model.n_heads, pushed, 0] += PUSH
        found[name] = tensor
        return tensor * 0.0 if name.endswith("query") and given.control else tensor

    names = {f"{WHERE}.{part}" for part in ("query", "value", "mixed")}
    with torch.inference_mode(), listen(model.network, hear, names.__contains__):
        model.network.encode(torch.tensor([source]))
    return found[f"{WHERE}.mixed"][0, head]


def experiment(given: Given) -> Result:
    model = translator(given)
    trace = look(given, model)
    scores, scale = trace[f"{WHERE}.scores"], float(trace[f"{WHERE}.scale"])
    head, word = divided(trace[f"{WHERE}.pattern"])
    query, key = (
        trace[f"{WHERE}.query"][head],
        trace[f"{WHERE}.key"][head * model.experiment.model.kv_heads // len(scores)],
    )
    there = int(scores[head, word].argmax())
    products = query[word] * key[there]
    by_hand = query @ key.T * scale
    bias = trace[f"{WHERE}.bias"][head] if f"{WHERE}.bias" in trace else 0.0
    still = mixed(given, model, trace.ids("source"), head, None)[word]
    pushed = [mixed(given, model, trace.ids("source"), head, m)[word] for m in range(len(trace.source))]
    influence = np.array([(one - still).norm().item() / PUSH for one in pushed])
    row, tokens = scores[head, word], list(trace.source)
    order = np.argsort(row)
    rows = [
        [f"channel {c}", f"{query[word, c]:.3f}", f"{key[there, c]:.3f}", f"{p:.3f}"] for c, p in enumerate(products)
    ]
    total = float(products.sum())
    return Result(
        {
            "products": len(products),
            "their sum": total,
            "score": float(row[there]),
            "largest difference from the sums of products": float(np.abs(by_hand + bias - scores[head]).max()),
            "spread of the scores": float(np.ptp(row)),
            "a word's score with itself": float(row[word]),
        },
        {
            "every score is the sum of its products over √d_k": bool(
                np.abs(by_hand + bias - scores[head]).max() < 1e-3
            ),
            "scores tell words apart": bool(np.ptp(row) > 0.1),
            "a larger score is a larger influence, for every word": bool((np.diff(influence[order]) > -1e-5).all()),
        },
        [
            Table(f"{tokens[word]} asks, {tokens[there]} answers", ["", "query", "key", "product"], rows),
            Heat(f"scores of head {head}: query by key", tokens, tokens, scores[head].tolist()),
            Bars(
                "moves when the word's value is pushed by 1", dict(zip(named(tokens), influence.tolist(), strict=True))
            ),
        ],
        [f"Sum {total:.4f} × 1/√d_k {scale:.4f} = {total * scale:.4f}. The word itself is asked too."],
    )


def divided(pattern: np.ndarray) -> tuple[int, int]:
    """The head and the word whose attention is most evenly divided between one word and all others."""
    head, word = np.unravel_index(np.abs(pattern.max(2) - 0.5).argmin(), pattern.shape[:2])
    return int(head), int(word)


def named(tokens: list[str]) -> list[str]:
    """Names that differ, so that a token said twice has two bars."""
    return [f"{place} {token}" for place, token in enumerate(tokens)]


TRUTH = Truth(
    name="score",
    row="A1",
    claim="Query · key is the similarity of a word with every word, itself included; large means more influence.",
    refuted_by="a score that is not its products' sum, or a word with a larger score and a smaller influence",
    control="the queries of that attention",
    experiment=experiment,
)
