"""Normalisation.

    layer norm (Ba et al. 2016)      y = (x − mean) / √(var + ε) · γ + β     over the channels of one token
    RMS norm (Zhang & Sennrich 2019) y = x / √(mean(x²) + ε) · γ             over the channels of one token
    batch norm (Ioffe & Szegedy 2015) as layer norm, but over all tokens of the batch, one channel at a time

Layer norm sees one token alone, so its neighbours in the batch cannot change it. Batch norm is here so that this
can be watched. It takes every place of the batch, padding included: one more reason why it does not suit sequences.

Knows one tensor of tokens. Refuses to know where in the network it stands.
"""

from __future__ import annotations

import torch
from torch import nn

from clearhead.nn.shapes import Float, Tensor
from clearhead.nn.tap import tap


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, *, bias: bool = True, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model)) if bias else None
        self.eps = eps

    def forward(self, x: Float[Tensor, "... D"]) -> Float[Tensor, "... D"]:
        x = tap(self, "in", x)
        return tap(self, "out", torch.nn.functional.layer_norm(x, x.shape[-1:], self.weight, self.bias, self.eps))


class RMSNorm(nn.Module):
    def __init__(self, d_model: int, *, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.eps = eps

    def forward(self, x: Float[Tensor, "... D"]) -> Float[Tensor, "... D"]:
        x = tap(self, "in", x)
        return tap(self, "out", torch.nn.functional.rms_norm(x, x.shape[-1:], self.weight, self.eps))


class BatchNorm(nn.Module):
    """Statistics over the tokens of the batch in training mode, over their running averages otherwise."""

    running_mean: Tensor
    running_variance: Tensor

    def __init__(self, d_model: int, *, eps: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.eps, self.momentum = eps, momentum
        self.register_buffer("running_mean", torch.zeros(d_model))
        self.register_buffer("running_variance", torch.ones(d_model))

    def forward(self, x: Float[Tensor, "... D"]) -> Float[Tensor, "... D"]:
        x = tap(self, "in", x)
        mean, variance = self._batch_statistics(x) if self.training else (self.running_mean, self.running_variance)
        return tap(self, "out", (x - mean) * torch.rsqrt(variance + self.eps) * self.weight + self.bias)

    def _batch_statistics(self, x: Tensor) -> tuple[Tensor, Tensor]:
        tokens = x.flatten(0, -2)
        mean, variance = tokens.mean(0), tokens.var(0, unbiased=False)
        with torch.no_grad():
            self.running_mean.lerp_(mean, self.momentum)
            self.running_variance.lerp_(variance, self.momentum)
        return mean, variance


def build_norm(kind: str, d_model: int, *, bias: bool = True) -> nn.Module:
    if kind == "layer":
        return LayerNorm(d_model, bias=bias)
    if kind == "rms":
        return RMSNorm(d_model)
    return BatchNorm(d_model)
