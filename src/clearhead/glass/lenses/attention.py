"""What attention read, four ways.

    weight          α_qk                                             the bare pattern
    weight × value  ‖α_qk W_o v_k‖                                   Kobayashi et al. 2020
    value zeroing   1 − cos(layer's output, the same with v_k = 0)   Mohebbi et al. 2023
    rollout         Π_layers (½ A + ½ I)                             Abnar & Zuidema 2020

Knows a trace, and for two of them the network. Refuses to say why a word was written.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from clearhead.errors import UsageError
from clearhead.glass.findings import Clock, Control, Finding
from clearhead.glass.interventions import across, attention_at, edits
from clearhead.glass.layout import Array
from clearhead.glass.lenses.ranks import mean_spearman
from clearhead.glass.passes import Sentence, batches, spread, whole
from clearhead.glass.trace import Trace
from clearhead.glass.tracer import head_maps
from clearhead.models.protocol import EncoderDecoder
from clearhead.nn.shapes import Tensor
from clearhead.nn.tap import listen

READING = (
    "Where the head read from, not why: a weight has no sign, and a heavy one may lie on a value that does nothing."
)


@torch.inference_mode()
def weights(trace: Trace, attention: str) -> Finding:
    """The pattern. Control: the weight if every query read evenly."""
    clock = Clock()
    name = f"{attention}.pattern"
    pattern = trace[name]
    control = Control("weight of a key if every query read evenly", float(even(trace, attention).max(2).mean()))
    given = trace.provenance.edits
    return Finding(
        "attention weight", pattern, trace.axes(name), trace.labels(name), clock.cost(), control, READING, given
    )


def even(trace: Trace, attention: str) -> Array:
    """The pattern if every query read evenly from all it may read."""
    allowed = np.isfinite(trace[f"{attention}.scores"]).astype(np.float64)
    total: Array = allowed.sum(-1, keepdims=True)
    return allowed / np.where(total, total, 1.0)


@dataclass(frozen=True)
class Norms(Finding):
    """values: (head, query, key)."""

    together: Array
    """‖Σ_heads α W_o v‖: what all heads read from a key, added up before it is measured (query, key)."""


@torch.inference_mode()
def weighted_norms(network: EncoderDecoder, trace: Trace, attention: str) -> Norms:
    """How long the vector is that a key gives to a query. Control: the same under even reading."""
    clock = Clock()
    pattern = torch.tensor(trace[f"{attention}.pattern"])
    maps = head_maps(network, attention, len(pattern)).detach().cpu()
    value = torch.tensor(trace[f"{attention}.value"]).repeat_interleave(
        len(pattern) // len(trace[f"{attention}.value"]), 0
    )
    given = value @ maps.transpose(1, 2)  # head, key, channel
    sizes = given.norm(dim=-1)
    together = torch.einsum("nqk,nkd->qkd", pattern, given).norm(dim=-1)
    evenly = float((even(trace, attention) * sizes[:, None].numpy()).sum(-1).mean())
    control = Control("what a query receives from all keys if it reads evenly, mean", evenly)
    name = f"{attention}.pattern"
    return Norms(
        "attention weight × value, as a norm",
        (pattern * sizes[:, None]).numpy(),
        trace.axes(name),
        trace.labels(name),
        clock.cost(),
        control,
        "How much was read, not what for: long vectors may cancel, and the stream's norm changes them afterwards.",
        trace.provenance.edits,
        together.numpy(),
    )


class Enough(Exception):
    """What was wanted has been heard; the rest of the pass is not needed."""


@torch.inference_mode()
def value_zeroing(network: EncoderDecoder, trace: Trace, attention: str) -> Finding:
    """How much a layer's output at each query changes when one key's value is zeros there, in all heads. Exact."""
    clock = Clock()
    attention_at(network, attention)
    sentence, keys = Sentence.of(network, trace), trace[f"{attention}.value"].shape[1]
    end = layer_end(trace, attention)
    outputs: list[Tensor] = []
    for span in batches(keys + 1, max(sentence.source.shape[1], sentence.target.shape[1])):
        outputs.append(zeroed(network, sentence, attention, end, range(span.start, span.stop), keys))
    after = torch.cat(outputs).double()  # key, position, channel; the last row has nothing zeroed
    whole_row = torch.tensor(trace[end]).double()
    changed = (1 - torch.cosine_similarity(after, whole_row, -1)).clamp(min=0).cpu().numpy()
    name = f"{attention}.pattern"
    return Finding(
        "value zeroing",
        changed[:-1].T,
        trace.axes(name)[1:],
        trace.labels(name)[1:],
        clock.cost(keys + 1),
        Control("largest change with nothing zeroed", float(changed[-1].max())),
        "What one layer's output owes to a key through this attention; a zero value is not one the model has met.",
        edits(),
    )


def layer_end(trace: Trace, attention: str) -> str:
    """The last place of the stream in this layer."""
    layer = attention.rsplit(".", 1)[0]
    ends = [name for name in trace if name.startswith(f"{layer}.") and name.endswith(".after")]
    return ends[-1] if ends else "hidden"


def zeroed(
    network: EncoderDecoder, sentence: Sentence, attention: str, end: str, rows: Sequence[int], keys: int
) -> Tensor:
    """The layer's output in a batch where row i has the value of key rows[i] zeroed."""
    caught: list[Tensor] = []

    def hear(name: str, tensor: Tensor) -> Tensor:
        if name == end:
            caught.append(tensor)
            raise Enough
        tensor = tensor.clone()
        for row, key in enumerate(rows):
            if key < keys:
                tensor[row, :, key] = 0.0
        return tensor

    try:
        with whole(network), listen(network, hear, {f"{attention}.value", end}.__contains__):
            if attention.startswith("encoder"):
                network.encode(sentence.source.expand(len(rows), -1))
            memory = spread(network.encode(sentence.source), len(rows))
            network.logits(network.decode(sentence.target.expand(len(rows), -1), memory))
    except Enough:
        pass
    return caught[0]


@dataclass(frozen=True)
class Rollout(Finding):
    """values: (position, source token then target token): where each output position's stream comes from."""

    encoder: Array
    """(position, source token): the same for the encoder's memory."""


def rollout(trace: Trace) -> Rollout:
    """Attention multiplied up through the layers, half of each step being the residual. Rows sum to 1."""
    clock = Clock()
    patterns = {
        name.removesuffix(".pattern"): trace[name].mean(0).astype(np.float64) for name in trace.names("pattern")
    }
    encoder, decoder = rolled(trace, patterns)
    evenly = {path: even(trace, path).mean(0) for path in patterns}
    alike = mean_spearman(decoder, rolled(trace, evenly)[1])
    return Rollout(
        "attention rollout, mean of heads",
        decoder,
        ("position", "token"),
        (trace.written, trace.source + trace.target),
        clock.cost(),
        Control("rank agreement with the rollout of even reading (1: the sentence's shape alone)", alike),
        "Takes half of every step to be the residual, and leaves out values and feed-forward parts; blind to the word.",
        trace.provenance.edits,
        encoder,
    )


def rolled(trace: Trace, patterns: dict[str, Array]) -> tuple[Array, Array]:
    if not all(re.search(r"layers\.\d+\.(self|cross)_attention", path) for path in patterns) or not any(
        path.startswith("encoder") for path in patterns
    ):
        raise UsageError(
            "rollout multiplies attention through every layer; this network's layers are not all attention"
        )
    s, t = len(trace.source), len(trace.target)
    encoder = np.eye(s)
    decoder = np.concatenate([np.zeros((t, s)), np.eye(t)], 1)
    for path, pattern in by_layer(patterns):
        if path.startswith("encoder"):
            encoder = half(encoder, pattern @ encoder)
        elif across(path):
            decoder = half(decoder, np.concatenate([pattern @ encoder, np.zeros((t, t))], 1))
        else:
            decoder = half(decoder, pattern @ decoder)
    return encoder, decoder


def by_layer(patterns: dict[str, Array]) -> list[tuple[str, Array]]:
    """Encoder first, layer by layer, a decoder layer's own past before the source."""
    return sorted(patterns.items(), key=lambda item: (item[0].startswith("decoder"), depth(item[0]), across(item[0])))


def depth(path: str) -> int:
    found = re.search(r"layers\.(\d+)", path)
    return int(found[1]) if found else 0


def half(stream: Array, read: Array) -> Array:
    """Half the residual, half what was read; a row that may read nothing keeps its stream."""
    mixed = 0.5 * stream + 0.5 * read
    total: Array = mixed.sum(1, keepdims=True)
    return mixed / total
