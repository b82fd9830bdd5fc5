"""A logit's direct contributions: what the embedding, every head and every feed-forward part put straight into it.

The decoder's stream is a sum, so the last hidden state is one too, once the norms on the way are taken with the mean
and variance they had in this pass: a norm is then a linear map, applied to each part by itself.

    logit = Σ_parts  row · norm(part)  +  the norms' own biases  +  the word's            exact, by construction
    pre-norm: only the final norm lies on the way;  post-norm (2017): every norm after the part

Knows a trace and rows of the output table. Refuses to know torch. Indirect ways (through later heads) are not counted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from clearhead.errors import UsageError
from clearhead.glass.findings import Clock, Control, Finding
from clearhead.glass.layout import Array
from clearhead.glass.opened import statistics
from clearhead.glass.table import Lineage, added
from clearhead.glass.trace import Trace

Parts = list[tuple[str, Array]]

CAVEAT = "Direct ways only: what a part does through later parts is in theirs; norms are held as they were."


@dataclass(frozen=True)
class Direct(Finding):
    """values: (part, position), or (part, position, word) of several words at each position."""

    gap: float
    """Largest difference between the sum of the parts and the recorded logit."""


def direct_logits(trace: Trace, rows: Array | None = None, bias: Array | None = None) -> Direct:
    """The parts of every written word's logit; or with rows (position, channel), of anything linear in the hidden
    state: another word's row, or the difference of two ("why this one rather than that one"). Rows (position, word,
    channel) take several words of each position apart. `bias`: what the output adds to those words by itself."""
    clock = Clock()
    if rows is None:
        rows, biased = trace["written_rows"], "written_bias" in trace
        bias = trace["written_bias"] if biased else None
    chosen = np.asarray(rows, np.float64)
    parts = stream_parts(trace)
    names = tuple(name for name, _ in parts)
    values = np.stack([reached(part, chosen) for _, part in parts])
    recorded = reached(trace["hidden"].astype(np.float64), chosen)
    if bias is not None:
        own = np.asarray(bias, np.float64)
        names, values, recorded = (*names, "written_bias"), np.concatenate((values, own[None])), recorded + own
    gap = float(np.abs(values.sum(0) - recorded).max())
    shuffled = np.roll(chosen, 1, axis=0)
    chance = float(np.mean([np.abs(reached(part, shuffled)).mean() for _, part in parts]))
    control = Control("mean size of a part's contribution to a word of another position", chance)
    several = chosen.ndim > 2
    labels = (names, trace.written, None) if several else (names, trace.written)
    axes = ("part", "position", "word") if several else ("part", "position")
    edits = trace.provenance.edits
    return Direct("direct logit attribution", values, axes, labels, clock.cost(), control, CAVEAT, edits, gap)


def reached(part: Array, rows: Array) -> Array:
    """A part's product with the rows of each position."""
    return np.einsum("tc,t...c->t...", part, rows)


def is_sum(trace: Trace) -> bool:
    """Has this decoder a stream of residuals, so that its logits are sums?"""
    return bool(residuals_of(trace))


def residuals_of(trace: Trace) -> list[str]:
    return [n.removesuffix(".after") for n in trace if re.fullmatch(r"decoder\.layers\.\d+\.\w+_residual\.after", n)]


def stream_parts(trace: Trace) -> Parts:
    """The last hidden state as a sum: (position, channel) for each part."""
    residuals = residuals_of(trace)
    if not residuals:
        raise UsageError("this decoder has no residual stream, so its logits are no sum of its parts")
    names = (f"target_embedding.{part}" for part in ("tokens", "positions"))
    parts: Parts = [(name, trace[name].astype(np.float64)) for name in names if name in trace]
    pre = Lineage(trace.names()).pre("decoder")
    for residual in residuals:
        parts += what_adds(trace, added(residual).removesuffix(".out"))
        if not pre:
            parts = through_norm(trace, f"{residual}.norm", parts)
    return through_norm(trace, "decoder.norm", parts) if pre else parts


def what_adds(trace: Trace, part: str) -> Parts:
    """The heads of an attention and its bias, or a feed-forward part as one."""
    if f"{part}.heads" not in trace:
        return [(f"{part}.out", trace[f"{part}.out"].astype(np.float64))]
    heads = trace[f"{part}.heads"].astype(np.float64)
    found = [(f"{part}.heads[{h}]", values) for h, values in enumerate(heads)]
    if f"{part}.out_bias" in trace:
        bias = trace[f"{part}.out_bias"].astype(np.float64)
        found.append((f"{part}.out_bias", np.broadcast_to(bias, heads.shape[1:])))
    return found


def through_norm(trace: Trace, path: str, parts: Parts) -> Parts:
    """Each part through the norm as it was; then the norm's constant, which belongs to no part."""
    mean, variance = statistics(trace, path)
    slope = trace[f"{path}.weight"].astype(np.float64) / np.sqrt(variance + float(trace[f"{path}.eps"]))
    running = f"{path}.running_mean" in trace
    centred = not running and bool(trace[f"{path}.centred"])
    moved = [(name, (part - part.mean(1, keepdims=True) * centred) * slope) for name, part in parts]
    constant = -mean * slope if running else np.zeros(slope.shape)
    if f"{path}.bias" in trace:
        constant = constant + trace[f"{path}.bias"].astype(np.float64)
    shape = trace[f"{path}.in"].shape
    return [*moved, (f"{path}.bias", np.broadcast_to(constant, shape))] if constant.any() else moved
