"""How order enters: "could be anything that encodes position".

Added to the embeddings (`AbsolutePositions`):
    sinusoidal         P(pos, 2i) = sin(pos / 10000^(2i/D)),  P(pos, 2i+1) = cos(the same)      Vaswani et al. 2017
    sinusoidal-halves  the same waves, all sines first, then all cosines (exponent i / (D/2))
    learned            a table

Inside the scores (`ScorePositions`), between queries and keys of the same sequence:
    rotary             each pair of channels of q and k is turned by its position's angle       Su et al. 2021
    alibi              scores − slope(head) · distance                                          Press et al. 2022
    relative-t5        scores + b(head, bucket of distance)                                     Raffel et al. 2020
    relative-shaw      scores + q · r(distance), distances clipped (the keys' half of the paper) Shaw et al. 2018

Knows positions and shapes. Refuses to know tokens.
"""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import nn

from clearhead.nn.masks import distances
from clearhead.nn.shapes import Float, Int, Tensor


def sinusoidal(length: int, d_model: int, *, halves: bool = False) -> Float[Tensor, "L D"]:
    """The table of waves, computed in float64, on the processor wherever the model is."""
    pair = torch.arange(d_model // 2, dtype=torch.float64, device="cpu")
    angle = torch.arange(length, dtype=torch.float64, device="cpu")[:, None] / 10000 ** (2 * pair / d_model)
    waves = (angle.sin(), angle.cos())
    table = torch.cat(waves, -1) if halves else torch.stack(waves, -1).flatten(1)
    return table.to(torch.get_default_dtype())


class AbsolutePositions(nn.Module):
    """One vector per position, fixed waves or learned."""

    table: Tensor

    def __init__(self, kind: str, max_len: int, d_model: int) -> None:
        super().__init__()
        self.max_len = max_len
        if kind == "learned":
            self.table = nn.Parameter(nn.init.normal_(torch.empty(max_len, d_model), std=d_model**-0.5))
        else:
            waves = sinusoidal(max_len, d_model, halves=kind == "sinusoidal-halves")
            self.register_buffer("table", waves, persistent=False)

    def forward(self, length: int, offset: int = 0) -> Float[Tensor, "L D"]:
        if offset + length > self.max_len:
            raise ValueError(f"position {offset + length} is beyond max_len {self.max_len}")
        return self.table[offset : offset + length]


class ScorePositions(nn.Module):
    """What positions do inside attention's scores. This one: nothing."""

    def rotate(self, x: Float[Tensor, "B N L H"], offset: int = 0) -> Float[Tensor, "B N L H"]:
        """Queries and keys before their product."""
        return x

    def bias(self, query: Float[Tensor, "B N Q H"], keys: int, offset: int = 0) -> Tensor | None:
        """What is added to the scaled products, (N, Q, K) or (B, N, Q, K)."""
        return None


def round_up(length: int) -> int:
    """To a power of two, so that few tables serve all lengths."""
    return 1 << max(6, (length - 1).bit_length())


@lru_cache(maxsize=32)
@torch.inference_mode(False)
def turns(d_head: int, length: int, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    """Sines and cosines of each position's angle for each pair of channels, computed in float64."""
    pair = torch.arange(d_head // 2, device="cpu", dtype=torch.float64)  # some GPUs have no float64
    at = torch.arange(length, device="cpu", dtype=torch.float64)
    angle = at[:, None] / 10000 ** (2 * pair / d_head)
    return angle.sin().to(device, dtype), angle.cos().to(device, dtype)


class Rotary(ScorePositions):
    """Channels (2i, 2i+1) turn by pos / 10000^(2i/H), so that q·k depends on the distance alone."""

    def __init__(self, d_head: int) -> None:
        super().__init__()
        self.d_head = d_head

    def rotate(self, x: Float[Tensor, "B N L H"], offset: int = 0) -> Float[Tensor, "B N L H"]:
        end = offset + x.shape[2]
        sine, cosine = (table[offset:end] for table in turns(self.d_head, round_up(end), x.dtype, x.device))
        even, odd = x[..., 0::2], x[..., 1::2]
        return torch.stack((even * cosine - odd * sine, even * sine + odd * cosine), -1).flatten(-2)


class Alibi(ScorePositions):
    """A penalty that grows with distance, at another slope for each head: 2^(−8 (n+1) / N)."""

    slopes: Tensor

    def __init__(self, n_heads: int) -> None:
        super().__init__()
        slopes = 2.0 ** (-8.0 * torch.arange(1, n_heads + 1, device="cpu") / n_heads)
        self.register_buffer("slopes", slopes, persistent=False)

    def bias(self, query: Float[Tensor, "B N Q H"], keys: int, offset: int = 0) -> Float[Tensor, "N Q K"]:
        away = distances(query.shape[2], keys, offset, query.device).abs()
        return -self.slopes[:, None, None] * away


def t5_bucket(away: Int[Tensor, "Q K"], buckets: int, reach: int, causal: bool) -> Int[Tensor, "Q K"]:
    """Near distances have a bucket each, far ones share logarithmic ones; both directions unless causal."""
    first = torch.zeros_like(away)
    if causal:
        away = (-away).clamp(min=0)
    else:
        buckets //= 2
        first, away = (away > 0).long() * buckets, away.abs()
    exact = buckets // 2
    far = exact + ((away.clamp(min=1) / exact).log() / math.log(reach / exact) * (buckets - exact)).long()
    return first + torch.where(away < exact, away, far.clamp(max=buckets - 1))


class RelativeT5(ScorePositions):
    def __init__(self, n_heads: int, *, causal: bool, buckets: int = 32, reach: int = 128) -> None:
        super().__init__()
        self.causal, self.buckets, self.reach = causal, buckets, reach
        self.table = nn.Parameter(torch.zeros(buckets, n_heads))

    def bias(self, query: Float[Tensor, "B N Q H"], keys: int, offset: int = 0) -> Float[Tensor, "N Q K"]:
        away = distances(query.shape[2], keys, offset, query.device)
        bucket = t5_bucket(away, self.buckets, self.reach, self.causal)
        return self.table[bucket].permute(2, 0, 1)


class RelativeShaw(ScorePositions):
    def __init__(self, d_head: int, *, scale: float, reach: int = 16) -> None:
        super().__init__()
        self.scale, self.reach = scale, reach
        self.table = nn.Parameter(nn.init.normal_(torch.empty(2 * reach + 1, d_head), std=d_head**-0.5))

    def bias(self, query: Float[Tensor, "B N Q H"], keys: int, offset: int = 0) -> Float[Tensor, "B N Q K"]:
        away = distances(query.shape[2], keys, offset, query.device).clamp(-self.reach, self.reach) + self.reach
        by_distance = query @ self.table.T  # B N Q (2·reach+1)
        return by_distance.gather(-1, away.expand(*query.shape[:3], keys)) * self.scale


ABSOLUTE = ("sinusoidal", "sinusoidal-halves", "learned")


def build_absolute(kind: str, max_len: int, d_model: int) -> AbsolutePositions | None:
    return AbsolutePositions(kind, max_len, d_model) if kind in ABSOLUTE else None


def build_score(kind: str, n_heads: int, d_head: int, *, causal: bool, scale: float) -> ScorePositions:
    if kind == "rotary":
        return Rotary(d_head)
    if kind == "alibi":
        return Alibi(n_heads)
    if kind == "relative-t5":
        return RelativeT5(n_heads, causal=causal)
    if kind == "relative-shaw":
        return RelativeShaw(d_head, scale=scale)
    return ScorePositions()
