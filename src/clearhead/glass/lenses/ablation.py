"""Ablation: take parts away, or put another sentence's in, and measure what the output loses. Exact, in batches.

    head map     every head of every attention replaced, one at a time: effect on each written word
                 zero      takes the model where it never was
                 mean      the head's mean over positions (of this sentence, and of others if given)
                 resample  what the head mixed at another position, drawn
    patch map    one place of one layer taken from another sentence; 0 = nothing moved, 1 = all of the difference

Many heads can go without harm, because others stand in (Michel et al. 2019; Voita et al. 2019): a small effect does
not mean "useless". Knows networks and traces. Refuses to estimate.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from clearhead.errors import UsageError
from clearhead.glass.findings import Clock, Control, Finding
from clearhead.glass.interventions import edits, patch_change, there
from clearhead.glass.layout import Array
from clearhead.glass.passes import Change, Sentence, chosen, under
from clearhead.glass.trace import Trace
from clearhead.models.protocol import EncoderDecoder
from clearhead.nn.shapes import Tensor
from clearhead.randomness import numpy_generator

Kind = Literal["mean", "zero", "resample"]


@dataclass(frozen=True)
class HeadMap(Finding):
    """values: (attention, head, position): log-probability each written word loses without the head."""

    totals: Array
    """(attention, head): the same for the whole output."""


@torch.inference_mode()
def head_map(
    network: EncoderDecoder, trace: Trace, kind: Kind = "mean", others: Sequence[Trace] = (), seed: int = 1
) -> HeadMap:
    """Every head replaced, one at a time."""
    clock = Clock()
    paths = trace.attentions()
    heads = [(path, head) for path in paths for head in range(len(trace[f"{path}.pattern"]))]
    pools = {path: np.concatenate([t[f"{path}.mixed"] for t in (trace, *others)], 1) for path in paths}
    cuts = [(f"{p}.mixed", replaced(pools[p][h], h, kind, seed, i)) for i, (p, h) in enumerate(heads)]
    sentence, base = Sentence.of(network, trace), trace["written_log_probabilities"].astype(np.float64)
    found = under(network, sentence, cuts, chosen).double().cpu().numpy()
    values = (base - found[:-1]).reshape(len(paths), -1, len(base))
    where = "this sentence" if not others else f"this sentence and {len(others)} others"
    return HeadMap(
        f"{kind} ablation of every head" + ("" if kind == "zero" else f", over the positions of {where}"),
        values,
        ("attention", "head", "position"),
        (tuple(paths), None, trace.written),
        clock.cost(len(found)),
        Control("largest change with no head replaced", float(np.abs(base - found[-1]).max())),
        "What is lost without one head; a small effect may mean that another stands in for it.",
        edits(),
        values.sum(2),
    )


def replaced(pool: Array, head: int, kind: Kind, seed: int, row: int) -> Change:
    """Of one row's mixed values (head, position, channel). `pool`: the head's values wherever they are known."""
    if kind not in ("mean", "zero", "resample"):
        raise UsageError(f"a head is replaced by mean, zero or resample, not {kind!r}")

    def change(mixed: Tensor) -> Tensor:
        mixed = mixed.clone()
        if kind == "zero":
            mixed[head] = 0.0
        elif kind == "mean":
            mixed[head] = torch.tensor(pool.mean(0)).to(mixed)
        else:
            drawn = numpy_generator(seed, "glass resample", row).integers(len(pool), size=mixed.shape[1])
            mixed[head] = torch.tensor(pool[drawn]).to(mixed)
        return mixed

    return change


@dataclass(frozen=True)
class PatchMap(Finding):
    """values: (record, place): share of the difference that this one activation carries over."""

    from_difference: float
    """The logit difference of the two words in this sentence …"""
    to_difference: float
    """… and in the other one, both after the same words."""


@torch.inference_mode()
def patch_map(
    network: EncoderDecoder,
    trace: Trace,
    donor: Trace,
    position: int,
    instead: int,
    direction: Literal["denoising", "noising"] = "denoising",
    names: Sequence[str] = (),
) -> PatchMap:
    """Run `trace`, take one activation from `donor`, and see how far the logit of the word written at `position`
    minus that of the token `instead` moves to where the donor has it.

    Denoising: `trace` is the corrupted run, `donor` the clean one (sufficient?); noising: the other way (necessary?).
    """
    clock = Clock()
    comparable(trace, donor, position)
    names = names or layer_ends(trace)
    word, sentence = trace.ids("written")[position], Sentence.of(network, trace)

    def difference(network: EncoderDecoder, hidden: Tensor, written: Tensor) -> Tensor:
        logits = network.logits(hidden[:, position : position + 1])[:, 0]
        return (logits[:, word] - logits[:, instead])[:, None]

    places = [(name, place) for name in names for place in range(len(trace[name]))]
    own = [(name, patch_change(trace, name, {place: place})) for name, place in places[:: max(1, len(places) // 4)]]
    moves = [(name, patch_change(donor, name, {place: place})) for name, place in places]
    found = under(network, sentence, [*moves, *own], difference).double().cpu().numpy()[:, 0]
    start, end = found[-1], under(network, Sentence.of(network, donor), [], difference)[0, 0].item()
    if abs(end - start) < 1e-6:
        raise UsageError("the two sentences do not differ in this logit difference: there is nothing to carry over")
    values = np.full((len(names), max(len(trace[name]) for name in names)), np.nan)
    for (name, place), value in zip(places, found, strict=False):
        values[list(names).index(name), place] = (value - start) / (end - start)
    return PatchMap(
        f"activation patching ({direction}), logit difference of tokens {word} and {instead} at position {position}",
        values,
        ("record", "place"),
        (tuple(names), None),
        clock.cost(len(found) + 1),
        Control("largest share moved by patching the sentence with itself", self_patched(found, len(moves), end)),
        "Exact for one place at a time; denoising asks what suffices, noising what is needed, and they may differ.",
        edits(),
        float(start),
        float(end),
    )


def self_patched(found: Array, moves: int, end: float) -> float:
    start = found[-1]
    return float(np.abs((found[moves:-1] - start) / (end - start)).max(initial=0.0))


def comparable(trace: Trace, donor: Trace, position: int) -> None:
    there(position, len(trace.written), "position", grows=False)
    if trace.ids("target") != donor.ids("target") or len(trace.source) != len(donor.source):
        raise UsageError(
            f"patching needs two sources of equal length ({len(trace.source)} and {len(donor.source)} tokens here) "
            "and the same words of the output",
            hint="trace the other source with the same target",
        )


def layer_ends(trace: Trace) -> list[str]:
    """The stream after the embedding and after every layer, encoder first."""
    ends = [
        n for n in trace if re.fullmatch(r"(\w+_embedding\.sum|(encoder|decoder)\.layers\.\d+(\.\w+\.after|\.out))", n)
    ]
    return [n for i, n in enumerate(ends) if i + 1 == len(ends) or layer_of(n) != layer_of(ends[i + 1])]


def layer_of(name: str) -> tuple[str, ...]:
    return tuple(name.split(".")[:3])
