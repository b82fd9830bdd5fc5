"""Trace what the model itself writes: decode first, then one teacher-forced pass, and say how well the two agree.

The decoder's running log-probability, from its cache, stands beside the pass's, from whole sequences; the largest
difference goes into the trace's provenance. Under edits at positions of the output, decoding goes by whole passes.

Knows networks, ids and decoding settings. Refuses to know text.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from clearhead.config import DecodeSettings
from clearhead.decode.beam import Beam
from clearhead.decode.decode import length_limit
from clearhead.decode.rank import Hypothesis
from clearhead.decode.single import Single
from clearhead.decode.step import EOS
from clearhead.glass.interventions import positional
from clearhead.glass.passes import Uncached
from clearhead.glass.trace import Node, Parity, Trace
from clearhead.glass.tracer import Print, trace_pass
from clearhead.glass.tree import Tree
from clearhead.models.protocol import EncoderDecoder
from clearhead.nn.shapes import Tensor
from clearhead.nn.tap import listen


@torch.inference_mode()
def trace(
    network: EncoderDecoder,
    source: Sequence[int],
    settings: DecodeSettings,
    max_len: int = 1024,
    source_text: Print = str,
    target_text: Print = str,
    prefix: Sequence[int] = (),
) -> Trace:
    """Decode a source (ids without EOS), its output begun with `prefix`, then trace source and best output."""
    writer = Uncached(network) if positional() else network
    limit = min(length_limit(len(source), settings, max_len) + len(prefix), max_len - 1)
    if settings.method == "beam" and settings.beam > 1:
        best, sums, tree = searched(writer, source, limit, settings, target_text, prefix)
    else:
        best, sums = written(writer, source, limit, settings, prefix)
        tree = []
    how = f"beam {settings.beam}" if tree else ("sample" if settings.method == "sample" else "greedy")
    found = trace_pass(network, source, best.tokens, source_text, target_text, ended=best.ended, how=how)
    return found.beside(parity(found, sums), tree)


def searched(
    network: EncoderDecoder,
    source: Sequence[int],
    limit: int,
    settings: DecodeSettings,
    text: Print,
    prefix: Sequence[int] = (),
) -> tuple[Hypothesis, list[float], list[Node]]:
    """The best output of a beam search, its running sums, and the tree."""
    tree = Tree(settings.beam, settings.length_penalty, text)
    best = Beam(network, [source], [limit], settings, tree, [prefix]).run()[0][0]
    return best, tree.path(best), tree.done()


def written(
    network: EncoderDecoder, source: Sequence[int], limit: int, settings: DecodeSettings, prefix: Sequence[int]
) -> tuple[Hypothesis, list[float]]:
    """One word at a time; the running sums from the logits of the decoder's own steps."""
    logits: list[Tensor] = []

    def hear(name: str, tensor: Tensor) -> Tensor:
        logits.append(tensor[0, -1])
        return tensor

    inner = network.network if isinstance(network, Uncached) else network
    with listen(inner, hear, lambda name: name == "logits"):
        best = Single(network, [source], [limit], [0], settings, [prefix]).run()[0]
    tokens = [*best.tokens, *([EOS] if best.ended else [])]
    steps = [row.float().log_softmax(-1)[token].item() for row, token in zip(logits, tokens, strict=True)]
    return best, np.cumsum(steps).tolist()


def parity(trace: Trace, sums: Sequence[float]) -> Parity:
    """The pass beside the decoder."""
    of_pass = np.cumsum(trace["written_log_probabilities"].astype(np.float64))
    other = tuple(place.position for place in trace.likelier())
    return Parity(float(np.abs(of_pass - np.array(sums)).max()), other)
