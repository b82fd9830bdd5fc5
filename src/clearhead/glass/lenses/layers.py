"""What the layers know: the decoder's stream read early, and the encoder's memory handed over early.

    logit lens      softmax(E · norm(stream after layer l))     nostalgebraist 2020 (norm: the final one, if pre-norm)
    encoder lens    decode with the memory of encoder layer k   Langedijk et al. 2023

Knows networks with a stream. Refuses networks without one: a recurrence hands on no running sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from clearhead.config import DecodeSettings
from clearhead.decode.decode import decode
from clearhead.errors import UsageError
from clearhead.glass.findings import Clock, Control, Finding
from clearhead.glass.interventions import editing, edits
from clearhead.glass.layout import Array
from clearhead.glass.lenses.ablation import layer_ends
from clearhead.glass.passes import Sentence, chosen, spread, whole
from clearhead.glass.trace import Trace
from clearhead.models.protocol import EncoderDecoder, Memory
from clearhead.nn.shapes import Float, Tensor

TOP = 10


@dataclass(frozen=True)
class LogitLens(Finding):
    """values: (layer, position): log-probability of the written word if the stream were read there."""

    ranks: Array
    """(layer, position): how many words the lens finds likelier."""
    top: Array
    """(layer, position, 10): the likeliest ids, best first."""
    top_log_probabilities: Array


@torch.inference_mode()
def logit_lens(network: EncoderDecoder, trace: Trace) -> LogitLens:
    """The decoder's stream after the embedding and after every layer, read as if it were the last."""
    clock = Clock()
    ends = [name for name in layer_ends(trace) if name.startswith(("target", "decoder"))]
    norm = final_norm(network, "decoder")
    stream = torch.tensor(np.stack([trace[name] for name in ends]), device=network.output_weight.device)
    log_p = network.logits(norm(stream)).log_softmax(-1)
    written = torch.tensor(trace.ids("written"), device=stream.device)
    own = log_p.gather(-1, written.expand(len(ends), -1)[..., None])
    best = log_p.topk(min(TOP, log_p.shape[-1]), -1)
    moved = log_p.gather(-1, written.roll(1).expand(len(ends), -1)[..., None]).mean().item()
    return LogitLens(
        "logit lens" + (", through the final norm" if "decoder.norm.out" in trace else ", no further norm (post-norm)"),
        own[..., 0].cpu().numpy(),
        ("layer", "position"),
        (tuple(ends), trace.written),
        clock.cost(),
        Control("mean log-probability it gives to the word of the position before", moved),
        "Early layers need not write in the last layer's words: what the lens cannot read may yet be there.",
        edits(),
        (log_p > own).sum(-1).cpu().numpy(),
        best.indices.cpu().numpy(),
        best.values.cpu().numpy(),
    )


def final_norm(network: EncoderDecoder, half: str) -> torch.nn.Module:
    """The norm at the end of a stream; the identity when each layer ends with its own."""
    found = dict(network.named_modules()).get(f"{half}.norm")
    if found is None:
        raise UsageError(f"this {half} has no stream that could be read early")
    return found


@dataclass(frozen=True)
class EncoderLens(Finding):
    """values: (layer, position): log-probability of the trace's own output, read from the memory of that layer."""

    outputs: tuple[tuple[int, ...], ...]
    """What is written from each layer's memory; the last is the ordinary output."""
    without_source: tuple[int, ...]
    """What is written from a memory of zeros: the decoder by itself."""


@torch.inference_mode()
def encoder_lens(network: EncoderDecoder, trace: Trace, settings: DecodeSettings, max_len: int = 1024) -> EncoderLens:
    """Decode from the encoder's embedding, then from each of its layers. Control: from no source at all."""
    clock = Clock()
    ends = [name for name in layer_ends(trace) if name.startswith(("source", "encoder"))]
    norm = final_norm(network, "encoder")
    stream = torch.tensor(np.stack([trace[name] for name in ends]), device=network.output_weight.device)
    memories = torch.cat((norm(stream), torch.zeros_like(stream[:1])))
    values = scored(network, trace, memories)
    outputs = [written_from(network, trace, memory, settings, max_len) for memory in memories]
    return EncoderLens(
        "decoding from encoder layer k",
        values[:-1].cpu().numpy(),
        ("layer", "position"),
        (tuple(ends), trace.written),
        clock.cost(1 + len(memories) * (1 + len(trace.written))),
        Control("log-probability of the output from a memory of zeros", values[-1].sum().item()),
        "The decoder has only ever read the last layer: what it makes of others is a reading, not their content.",
        edits(),
        tuple(outputs[:-1]),
        outputs[-1],
    )


def scored(network: EncoderDecoder, trace: Trace, memories: Float[Tensor, "R S D"]) -> Float[Tensor, "R T"]:
    sentence = Sentence.of(network, trace)
    with whole(network):
        allowed = network.encode(sentence.source).allowed
        held = Memory(memories, spread(Memory(memories[:1], allowed), len(memories)).allowed)
        return chosen(network, network.decode(sentence.target.expand(len(memories), -1), held), sentence.written)


def written_from(
    network: EncoderDecoder, trace: Trace, memory: Float[Tensor, "S D"], settings: DecodeSettings, max_len: int
) -> tuple[int, ...]:
    """What is written when the encoder hands over these states."""
    source: Sequence[int] = trace.ids("source")[:-1]
    with editing(network, {"memory": lambda tensor: memory.expand_as(tensor)}, "memory replaced"):
        return decode(network, [source], settings, max_len=max_len)[0][0].tokens
