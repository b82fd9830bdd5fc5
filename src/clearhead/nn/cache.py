"""The cache of a decoder: keys and values of what is already written, so that each new word costs one step.

Rows are hypotheses; each source has the same number of them, side by side, and its memory is held once.
Knows tensors per layer and rows. Refuses to know how rows are chosen; `reorder` and `keep` only follow.
"""

from __future__ import annotations

from clearhead.nn.attention import KeyValue
from clearhead.nn.shapes import Bool, Int, Tensor


class Growing:
    """One layer's keys and values, with room kept ahead so that adding a word copies nothing old."""

    def __init__(self) -> None:
        self.key: Tensor | None = None
        self.value: Tensor | None = None
        self.length = 0

    def append(self, new: KeyValue) -> KeyValue:
        """All keys and values so far, the new ones last."""
        end = self.length + new.key.shape[2]
        self.key = self._room(self.key, new.key, end)
        self.value = self._room(self.value, new.value, end)
        self.key[:, :, self.length : end] = new.key
        self.value[:, :, self.length : end] = new.value
        self.length = end
        return KeyValue(self.key[:, :, :end], self.value[:, :, :end])

    def _room(self, held: Tensor | None, new: Tensor, end: int) -> Tensor:
        if held is not None and held.shape[2] >= end:
            return held
        grown = new.new_empty(*new.shape[:2], max(16, 2 * end), new.shape[3])
        if held is not None:
            grown[:, :, : self.length] = held[:, :, : self.length]
        return grown

    def reorder(self, rows: Int[Tensor, "R"]) -> None:
        if self.key is not None and self.value is not None:
            self.key = self.key.index_select(0, rows)
            self.value = self.value.index_select(0, rows)


class DecoderCache:
    """What a decoder remembers: per layer its own past and the memory's keys and values, and which are real."""

    def __init__(self, memory: list[KeyValue], allowed: Bool[Tensor, "B 1 1 S"] | None) -> None:
        self.past = [Growing() for _ in memory]
        self.memory = memory
        self.allowed = allowed

    @property
    def length(self) -> int:
        """How many tokens are already written."""
        return self.past[0].length

    def reorder(self, rows: Int[Tensor, "R"]) -> None:
        """Row i continues what was row rows[i], of the same source."""
        for past in self.past:
            past.reorder(rows)

    def keep(self, sources: Int[Tensor, "B"], rows: Int[Tensor, "R"]) -> None:
        """Only these sources go on, and these rows."""
        self.reorder(rows)
        self.memory = [KeyValue(k.index_select(0, sources), v.index_select(0, sources)) for k, v in self.memory]
        self.allowed = None if self.allowed is None else self.allowed.index_select(0, sources)
