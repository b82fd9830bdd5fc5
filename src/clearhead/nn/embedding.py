"""Token embeddings: the same small table for every word, then order, then dropout.

    x = √D · E[token]  +  P[position]                (Vaswani et al. 2017, §3.4–3.5)

Knows ids and a table of positions (or none). Refuses to know text.
"""

from __future__ import annotations

import math

import torch
from torch import nn

from clearhead.nn.dropout import Dropout, keep_mask
from clearhead.nn.positions import AbsolutePositions
from clearhead.nn.shapes import Float, Int, Tensor
from clearhead.nn.tap import tap


class TokenTable(nn.Module):
    """One row per token. May be shared: by source and target, and by the output layer."""

    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))
        nn.init.normal_(self.weight, std=d_model**-0.5)

    def forward(self, ids: Int[Tensor, "B L"]) -> Float[Tensor, "B L D"]:
        return torch.nn.functional.embedding(ids, self.weight)


class Embedding(nn.Module):
    def __init__(
        self,
        table: TokenTable,
        positions: AbsolutePositions | None,
        *,
        scale: bool = True,
        dropout: float = 0.0,
        word_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.table = table
        self.positions = positions
        self.scale = math.sqrt(table.weight.shape[1]) if scale else 1.0
        self.dropout = Dropout(dropout)
        self.word_dropout = word_dropout

    def forward(self, ids: Int[Tensor, "B L"], offset: int = 0) -> Float[Tensor, "B L D"]:
        """`offset` is the position of the first id: above 0 when the earlier ones are in a cache."""
        x = self._drop_words(tap(self, "tokens", self.table(ids) * self.scale))
        if self.positions is not None:
            x = x + tap(self, "positions", self.positions(ids.shape[1], offset))
        return tap(self, "sum", self.dropout(x))

    def _drop_words(self, x: Float[Tensor, "B L D"]) -> Float[Tensor, "B L D"]:
        drawn = keep_mask(tuple(x.shape[:2]), self.word_dropout)
        return x if drawn is None else x * drawn[0][:, :, None]
