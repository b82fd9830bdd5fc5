"""Gradients of one step: over all batches of the step, per target token, in pieces small enough for the memory.

    loss = Σ over batches L / Σ over batches target tokens

Each sample's dropout is counted by its place among all samples of the step, so cutting a batch in pieces leaves
every mask as it was; only the order of the sums changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch

from clearhead.config import TrainSettings
from clearhead.data.batching import Batch
from clearhead.errors import UsageError
from clearhead.models.protocol import EncoderDecoder
from clearhead.models.seq2seq import Seq2Seq
from clearhead.native import learning
from clearhead.nn.dropout import draws
from clearhead.nn.linear import products_in
from clearhead.nn.shapes import Float, Int, Tensor
from clearhead.randomness import Site
from clearhead.train.loss import rdrop_cross_entropy, smoothed_cross_entropy
from clearhead.train.optim import gradient_norm

SECOND_PASS = 1 << 40
"""R-Drop's second pass draws as if its samples stood this much further on."""
MOST_PIECES = 256


@dataclass(frozen=True)
class Gradients:
    """What a step's batches gave: the mean loss per target token, and the gradients' norm before clipping."""

    loss: float
    norm: float
    target_tokens: int
    pieces: int

    @property
    def finite(self) -> bool:
        return all(map(torch.isfinite, map(torch.tensor, (self.loss, self.norm))))


def compute_gradients(
    model: EncoderDecoder, batches: Sequence[Batch], settings: TrainSettings, step: int, pieces: int = 1
) -> Gradients:
    """Leaves the gradients on the parameters. Out of memory: again, in twice as many pieces."""
    tokens = sum(batch.n_target_tokens for batch in batches)
    while True:
        try:
            loss = accumulate(model, batches, settings, step, tokens, pieces)
            norm = gradient_norm(model.parameters()).item()
            return Gradients(loss, norm, tokens, pieces)
        except (MemoryError, RuntimeError) as error:
            if not out_of_memory(error):
                raise
        if pieces >= max(map(len, batches)) or pieces >= MOST_PIECES:
            raise UsageError(
                f"step {step:,} does not fit in memory, even in {pieces} pieces",
                hint="a smaller model (--size), or a smaller train.batch_tokens or data.max_tokens",
            )
        pieces *= 2


def out_of_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in str(error)


def accumulate(
    model: EncoderDecoder, batches: Sequence[Batch], settings: TrainSettings, step: int, tokens: int, pieces: int
) -> float:
    for parameter in model.parameters():
        parameter.grad = None
    total, place = 0.0, 0
    for batch in batches:
        for rows in cut(len(batch), pieces):
            loss = piece_loss(model, batch, rows, settings, step, place) / tokens
            loss.backward()
            total += loss.item()
            place += len(batch.rows[rows])
    return total


def cut(rows: int, pieces: int) -> list[slice]:
    """0 … rows in at most `pieces` runs of nearly equal length."""
    pieces = min(pieces, rows)
    edges = [rows * i // pieces for i in range(pieces + 1)]
    return [slice(a, b) for a, b in pairwise(edges)]


def piece_loss(
    model: EncoderDecoder, batch: Batch, rows: slice, settings: TrainSettings, step: int, place: int
) -> Float[Tensor, ""]:
    """The loss summed over these rows' target tokens."""
    device = model.output_weight.device
    source, target_in, target_out = (
        torch.from_numpy(ids[rows]).to(device) for ids in (batch.source, batch.target_in, batch.target_out)
    )
    places = torch.arange(place, place + len(source), device=device)
    if settings.rdrop:
        source, target_in = torch.cat((source, source)), torch.cat((target_in, target_in))
        places = torch.cat((places, places + SECOND_PASS))
    precision = torch.bfloat16 if settings.precision == "bf16" else torch.float32
    with products_in(precision), draws(Site(settings.seed, "dropout", step), places):
        hidden = hidden_rows(model, source, target_in)
        targets = target_out[target_out != model.pad]
        if settings.rdrop:
            return rdrop_cross_entropy(hidden, model.output_weight, targets, settings.label_smoothing, settings.rdrop)
        return smoothed_cross_entropy(hidden, model.output_weight, targets, settings.label_smoothing)


def hidden_rows(model: EncoderDecoder, source: Int[Tensor, "B S"], target: Int[Tensor, "B T"]) -> Float[Tensor, "R D"]:
    """The hidden state at every real token of the targets, one sequence after the other."""
    if isinstance(model, Seq2Seq) and learning.knows(model):
        return learning.hidden_rows(model, source, target)
    hidden: Tensor = model(source, target)
    return hidden[target != model.pad]
