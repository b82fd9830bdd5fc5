"""How likely the model finds a given output: one pass over source and target, no search.

    log P(target | source) = Σ_t log p(target_t | target_<t, source)          EOS included

The score of a finished hypothesis, re-scored here, is the score its search gave it; a parity test holds them together.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from clearhead.decode.decode import length_batches
from clearhead.decode.step import BOS, EOS, PAD, padded
from clearhead.models.protocol import EncoderDecoder
from clearhead.nn.shapes import Float, Tensor

LOGITS = 1 << 24
"""Logits made at a time, at most."""


@torch.inference_mode()
def score(
    model: EncoderDecoder,
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    batch_tokens: int = 4096,
) -> list[float]:
    """For each pair, the log-probability of its target."""
    results = [0.0] * len(sources)
    longest = [max(len(s), len(t)) for s, t in zip(sources, targets, strict=True)]
    for places in length_batches(longest, batch_tokens):
        batch = [sources[i] for i in places], [targets[i] for i in places]
        for place, value in zip(places, score_batch(model, *batch).tolist(), strict=True):
            results[place] = value
    return results


def score_batch(
    model: EncoderDecoder, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> Float[Tensor, "B"]:
    device = model.output_weight.device
    source = padded([[*s, EOS] for s in sources], device)
    target_in = padded([[BOS, *t] for t in targets], device)
    target_out = padded([[*t, EOS] for t in targets], device)
    hidden = model(source, target_in)
    real = target_out != PAD
    values = torch.zeros(real.shape, device=device)
    values[real] = chosen_log_probabilities(model, hidden[real], target_out[real])
    return values.double().sum(1)


def chosen_log_probabilities(model: EncoderDecoder, hidden: Float[Tensor, "R D"], chosen: Tensor) -> Float[Tensor, "R"]:
    """log p of each row's token, a few rows of logits at a time."""
    rows = max(1, LOGITS // model.output_weight.shape[0])
    found = []
    for h, c in zip(hidden.split(rows), chosen.split(rows), strict=True):
        log_p = torch.log_softmax(model.logits(h).float(), -1)
        found.append(log_p.gather(1, c[:, None])[:, 0])
    return torch.cat(found)
