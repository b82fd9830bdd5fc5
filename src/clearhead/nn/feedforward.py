"""The feed-forward part: the same small network at every position.

    relu, gelu, relu2      y = W₂ f(W₁ x + β₁) + β₂              f(u) = max(u, 0), u Φ(u), max(u, 0)²
    swiglu, geglu          y = W₂ (f(W₁ x) ⊙ W₃ x) + β₂          f(u) = u σ(u), u Φ(u)        (Shazeer 2020)

Vaswani et al. 2017, eq. 2. Knows one token at a time. Refuses to know its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from torch import nn

from clearhead.nn.dropout import Dropout
from clearhead.nn.linear import Linear
from clearhead.nn.shapes import Float, Tensor
from clearhead.nn.tap import tap


def relu2(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    return F.relu(x).square()


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "relu2": relu2,
    "swiglu": F.silu,
    "geglu": F.gelu,
}


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, activation: str, *, bias: bool = True, dropout: float = 0.0) -> None:
        super().__init__()
        self.up = Linear(d_model, d_ff, bias=bias)
        self.gate = Linear(d_model, d_ff, bias=False) if activation.endswith("glu") else None
        self.down = Linear(d_ff, d_model, bias=bias)
        self.activation = ACTIVATIONS[activation]
        self.dropout = Dropout(dropout)

    def forward(self, x: Float[Tensor, "B L D"]) -> Float[Tensor, "B L D"]:
        # What relu leaves of a rounded number is rounded already, so nothing is lost by not widening it.
        hidden = self.activation(self.up(x, widen=self.activation is not F.relu))
        if self.gate is not None:
            hidden = hidden * self.gate(x)
        hidden = tap(self, "hidden", hidden)
        return tap(self, "out", self.down(self.dropout(hidden)))
