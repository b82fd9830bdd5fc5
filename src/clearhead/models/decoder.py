"""The decoder: every token reads from its own past, then from the source, layer upon layer.

    x ← x + SelfAttention(norm(x));   x ← x + CrossAttention(norm(x), memory);   x ← x + FeedForward(norm(x))

Cross-attention's queries come from the decoder, its keys and values from the encoder. With a cache, only the new
tokens are computed. Knows embedded tokens and a memory. Refuses to know how the next word is chosen.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from torch import nn

from clearhead.config import ModelSettings
from clearhead.models.layers import attention, feedforward, residual
from clearhead.nn.attention import KeyValue
from clearhead.nn.cache import DecoderCache, Growing
from clearhead.nn.norm import build_norm
from clearhead.nn.shapes import Bool, Float, Tensor


class DecoderLayer(nn.Module):
    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.self_attention = attention(settings, positions=settings.positions, causal=True)
        self.self_residual = residual(settings)
        self.cross_attention = attention(settings, positions="none", causal=False)
        self.cross_residual = residual(settings)
        self.feedforward = feedforward(settings)
        self.feedforward_residual = residual(settings)

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        allowed: Bool[Tensor, "..."] | None,
        memory: KeyValue,
        memory_allowed: Bool[Tensor, "..."] | None,
        past: Growing | None = None,
    ) -> Float[Tensor, "B T D"]:
        x = self.self_residual(x, lambda h: self._read_past(h, allowed, past))
        x = self.cross_residual(x, lambda h: self._read_memory(h, memory, memory_allowed))
        return self.feedforward_residual(x, self.feedforward)

    def _read_past(self, h: Tensor, allowed: Tensor | None, past: Growing | None) -> Tensor:
        if past is None:
            return self.self_attention(h, allowed=allowed)
        offset = past.length
        return self.self_attention(h, past.append(self.self_attention.read(h, offset)), allowed, offset)

    def _read_memory(self, h: Tensor, memory: KeyValue, allowed: Tensor | None) -> Tensor:
        """Several hypotheses of one source read its memory as if they were several tokens: it is held once."""
        sources = memory.key.shape[0]
        return self.cross_attention(h.reshape(sources, -1, h.shape[2]), memory, allowed).view_as(h)


class Decoder(nn.Module):
    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(settings) for _ in range(settings.decoder_layers))
        pre = settings.norm_order == "pre"
        self.norm = build_norm(settings.norm, settings.d_model, bias=settings.bias) if pre else nn.Identity()

    @property
    def stack(self) -> Iterable[DecoderLayer]:
        return cast(Iterable[DecoderLayer], self.layers)

    def read(self, memory: Float[Tensor, "B S D"]) -> list[KeyValue]:
        """The memory's keys and values for every layer."""
        return [layer.cross_attention.read(memory) for layer in self.stack]

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        allowed: Bool[Tensor, "..."] | None,
        memory: Float[Tensor, "B S D"],
        memory_allowed: Bool[Tensor, "..."] | None,
    ) -> Float[Tensor, "B T D"]:
        for layer in self.stack:
            x = layer(x, allowed, layer.cross_attention.read(memory), memory_allowed)
        return self.norm(x)

    def step(
        self, x: Float[Tensor, "R L D"], allowed: Bool[Tensor, "..."] | None, cache: DecoderCache
    ) -> Float[Tensor, "R L D"]:
        for layer, memory, past in zip(self.stack, cache.memory, cache.past, strict=True):
            x = layer(x, allowed, memory, cache.allowed, past)
        return self.norm(x)
