"""Whole passes: the network over a source and a whole output at once, one row or many rows.

A row per question: causal tests ask the same sentence under many small edits, and all edits of a batch are answered
by one pass. `Uncached` decodes without a cache, by whole passes, so that an edit at one position of the output means
the same at every step.

Knows the protocol of models, ids and taps. Refuses to know what an edit is for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import torch

from clearhead.decode.step import EOS
from clearhead.errors import UsageError
from clearhead.glass.trace import Trace
from clearhead.models.protocol import EncoderDecoder, Memory
from clearhead.nn.shapes import Float, Int, Tensor
from clearhead.nn.tap import listen

Change = Callable[[Tensor], Tensor]
Edit = tuple[str, Change]
"""The name of a tap, and what one row's tensor becomes there."""

TOKENS = 768
"""Of one batch, at most; larger ones leave the processor's caches."""
LOGITS = 1 << 23

_whole: ContextVar[bool] = ContextVar("whole", default=False)


def inside_whole() -> bool:
    """Is this pass over whole sequences, so that places along an axis are positions?"""
    return _whole.get()


@contextmanager
def whole(network: EncoderDecoder) -> Iterator[None]:
    """Passes in this block are whole."""
    if network.training:
        raise UsageError("the network is in training mode, where numbers vary", hint="call network.eval() first")
    token = _whole.set(True)
    try:
        yield
    finally:
        _whole.reset(token)


@dataclass(frozen=True)
class Sentence:
    """What is read and written, as tensors: the source with EOS, the decoder's input, and what each place writes."""

    source: Int[Tensor, "1 S"]
    target: Int[Tensor, "1 T"]
    written: Int[Tensor, "T"]

    @classmethod
    def of(cls, network: EncoderDecoder, trace: Trace) -> Sentence:
        device = network.output_weight.device
        source, target, written = (torch.tensor(trace.ids(s), device=device) for s in ("source", "target", "written"))
        return cls(source[None], target[None], written)


def chosen(network: EncoderDecoder, hidden: Float[Tensor, "R T D"], written: Int[Tensor, "T"]) -> Float[Tensor, "R T"]:
    """The log-probability of each word written, a few rows of logits at a time."""
    rows = max(1, LOGITS // (network.output_weight.shape[0] * hidden.shape[1]))
    found = []
    for part in hidden.split(rows):
        logits = network.logits(part)
        picked = logits.gather(-1, written.expand(part.shape[:2])[..., None])[..., 0]
        found.append(picked - logits.logsumexp(-1))
    return torch.cat(found)


def spread(memory: Memory, rows: int) -> Memory:
    """One source's memory for many rows."""
    return Memory(memory.states.expand(rows, -1, -1), memory.allowed.expand(rows, -1, -1, -1))


def batches(count: int, length: int) -> Iterator[slice]:
    """Runs of rows that fit a batch."""
    size = max(1, TOKENS // length)
    for start in range(0, count, size):
        yield slice(start, min(count, start + size))


Measure = Callable[[EncoderDecoder, Tensor, Tensor], Tensor]
"""Of the network, the hidden states (R, T, D) and what is written (T): numbers for each row."""


def under(
    network: EncoderDecoder, sentence: Sentence, edits: Sequence[Edit], measure: Measure = chosen
) -> Float[Tensor, "R _"]:
    """Row by row, the log-probability of every word written (or another measure) with that row's edit on.

    The last row has none. Edits of the decoder alone share one pass of the encoder.
    """
    rows = [*enumerate(edits), (len(edits), ("", lambda x: x))]
    early = [row for row in rows if from_encoder(row[1][0])]
    late = [row for row in rows if not from_encoder(row[1][0])]
    length = sentence.target.shape[1]
    found: dict[int, Tensor] = {}
    with whole(network):
        memory = network.encode(sentence.source)
        for group, wide in ((early, max(length, sentence.source.shape[1])), (late, length)):
            for span in batches(len(group), wide):
                held = None if group is early else spread(memory, len(group[span]))
                hidden = edited_rows(network, sentence, [edit for _, edit in group[span]], held)
                numbers = measure(network, hidden, sentence.written)
                found.update((place, row) for (place, _), row in zip(group[span], numbers, strict=True))
    return torch.stack([found[place] for place in range(len(rows))])


def from_encoder(name: str) -> bool:
    return name.startswith(("source_embedding.", "encoder.", "memory"))


def edited_rows(
    network: EncoderDecoder, sentence: Sentence, edits: Sequence[Edit], memory: Memory | None
) -> Float[Tensor, "R T D"]:
    """One batch of `under`: the hidden states."""
    by_name: dict[str, list[tuple[int, Change]]] = {}
    for row, (name, change) in enumerate(edits):
        by_name.setdefault(name, []).append((row, change))

    def hear(name: str, tensor: Tensor) -> Tensor:
        tensor = tensor.clone()
        for row, change in by_name[name]:
            tensor[row] = change(tensor[row])
        return tensor

    with listen(network, hear, by_name.__contains__):
        held = network.encode(sentence.source.expand(len(edits), -1)) if memory is None else memory
        return network.decode(sentence.target.expand(len(edits), -1), held)


class Written:
    """The state of `Uncached`: every row's tokens so far, and the sources' memory."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.tokens = memory.allowed.new_zeros(len(memory.states), 0, dtype=torch.long)

    def reorder(self, rows: Int[Tensor, "R"]) -> None:
        """Row i continues what was row rows[i], of the same source."""
        self.tokens = self.tokens.index_select(0, rows)

    def keep(self, sources: Int[Tensor, "B"], rows: Int[Tensor, "R"]) -> None:
        """Only these sources go on, and these rows."""
        self.reorder(rows)
        self.memory = Memory(*(part.index_select(0, sources) for part in self.memory))


class Uncached(EncoderDecoder):
    """A network that computes everything anew at every step. Slow, and the same."""

    def __init__(self, network: EncoderDecoder) -> None:
        super().__init__()
        self.network = network

    def encode(self, source: Int[Tensor, "B S"]) -> Memory:
        with whole(self.network):
            return self.network.encode(source)

    def start(self, memory: Memory) -> Written:
        return Written(memory)

    def step(self, tokens: Int[Tensor, "R L"], state: Written) -> Float[Tensor, "R L D"]:  # type: ignore[override]
        state.tokens = torch.cat((state.tokens, tokens), 1)
        copies = len(state.tokens) // len(state.memory.states)
        memory = Memory(*(part.repeat_interleave(copies, 0) for part in state.memory))
        with whole(self.network):
            return self.network.decode(state.tokens, memory)[:, -tokens.shape[1] :]

    def logits(self, hidden: Float[Tensor, "... D"]) -> Float[Tensor, "... V"]:
        return self.network.logits(hidden)

    @property
    def output_weight(self) -> Float[Tensor, "V D"]:
        return self.network.output_weight


def with_end(source: Sequence[int]) -> list[int]:
    """A source as the encoder reads it."""
    return [*source, EOS]
