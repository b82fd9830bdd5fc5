"""From settings to bricks: the parts that encoder and decoder layers are made of."""

from __future__ import annotations

from clearhead.config import ModelSettings
from clearhead.nn.attention import Attention
from clearhead.nn.feedforward import FeedForward
from clearhead.nn.norm import build_norm
from clearhead.nn.positions import build_score
from clearhead.nn.residual import Residual


def attention(settings: ModelSettings, *, positions: str, causal: bool) -> Attention:
    scale = settings.head_width**-0.5 if settings.scale_scores else 1.0
    return Attention(
        settings.d_model,
        settings.n_heads,
        settings.head_width,
        settings.value_width,
        settings.kv_heads,
        build_score(positions, settings.n_heads, settings.head_width, causal=causal, scale=scale),
        bias=settings.bias,
        scale=scale,
        dropout=settings.attention_dropout,
    )


def feedforward(settings: ModelSettings) -> FeedForward:
    return FeedForward(
        settings.d_model, settings.d_ff, settings.activation, bias=settings.bias, dropout=settings.activation_dropout
    )


def residual(settings: ModelSettings) -> Residual:
    norm = build_norm(settings.norm, settings.d_model, bias=settings.bias)
    return Residual(norm, settings.dropout, pre=settings.norm_order == "pre")
