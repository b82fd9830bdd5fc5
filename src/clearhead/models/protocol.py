"""What training and decoding ask of an encoder-decoder."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

from torch import nn

from clearhead.nn.shapes import Float, Int, Tensor


class Memory(NamedTuple):
    """What the encoder leaves for the decoder: states (B, S, D), and which of them are real (B, 1, 1, S)."""

    states: Tensor
    allowed: Tensor


@runtime_checkable
class State(Protocol):
    """Where a decoder stands, between two steps: one row per hypothesis, as many for each source, side by side."""

    def reorder(self, rows: Int[Tensor, "R"]) -> None:
        """Row i continues what was row rows[i], of the same source."""

    def keep(self, sources: Int[Tensor, "B"], rows: Int[Tensor, "R"]) -> None:
        """Only these sources go on, and these rows."""


class EncoderDecoder(nn.Module):
    """Base of all encoder-decoders: teacher-forced over whole targets, or one step at a time."""

    pad: int = 0

    def encode(self, source: Int[Tensor, "B S"]) -> Memory:
        raise NotImplementedError

    def decode(self, target: Int[Tensor, "B T"], memory: Memory) -> Float[Tensor, "B T D"]:
        """The hidden state before the output layer at every position, each seeing only its past."""
        raise NotImplementedError

    def start(self, memory: Memory) -> State:
        """The state before the first word."""
        raise NotImplementedError

    def step(self, tokens: Int[Tensor, "R L"], state: State) -> Float[Tensor, "R L D"]:
        """`decode` for the next tokens only; the state moves on."""
        raise NotImplementedError

    @property
    def output_weight(self) -> Float[Tensor, "V D"]:
        raise NotImplementedError

    @property
    def output_bias(self) -> Float[Tensor, "V"] | None:
        raise NotImplementedError

    def forward(self, source: Int[Tensor, "B S"], target: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        return self.decode(target, self.encode(source))

    def logits(self, hidden: Float[Tensor, "... D"]) -> Float[Tensor, "... V"]:
        raise NotImplementedError
