"""Slopes: how the log-probability of a written word depends on each input vector.

    gradient × input      (x_i − b_i) · ∂ log p / ∂x_i  at x                            the slope at the sentence itself
    integrated gradients  (x_i − b_i) · ∫₀¹ ∂ log p / ∂x_i  at b + a (x − b)  da         Sundararajan et al. 2017

x_i are the token vectors as embedded, on both sides, before positions; the start token stays as it is. The path comes
from a baseline b: zeros, or every token the unknown one. Integrated gradients add up to the difference between the two
ends of the path; the gap says how well they do here (and how badly the bare slope does).

Knows networks and ids. Refuses to leave gradients behind on the weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from clearhead.decode.step import UNK
from clearhead.errors import UsageError
from clearhead.glass.findings import Clock, Control, Finding
from clearhead.glass.interventions import edits, embedding_of, there
from clearhead.glass.layout import Array
from clearhead.glass.lenses.ranks import mean_spearman
from clearhead.glass.passes import Sentence, batches, whole
from clearhead.glass.trace import Trace
from clearhead.models.protocol import EncoderDecoder
from clearhead.nn.shapes import Float, Int, Tensor
from clearhead.nn.tap import listen
from clearhead.randomness import numpy_generator

Baseline = Literal["unknown", "zero"]

CAVEAT = (
    "A slope along one path from one baseline: another baseline gives other numbers, and a flat spot hides a cause."
)


@dataclass(frozen=True)
class Slopes(Finding):
    """values: (position, source token), for the positions asked about."""

    prefix: Array
    """(position, target token)"""
    gap: Array
    """(position,): the sum of a word's row minus the change of its log-probability from baseline to sentence."""


def gradient_input(network: EncoderDecoder, trace: Trace, baseline: Baseline = "zero") -> Slopes:
    """All written words at once."""
    path = np.array([0.0, 1.0]), np.array([0.0, 1.0])
    return attributed(network, trace, range(len(trace.written)), path, baseline, "gradient × input")


def integrated_gradients(
    network: EncoderDecoder, trace: Trace, positions: Sequence[int], steps: int = 32, baseline: Baseline = "unknown"
) -> Slopes:
    """The words at these positions; `steps` points of the path, placed and weighed by Gauss and Legendre."""
    nodes, weights = np.polynomial.legendre.leggauss(steps)
    path = np.array([0.0, *(nodes + 1) / 2, 1.0]), np.array([0.0, *weights / 2, 0.0])
    return attributed(network, trace, positions, path, baseline, f"integrated gradients, {steps} steps")


@torch.inference_mode(False)
@torch.enable_grad()
def attributed(
    network: EncoderDecoder,
    trace: Trace,
    positions: Sequence[int],
    path: tuple[Array, Array],
    baseline: Baseline,
    method: str,
) -> Slopes:
    """A row for every position and point of the path; the same for a random other word in its place, as control."""
    clock = Clock()
    for position in positions:
        there(position, len(trace.written), "position", grows=False)
    ends, starts = embedded(network, trace, baseline)
    moved = torch.cat([end - start for end, start in zip(ends, starts, strict=True)])
    totals = moved.new_zeros(2, len(positions), *moved.shape)
    changes = np.zeros(len(positions))
    rows = [(row, point) for row in range(len(positions)) for point in range(len(path[0]))]
    for span in batches(len(rows), max(len(trace.source), len(trace.target))):
        own, at = (list(part) for part in zip(*rows[span], strict=True))
        leaves = tuple(on_path(start, end, path[0][at]) for start, end in zip(starts, ends, strict=True))
        tokens = asked(network, trace, [positions[row] for row in own])
        found = log_p(network, Sentence.of(network, trace), leaves, [positions[row] for row in own], tokens)
        weights = torch.tensor(path[1][at]).to(moved)
        for which in (0, 1):
            slopes = torch.autograd.grad(found[which].sum(), leaves, retain_graph=which == 0)
            weighed = torch.cat(slopes, 1) * weights[:, None, None]
            totals[which].index_add_(0, torch.tensor(own, device=moved.device), weighed)
        for row, point, value in zip(own, at, found[0].tolist(), strict=True):
            changes[row] += value * ((point == len(path[0]) - 1) - (point == 0))
    grid, other = (totals * moved).sum(-1).double().cpu().numpy()
    sources, gap = len(trace.source), grid.sum(1) - changes
    return Slopes(
        f"{method}, from {baseline}",
        grid[:, :sources],
        ("position", "token"),
        (tuple(trace.written[p] for p in positions), trace.source),
        clock.cost(len(rows), 2 * len(rows)),
        Control(
            "rank agreement with the map of a random other word (1: the map is not about the word)",
            mean_spearman(grid, other),
        ),
        f"{CAVEAT} {missed(gap, changes, method)}",
        edits(),
        grid[:, sources:],
        gap,
    )


def missed(gap: Array, changes: Array, method: str) -> str:
    """How far the rows are from adding up, in words: attention that turns sharply wants many points of the path."""
    worst = int(np.abs(gap).argmax())
    size, whole = abs(gap[worst]), abs(changes[worst])
    advice = "; more steps come closer" if "steps" in method and size > 0.01 * whole else ""
    return f"The sums of words miss the change from the baseline by at most {size:.3g} (of {whole:.3g}){advice}."


def embedded(
    network: EncoderDecoder, trace: Trace, baseline: Baseline
) -> tuple[list[Float[Tensor, "L D"]], list[Float[Tensor, "L D"]]]:
    """Token vectors of source and target, and those the path comes from."""
    if baseline not in ("unknown", "zero"):
        raise UsageError(f"a path comes from unknown or zero, not from {baseline!r}")
    ends, starts = [], []
    for side in ("source", "target"):
        embedding = embedding_of(network, side)
        table = embedding.table.weight.detach() * embedding.scale
        end = table[trace.ids(side)]
        start = table[UNK].expand_as(end).clone() if baseline == "unknown" else torch.zeros_like(end)
        if side == "target":
            start[0] = end[0]
        ends.append(end)
        starts.append(start)
    return ends, starts


def on_path(start: Float[Tensor, "L D"], end: Float[Tensor, "L D"], points: Array) -> Float[Tensor, "R L D"]:
    """The inputs at these points between start and end."""
    share = torch.tensor(points).to(start)[:, None, None]
    return (start + share * (end - start)).requires_grad_()


def asked(network: EncoderDecoder, trace: Trace, positions: Sequence[int]) -> Int[Tensor, "2 R"]:
    """For each row the word written at its position, and a random other one."""
    written, vocab = trace.ids("written"), len(network.output_weight)
    steps = numpy_generator(1, "glass other words").integers(1, vocab, size=len(written))
    others = [(word + int(step)) % vocab for word, step in zip(written, steps, strict=True)]
    pairs = [[ids[p] for p in positions] for ids in (written, others)]
    return torch.tensor(pairs, device=network.output_weight.device)


def log_p(
    network: EncoderDecoder,
    sentence: Sentence,
    inputs: Sequence[Tensor],
    positions: Sequence[int],
    tokens: Int[Tensor, "2 R"],
) -> Float[Tensor, "2 R"]:
    """In each row, the log-probability of its two tokens at its position, given these embedded tokens."""
    rows = len(positions)
    with inputs_as(network, inputs):
        hidden = network(sentence.source.expand(rows, -1), sentence.target.expand(rows, -1))
    logits = network.logits(hidden[torch.arange(rows), list(positions)][:, None])[:, 0]
    return logits.log_softmax(-1).gather(1, tokens.T).T


@contextmanager
def inputs_as(network: EncoderDecoder, inputs: Sequence[Tensor]) -> Iterator[None]:
    """While the block runs, these are the embedded tokens."""
    given = dict(zip(("source_embedding.tokens", "target_embedding.tokens"), inputs, strict=True))
    with whole(network), listen(network, lambda name, tensor: given[name], given.__contains__):
        yield
