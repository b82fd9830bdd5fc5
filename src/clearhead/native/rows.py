"""Where the tokens of a padded batch stand as rows: those of all sequences one after the other, no padding between.

Knows ids. Refuses to know what is done with the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from clearhead.nn.shapes import Int, Tensor

ROOM = 128
"""Rows come in multiples of so many, the last ones zeros: the processor's library writes a kernel for every new
number of rows (nn/rounded.py)."""


@dataclass(frozen=True)
class Rows:
    """`count` rows of tokens and room for `len(ids)`."""

    ids: Int[Tensor, "R"]
    at: Int[Tensor, "R"]
    """The position of each row in its sequence."""
    sample: Tensor
    """int32: which sequence each row belongs to."""
    place: Tensor
    """int32: `at` again, as the loops read it."""
    start: Tensor
    """int32: where each sequence begins, and the end of the last."""
    count: int
    longest: int

    @property
    def sequences(self) -> int:
        return len(self.start) - 1

    @property
    def room(self) -> int:
        return len(self.ids)


def rows_of(ids: Int[Tensor, "B L"], pad: int) -> Rows:
    real = ids != pad
    if (real[:, 1:] > real[:, :-1]).any():
        raise ValueError("padding stands before a token")
    lengths = real.sum(1)
    places = real.nonzero()
    count = len(places)
    room = count + -count % ROOM
    sample, at = places.unbind(1)
    first, positions = torch.zeros(room, dtype=ids.dtype), torch.zeros(room, dtype=torch.long)
    first[:count], positions[:count] = ids[real], at
    start = torch.zeros(len(ids) + 1, dtype=torch.int32)
    start[1:] = lengths.cumsum(0)
    return Rows(first, positions, sample.int(), at.int(), start, count, int(lengths.max()))
