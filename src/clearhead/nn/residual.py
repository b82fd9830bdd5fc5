"""The residual stream: each part adds to what is there, so that gradients pass unhindered (He et al. 2016).

    pre-norm   x ← x + dropout(part(norm(x)))        trains at any depth
    post-norm  x ← norm(x + dropout(part(x)))        the 2017 paper

Knows a norm, a rate and a function. Refuses to know what the function does.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from clearhead.nn.dropout import Dropout
from clearhead.nn.shapes import Float, Tensor
from clearhead.nn.tap import tap


class Residual(nn.Module):
    def __init__(self, norm: nn.Module, rate: float, *, pre: bool) -> None:
        super().__init__()
        self.norm = norm
        self.dropout = Dropout(rate)
        self.pre = pre

    def forward(
        self, x: Float[Tensor, "B L D"], part: Callable[[Float[Tensor, "B L D"]], Float[Tensor, "B L D"]]
    ) -> Float[Tensor, "B L D"]:
        x = tap(self, "before", x)
        added = self.dropout(part(self.norm(x) if self.pre else x))
        x = x + tap(self, "added", added)
        return tap(self, "after", x if self.pre else self.norm(x))
