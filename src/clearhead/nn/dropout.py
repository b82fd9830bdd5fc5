"""Dropout whose masks are counted, not drawn from a generator.

    y = x · m / keep         m ∈ {0, 1},  P(m = 1) = keep            (Srivastava et al. 2014)

m is a function of (seed, step, site, the sample's place in the global batch, and the number's place in the sample).
Splitting a batch or resuming a run leaves every mask as it was. So does padding a batch further, where numbers are
counted by position and channel; the patterns of attention dropout are counted by head, query and key, so there the
padded length matters. Eight masks come from one 64-bit hash (SplitMix64), one byte each, so `keep` is a multiple of
1/256, at least 1/256 — and the exact multiple is what is divided by.

Dropout happens only inside `with draws(...)`, which the training loop opens; everywhere else it is the identity.
Knows keys and shapes. Refuses to know the clock, the rank and the micro-batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import nn
from torch.autograd.function import once_differentiable

from clearhead.nn.shapes import Bool, Float, Int, Tensor, UInt8
from clearhead.randomness.counted import GOLDEN, MIX_1, MIX_2, Site


def signed(word: int) -> int:
    """64 bits as the int64 with the same bits: torch has no arithmetic on uint64."""
    return word - (1 << 64) if word >= 1 << 63 else word


def shift_xor(words: Tensor, bits: int) -> Tensor:
    """words ^ (words >>> bits), where >> on int64 copies the sign and the mask takes the copies away."""
    return words.bitwise_xor(words.bitwise_right_shift(bits).bitwise_and_((1 << (64 - bits)) - 1))


def mix(words: Int[Tensor, "..."]) -> Int[Tensor, "..."]:
    """SplitMix64's finaliser on int64 tensors; equal to `randomness.counted.mix`, bit for bit."""
    words = shift_xor(words, 30).mul_(signed(MIX_1))
    words = shift_xor(words, 27).mul_(signed(MIX_2))
    return shift_xor(words, 31)


class Draws:
    """The draws of one forward pass: its site key and each row's place in the global batch."""

    def __init__(self, site: Site, places: Int[Tensor, "B"]) -> None:
        self.site = site
        self.places = places
        self.asked = 0

    def next_key(self) -> int:
        """Of the next place that asks, as int64."""
        self.asked += 1
        return signed(self.site.key(self.asked))

    def bytes(self, *shape: int) -> UInt8[Tensor, "..."]:
        """Uniform bytes of shape (B, …), for the next place of the forward pass that asks."""
        rows = mix(self.places + self.next_key())
        n = 1
        for size in shape[1:]:
            n *= size
        counters = torch.arange(-(-n // 8), device=rows.device).mul_(signed(GOLDEN))
        return mix(rows[:, None] + counters).view(torch.uint8)[:, :n].view(shape)


_draws: ContextVar[Draws | None] = ContextVar("draws", default=None)


@contextmanager
def draws(site: Site, places: Int[Tensor, "B"]) -> Iterator[None]:
    """While the block runs, dropout drops."""
    token = _draws.set(Draws(site, places))
    try:
        yield
    finally:
        _draws.reset(token)


def current_draws() -> Draws | None:
    """Those of the block this runs in."""
    return _draws.get()


def dropping() -> bool:
    """Does dropout drop just now?"""
    return _draws.get() is not None


def share_dropped(rate: float) -> int:
    """In 256ths: the share that can be had."""
    return min(round(rate * 256), 255)


def keep_mask(shape: tuple[int, ...], rate: float) -> tuple[Bool[Tensor, "..."], float] | None:
    """The next mask and its exact keep probability, or None where nothing is dropped."""
    drawn, dropped = _draws.get(), share_dropped(rate)
    if drawn is None or dropped == 0:
        return None
    return drawn.bytes(*shape) >= dropped, 1.0 - dropped / 256


class Masked(torch.autograd.Function):
    """x · mask · scale, keeping only the mask (a byte an element) for the way back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, mask: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(mask)
        ctx.scale = scale
        return (x * mask).mul_(scale)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (mask,) = ctx.saved_tensors
        return (gradient * mask).mul_(ctx.scale), None, None


def dropout(x: Float[Tensor, "B ..."], rate: float) -> Float[Tensor, "B ..."]:
    drawn = keep_mask(tuple(x.shape), rate)
    return x if drawn is None else Masked.apply(x, drawn[0], 1.0 / drawn[1])


class Dropout(nn.Module):
    """`dropout` at a fixed rate."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Float[Tensor, "B ..."]) -> Float[Tensor, "B ..."]:
        return dropout(x, self.rate)
