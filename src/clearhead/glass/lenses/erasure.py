"""Leave one out: what every written word loses when one token is not there. Exact, all tokens in one batch.

    effect(t, i) = log p(y_t | all) − log p(y_t | all but token i)           above 0: the token helped

Source tokens (EOS among them) and tokens of the output written so far are both left out: the source alone is half
the story (Ferrando et al. 2022). Deleting moves the tokens behind it; `how="unknown"` puts the unknown token there.

Knows networks and ids. Refuses to call attention a cause: `agreement` says how far the two go together here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from clearhead.decode.step import UNK, padded
from clearhead.errors import UsageError
from clearhead.glass.findings import Clock, Control, Finding
from clearhead.glass.interventions import across, edits
from clearhead.glass.layout import Array
from clearhead.glass.lenses.ranks import mean_spearman, unit_ranks
from clearhead.glass.passes import Sentence, batches, chosen, spread, whole
from clearhead.glass.trace import Trace
from clearhead.models.protocol import EncoderDecoder
from clearhead.nn.shapes import Float, Tensor
from clearhead.randomness import numpy_generator

How = Literal["delete", "unknown"]
SHUFFLES = 200


@dataclass(frozen=True)
class LeftOut(Finding):
    """values: (position, source token)."""

    prefix: Array
    """(position, target token): the same for what the decoder had read; nan where it was not read yet, and for the
    start token, which cannot be left out."""


@torch.inference_mode()
def leave_one_out(network: EncoderDecoder, trace: Trace, how: How = "delete") -> LeftOut:
    """Every source token and every token of the output, one at a time."""
    clock = Clock()
    if how not in ("delete", "unknown"):
        raise UsageError(f"a token is left out by delete or unknown, not {how!r}")
    sentence, base = Sentence.of(network, trace), trace["written_log_probabilities"].astype(np.float64)
    source = source_rows(network, sentence, how).double().cpu().numpy()
    prefix = np.full((len(base), len(base)), np.nan)
    if len(base) > 1:
        rows = prefix_rows(network, sentence, how).double().cpu().numpy()
        for j, row in enumerate(rows, start=1):
            prefix[j:, j] = base[j:] - row[j - 1 :][: len(base) - j]
    return LeftOut(
        f"leave one out ({how})",
        (base - source[1:]).T,
        ("position", "token"),
        (trace.written, trace.source),
        clock.cost(len(source) + len(base) - 1),
        Control("largest change with nothing left out", float(np.abs(source[0] - base).max())),
        "What the word loses without the token, all ways together; tokens that stand in for each other show little.",
        edits(),
        prefix,
    )


def without(ids: list[int], place: int, how: How) -> list[int]:
    return [*ids[:place], *([UNK] if how == "unknown" else []), *ids[place + 1 :]]


def source_rows(network: EncoderDecoder, sentence: Sentence, how: How) -> Float[Tensor, "R T"]:
    """Log-probabilities of the words: first of the whole source, then without each of its tokens."""
    ids = sentence.source[0].tolist()
    rows = [ids, *(without(ids, place, how) for place in range(len(ids)))]
    found = []
    with whole(network):
        for span in batches(len(rows), max(len(ids), sentence.target.shape[1])):
            hidden = network(padded(rows[span], sentence.source.device), repeated(sentence.target, rows[span]))
            found.append(chosen(network, hidden, sentence.written))
    return torch.cat(found)


def prefix_rows(network: EncoderDecoder, sentence: Sentence, how: How) -> Float[Tensor, "R T"]:
    """Log-probabilities of the words that follow, without each token of the output in turn; row 0 lacks token 1.

    A row starts at the token left out: the first word it tells of is the one that token would have come before.
    """
    ids, written = sentence.target[0].tolist(), sentence.written
    found = []
    with whole(network):
        memory = network.encode(sentence.source)
        for span in batches(len(ids) - 1, len(ids)):
            places = range(span.start + 1, span.stop + 1)
            rows = torch.tensor([without(ids, place, how) for place in places], device=written.device)
            hidden = network.decode(rows, spread(memory, len(rows)))
            later = hidden[:, : len(ids) - 1] if how == "delete" else hidden[:, 1:]
            found.append(chosen(network, later, written[1:]))
    return torch.cat(found)


def repeated(tensor: Tensor, rows: Sequence[object]) -> Tensor:
    return tensor.expand(len(rows), -1)


@dataclass(frozen=True)
class Share(Finding):
    """values: (position,): between 0 (all from the output so far) and 1 (all from the source)."""


def source_share(found: LeftOut) -> Share:
    """How much of each word's effects come from the source rather than from the words before it."""
    clock = Clock()
    source = np.abs(found.values).sum(1)
    prefix = np.nansum(np.abs(found.prefix), 1)
    evenly = [found.values.shape[1] / (found.values.shape[1] + t) for t in range(len(source))]
    values = source / np.maximum(source + prefix, 1e-30)
    return Share(
        f"source share, by {found.method}",
        values,
        ("position",),
        (found.labels[0],),
        clock.cost(),
        Control("mean share if every token mattered alike", float(np.mean(evenly))),
        "Sizes of single deletions, which overlap; a falling share can mean the output runs on by itself.",
        found.edits,
    )


@dataclass(frozen=True)
class Agreement(Finding):
    """values: (attention, head): rank agreement of each cross-attention head with leave-one-out, mean over words."""

    overall: float
    """Of the mean attention over all layers and heads."""


def agreement(trace: Trace, found: LeftOut) -> Agreement:
    """Spearman's ρ between attention to the source and what leaving each source token out does, on this sentence."""
    clock = Clock()
    paths = [path for path in trace.attentions() if across(path)]
    effect = np.abs(found.values)
    values = np.array([[mean_spearman(head, effect) for head in trace[f"{path}.pattern"]] for path in paths])
    together = np.mean([trace[f"{path}.pattern"].mean(0) for path in paths], 0)
    return Agreement(
        "rank agreement of cross-attention and leave-one-out",
        values,
        ("attention", "head"),
        (tuple(paths), None),
        clock.cost(),
        Control("95th percentile with the tokens' effects shuffled", by_chance(together, effect)),
        "On this sentence only; where it is low, attention says little about what mattered.",
        found.edits,
        mean_spearman(together, effect),
    )


def by_chance(attention: Array, effect: Array) -> float:
    """What shuffled effects reach in one of twenty."""
    draws = numpy_generator(1, "glass shuffles")
    ours, theirs = unit_ranks(attention), unit_ranks(effect)
    known = (ours.any(1) & theirs.any(1)).sum()
    found = [(ours * draws.permuted(theirs, axis=1)).sum() for _ in range(SHUFFLES)]
    return float(np.quantile(found, 0.95)) / max(known, 1)
