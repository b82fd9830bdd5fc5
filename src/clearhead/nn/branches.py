"""The fast cache of a decoder: what all hypotheses of a source have written, as one tree.

Hypotheses that share a beginning share its keys and values. A word that is written once stays where it is; when beam
search reorders, only the record of whose past is whose moves, and each hypothesis reads its own branch through a mask:

    slots      0   1   2   3   4   5  …          one row of words after another, `rows` words each
    own[b, r, s]                                 slot s is in the past of hypothesis r of source b

So nothing is copied when hypotheses move, and the products stay large. Sources that are done are skipped over until a
third of the places is empty; then the rest moves together.

Knows tensors per layer and rows. Refuses to know how rows are chosen.
"""

from __future__ import annotations

import torch

from clearhead.nn.attention import KeyValue
from clearhead.nn.shapes import Bool, Int, Tensor

ROOM = 16
"""Slots at first; doubled whenever they are full."""
MOSTLY_DONE = 0.67
"""Below this share of places in use, the rest moves together."""


class Branches:
    """What is written (per layer), what is read (per layer), and who may read which of it."""

    def __init__(self, memory: list[KeyValue], readable: Tensor | None, room: int = ROOM) -> None:
        self.memory = memory
        self.readable = readable  # B 1 1 S, 0 or −∞, added to the scores; None: everything
        sources, device = memory[0].key.shape[0], memory[0].key.device
        self.places = torch.arange(sources, device=device)
        """Where the live sources stand among those held."""
        self.held = sources
        self.past: list[KeyValue | None] = [None for _ in memory]
        self.room = room
        self.slots = 0
        self.length = 0
        """How many words are written."""
        self.rows: list[int] = []
        """Of each word, the one being written included: how many hypotheses a source had then."""
        self.own: Tensor | None = None  # held, rows, slots; None: every slot is everybody's own

    def grow(self, rows: int) -> None:
        """Room for one more word in each hypothesis, and the record that it is its own."""
        self.rows.append(rows)
        self.room = self.room if self.slots + rows <= self.room else max(2 * self.room, self.slots + rows)
        if rows > 1 or self.own is not None:
            own = self.own
            if own is None:
                own = torch.ones(self.held, rows, self.slots, dtype=torch.bool, device=self.places.device)
            new = torch.eye(rows, dtype=torch.bool, device=own.device).expand(self.held, rows, rows)
            self.own = torch.cat((own, new), 2)

    def write(self, layer: int, key: Tensor, value: Tensor) -> KeyValue:
        """The layer's keys and values so far, the new ones (held, G, rows, …) last."""
        start, end = self.slots, self.slots + key.shape[2]
        past = self.past[layer]
        if past is None or past.key.shape[2] < end:
            past = self.past[layer] = KeyValue(*(self._larger(past, i, new) for i, new in enumerate((key, value))))
        past.key[:, :, start:end] = key
        past.value[:, :, start:end] = value
        return KeyValue(past.key[:, :, :end], past.value[:, :, :end])

    def _larger(self, past: KeyValue | None, which: int, new: Tensor) -> Tensor:
        grown = new.new_empty(*new.shape[:2], self.room, new.shape[3])
        if past is not None:
            grown[:, :, : self.slots] = past[which][:, :, : self.slots]
        return grown

    def written(self) -> None:
        """The new word belongs to the past."""
        self.slots += self.rows[-1]
        self.length += 1

    def by_slot(self, by_position: Tensor) -> Tensor:
        """(…, positions) → (…, slots), the word just being written included."""
        if self.own is None:
            return by_position
        return by_position.repeat_interleave(torch.tensor(self.rows, device=by_position.device), -1)

    def spread(self, tokens: Int[Tensor, "R"]) -> Int[Tensor, "held rows"]:
        """The live hypotheses' tokens at their places; anything elsewhere."""
        rows = tokens.view(len(self.places), -1)
        if len(self.places) == self.held:
            return rows
        return rows.new_zeros(self.held, rows.shape[1]).index_copy_(0, self.places, rows)

    def gather(self, x: Tensor) -> Tensor:
        """(held, rows, …) → (live · rows, …)"""
        return (x if len(self.places) == self.held else x.index_select(0, self.places)).flatten(0, 1)

    def reorder(self, rows: Int[Tensor, "R"]) -> None:
        """Row i continues what was row rows[i], of the same source."""
        if self.own is None and len(rows) == len(self.places):
            return
        live, new = len(self.places), len(rows) // len(self.places)
        own = self.own
        if own is None:  # one hypothesis a source becomes several
            self.own = torch.ones(self.held, new, self.slots, dtype=torch.bool, device=rows.device)
            return
        moved = own.index_select(0, self.places).flatten(0, 1).index_select(0, rows).view(live, new, -1)
        self.own = moved if live == self.held else own.new_zeros(self.held, new, self.slots)
        if live != self.held:
            self.own.index_copy_(0, self.places, moved)

    def keep(self, sources: Int[Tensor, "B"], rows: Int[Tensor, "R"]) -> None:
        """Only these sources go on."""
        self.places = self.places.index_select(0, sources)
        if len(self.places) < MOSTLY_DONE * self.held:
            self._move_together()

    def _move_together(self) -> None:
        at = self.places
        self.memory = [KeyValue(k.index_select(0, at), v.index_select(0, at)) for k, v in self.memory]
        self.past = [
            None if past is None else KeyValue(*(self._kept(tensor, at) for tensor in past)) for past in self.past
        ]
        self.readable = None if self.readable is None else self.readable.index_select(0, at)
        self.own = None if self.own is None else self.own.index_select(0, at)
        self.held = len(at)
        self.places = torch.arange(self.held, device=at.device)

    def _kept(self, tensor: Tensor, at: Tensor) -> Tensor:
        kept = tensor.new_empty(len(at), *tensor.shape[1:])
        kept[:, :, : self.slots] = tensor[:, :, : self.slots].index_select(0, at)
        return kept

    def blocked(self) -> Bool[Tensor, "held 1 rows slots"] | None:
        """True where a slot is another hypothesis's."""
        return None if self.own is None else ~self.own[:, None]
