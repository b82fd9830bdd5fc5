"""The convolutional baseline: an encoder that sees only its filter's width, before the ordinary decoder.

    x ← x + Conv(norm(x)),     Conv(h)_s = u ⊙ σ(g),     [u, g] = Ω [h_{s−w} … h_{s+w}] + β

A gated linear unit over a window of 2w + 1 tokens (Gehring et al. 2017, §3.2; gates: Dauphin et al. 2017), in the
Transformer's own residual stream, so that how tokens read each other is what differs. A layer carries news w tokens
far, so a token knows of at most `reach` = layers × w tokens to each side, however much is learned.

w is the setting `attention_window` (1 when empty). Here it is the filter's, and the decoder's self-attention sees
its whole past.

Knows embedded tokens and which are real. Refuses to know what the decoder does with the memory.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from clearhead.config import ModelSettings
from clearhead.models.layers import residual
from clearhead.models.protocol import Memory
from clearhead.models.seq2seq import Seq2Seq
from clearhead.nn import masks
from clearhead.nn.linear import Linear
from clearhead.nn.norm import build_norm
from clearhead.nn.shapes import Bool, Float, Int, Tensor
from clearhead.nn.tap import tap


class GatedConvolution(nn.Module):
    """A convolution is a linear map of each token's window, and written as one: its weights are then a matrix to
    every optimiser, and its products follow the precision of all others."""

    def __init__(self, d_model: int, window: int, *, bias: bool = True) -> None:
        super().__init__()
        self.window = window
        self.filter = Linear((2 * window + 1) * d_model, 2 * d_model, bias=bias)

    def forward(self, x: Float[Tensor, "B S D"], real: Bool[Tensor, "B S 1"]) -> Float[Tensor, "B S D"]:
        """Padding counts as zeros, as does what lies beyond both ends: a longer batch changes nothing."""
        held = F.pad(x.masked_fill(~real, 0.0), (0, 0, self.window, self.window))
        windows = held.unfold(1, 2 * self.window + 1, 1).transpose(2, 3).flatten(2)  # B S (2w+1)·D
        value, gate = self.filter(windows).chunk(2, -1)
        return tap(self, "out", value * tap(self, "gate", torch.sigmoid(gate)))


class ConvolutionalLayer(nn.Module):
    def __init__(self, settings: ModelSettings, window: int) -> None:
        super().__init__()
        self.convolution = GatedConvolution(settings.d_model, window, bias=settings.bias)
        self.residual = residual(settings)

    def forward(self, x: Float[Tensor, "B S D"], real: Bool[Tensor, "B S 1"]) -> Float[Tensor, "B S D"]:
        return self.residual(x, lambda h: self.convolution(h, real))


class ConvolutionalEncoder(nn.Module):
    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.window = settings.attention_window or 1
        self.layers = nn.ModuleList(ConvolutionalLayer(settings, self.window) for _ in range(settings.encoder_layers))
        pre = settings.norm_order == "pre"
        self.norm = build_norm(settings.norm, settings.d_model, bias=settings.bias) if pre else nn.Identity()

    @property
    def reach(self) -> int:
        """How many tokens to each side can change a token's memory: layers × window."""
        return len(self.layers) * self.window

    def forward(self, x: Float[Tensor, "B S D"], real: Bool[Tensor, "B S 1"]) -> Float[Tensor, "B S D"]:
        for layer in self.layers:
            x = layer(x, real)
        return self.norm(x)


class Convolutional(Seq2Seq):
    """The Transformer with the other encoder."""

    encoder: ConvolutionalEncoder  # type: ignore[assignment]

    def __init__(self, settings: ModelSettings, source_vocab: int, target_vocab: int) -> None:
        super().__init__(settings, source_vocab, target_vocab)
        self.encoder = ConvolutionalEncoder(settings)

    @property
    def reach(self) -> int:
        return self.encoder.reach

    def encode(self, source: Int[Tensor, "B S"]) -> Memory:
        real = source != self.pad
        states = tap(self, "memory", self.encoder(self.source_embedding(source), real[:, :, None]))
        return Memory(states, masks.padding(source, self.pad))

    def _pattern(self, queries: int, keys: int, offset: int = 0) -> Bool[Tensor, "1 1 Q K"] | None:
        """The decoder's self-attention is not windowed: the setting is the filter's."""
        return None
