"""The encoder: every token reads from every token, layer upon layer.

    x ← x + SelfAttention(norm(x));   x ← x + FeedForward(norm(x))        (pre-norm; post-norm as in the 2017 paper)

Knows embedded tokens and a mask. Refuses to know what a decoder does with the memory.
"""

from __future__ import annotations

from torch import nn

from clearhead.config import ModelSettings
from clearhead.models.layers import attention, feedforward, residual
from clearhead.nn.norm import build_norm
from clearhead.nn.shapes import Bool, Float, Tensor


class EncoderLayer(nn.Module):
    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.self_attention = attention(settings, positions=settings.positions, causal=False)
        self.attention_residual = residual(settings)
        self.feedforward = feedforward(settings)
        self.feedforward_residual = residual(settings)

    def forward(self, x: Float[Tensor, "B S D"], allowed: Bool[Tensor, "..."] | None) -> Float[Tensor, "B S D"]:
        x = self.attention_residual(x, lambda h: self.self_attention(h, allowed=allowed))
        return self.feedforward_residual(x, self.feedforward)


class Encoder(nn.Module):
    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(settings) for _ in range(settings.encoder_layers))
        pre = settings.norm_order == "pre"
        self.norm = build_norm(settings.norm, settings.d_model, bias=settings.bias) if pre else nn.Identity()

    def forward(self, x: Float[Tensor, "B S D"], allowed: Bool[Tensor, "..."] | None) -> Float[Tensor, "B S D"]:
        for layer in self.layers:
            x = layer(x, allowed)
        return self.norm(x)
