"""One step: from the tokens written last to the log-probabilities of the next ones.

The compiled engine (native/) where it is built and knows the model; else the fused step (models/fused.py); the plain
step for those who listen.
Knows the model's state. Refuses to know how the next token is chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch

from clearhead.decode.likeliest import largest_sums
from clearhead.models.fused import Fused, fused
from clearhead.models.protocol import EncoderDecoder, Memory, State
from clearhead.models.seq2seq import Seq2Seq
from clearhead.native.engine import Engine, engine
from clearhead.nn.linear import product_dtype
from clearhead.nn.shapes import Float, Int, Tensor
from clearhead.nn.tap import listening

PAD, BOS, EOS, UNK, MASK = range(5)
"""The special ids. They are the same in every vocabulary (text/tokenizer.py); a test holds the two together."""
NEVER = (PAD, BOS, MASK)
"""Never written."""
Best = tuple[Tensor, Tensor, Tensor]
"""For each source, likeliest first: the log-probability with what was begun, which hypothesis goes on, with what."""

Written = tuple[list[list[int]], list[float], list[bool]]
"""Of each source: tokens, their log-probability, whether they ended by themselves."""


class Plain:
    """The model's own step, open to taps."""

    def __init__(self, model: EncoderDecoder) -> None:
        self.model = model

    def start(self, memory: Memory) -> State:
        return self.model.start(memory)

    def step(self, tokens: Int[Tensor, "R"], state: Any) -> Float[Tensor, "R V"]:
        return self.model.logits(self.model.step(tokens[:, None], state))[:, 0]


class Eager:
    """A batch in torch: the plain step, or the fused one."""

    def __init__(self, model: EncoderDecoder, sources: Int[Tensor, "B S"], *, fast: bool) -> None:
        fast = fast and isinstance(model, Seq2Seq)
        self.steps: Plain | Fused = fused(cast(Seq2Seq, model), product_dtype()) if fast else Plain(model)
        self.state: State = self.steps.start(model.encode(sources))

    def next(self, tokens: Int[Tensor, "R"]) -> Float[Tensor, "R V"]:
        return self.steps.step(tokens, cast(Any, self.state)).float()

    def best(self, tokens: Int[Tensor, "R"], begun: Float[Tensor, "B W"], k: int) -> Best:
        return largest_sums(begun, log_probabilities(self.next(tokens)), k)


class Native:
    """A batch in the compiled engine."""

    def __init__(self, engine: Engine, sources: Int[Tensor, "B S"]) -> None:
        self.state = engine.start(sources, PAD)
        self.vocab = engine.target_vocab
        self.never = torch.tensor(NEVER)

    def greedy(self, limits: Sequence[int]) -> Written:
        return self.state.greedy(limits, BOS, EOS, self.never)

    def next(self, tokens: Int[Tensor, "R"]) -> Float[Tensor, "R V"]:
        self.state.step(tokens)
        return self.state.logits()

    def best(self, tokens: Int[Tensor, "R"], begun: Float[Tensor, "B W"], k: int) -> Best:
        self.state.step(tokens)
        each = min(k, self.vocab)
        log_p, ids = self.state.best(each, self.never)
        if begun.shape[1] == 1 and each == k:
            return log_p.add_(begun), torch.zeros_like(ids), ids
        sums = (log_p.view(*begun.shape, each) + begun[:, :, None]).flatten(1)
        values, places = sums.topk(min(k, sums.shape[1]))
        return values, places // each, ids.view(len(begun), -1).gather(1, places)


def log_probabilities(logits: Float[Tensor, "R V"]) -> Float[Tensor, "R V"]:
    """Padding, start and mask count as words, but are never written."""
    log_p = torch.log_softmax(logits, -1)
    for never in NEVER:
        log_p[:, never] = -torch.inf
    return log_p


def begin(model: EncoderDecoder, sources: Int[Tensor, "B S"], fast: bool, compiled: bool) -> Eager | Native:
    """The fastest of the ways allowed. Whoever listens, and a model that is being trained, gets the plain step."""
    fast = fast and not model.training and not listening()
    if fast and compiled and isinstance(model, Seq2Seq):
        found = engine(model, product_dtype())
        if found is not None:
            return Native(found, sources)
    return Eager(model, sources, fast=fast)


class Stepper:
    """A batch of sources being decoded, `copies` hypotheses each. `fast` and `compiled`: settings of decoding."""

    def __init__(
        self,
        model: EncoderDecoder,
        sources: Sequence[Sequence[int]],
        copies: int = 1,
        *,
        fast: bool = True,
        compiled: bool = True,
    ) -> None:
        self.device = model.output_weight.device
        self.copies = copies
        self.batch = begin(model, padded([[*s, EOS] for s in sources], self.device), fast, compiled)

    def next(self, tokens: Int[Tensor, "R"]) -> Float[Tensor, "R V"]:
        """Log-probabilities of what follows `tokens`."""
        return log_probabilities(self.batch.next(tokens))

    def best(self, tokens: Int[Tensor, "R"], begun: Float[Tensor, "B W"], k: int) -> Best:
        """For each source the k likeliest continuations of its W hypotheses, whose log-probabilities are `begun`."""
        return self.batch.best(tokens, begun, k)

    def greedy(self, limits: Sequence[int]) -> Written | None:
        """The likeliest word each time, to the end, where the engine can do that by itself."""
        return self.batch.greedy(limits) if isinstance(self.batch, Native) else None

    def reorder(self, rows: Int[Tensor, "R"]) -> None:
        self.batch.state.reorder(rows)

    def keep(self, sources: Int[Tensor, "B"]) -> None:
        """Only these sources go on."""
        rows = sources[:, None] * self.copies + torch.arange(self.copies, device=self.device)
        self.batch.state.keep(sources, rows.flatten())


def padded(rows: Sequence[Sequence[int]], device: torch.device | None = None) -> Int[Tensor, "B L"]:
    """Rows of ids as one tensor, padded at the end."""
    width = max(len(row) for row in rows)
    return torch.tensor([[*row, *[PAD] * (width - len(row))] for row in rows], device=device)
