"""The compiled loops of learning.cpp as steps of a differentiable computation on rows.

    products    y = h Wᵀ                 bf16 in, bf16 out; ∂h = ∂y W, ∂W = ∂yᵀ h
    activate    h = max(u + β, 0), or its square
    attend      pattern = softmax(q kᵀ · scale), mixed = pattern v, one head of one sequence at a time
    join        s = x + dropout(part + β), y = norm(s), h = y rounded for the next product
    drop        dropout of the embeddings
    surprise    logits → the gradient of the loss (train/loss.py), and disagree: the same for R-Drop

A product's β is added by the loop that reads it: torch's own way of adding it costs a tenth of the product.

The products themselves are torch's. All numbers of rows that are only room are zeros, so they weigh nothing in sums.
Masks are those of nn/dropout.py, bit for bit, drawn again on the way back. Knows tensors and pointers. Refuses to know
layers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import Structure, byref, c_float, c_int32, c_int64, c_void_p
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from clearhead.native.build import library
from clearhead.native.rows import Rows
from clearhead.nn.positions import round_up, turns
from clearhead.nn.shapes import Tensor


class DropoutGiven(Structure):
    """As `Dropout` in learning.cpp."""

    _fields_ = (
        *((name, c_void_p) for name in ("places", "sample", "at")),
        ("key", c_int64), ("dropped", c_int32), ("scale", c_float),
    )  # fmt: skip


class JoinGiven(Structure):
    """As `Join` in learning.cpp."""

    _fields_ = (
        *((name, c_int32) for name in ("rows", "room", "d", "rms")),
        ("x", c_void_p), ("part", c_void_p), ("bias", c_void_p), ("dropout", DropoutGiven),
        ("gamma", c_void_p), ("beta", c_void_p), ("eps", c_float), *((name, c_void_p) for name in "syh"),
    )  # fmt: skip


class JoinBack(Structure):
    """As in learning.cpp."""

    _fields_ = tuple(
        (name, c_void_p) for name in ("s", "to_s", "to_y", "to_h", "to_x", "to_part", "to_bias", "to_gamma", "to_beta")
    )


class Side(Structure):
    """As in learning.cpp."""

    _fields_ = (("x", c_void_p), ("to", c_void_p), ("stride", c_int32), ("to_stride", c_int32))


class AttentionGiven(Structure):
    """As `Attention` in learning.cpp."""

    _fields_ = (
        *((n, c_int32) for n in ("sequences", "heads", "groups", "h", "u", "causal", "longest_query", "longest_key")),
        ("query_start", c_void_p), ("key_start", c_void_p), ("query", Side), ("key", Side), ("value", Side),
        *((name, c_void_p) for name in ("query_bias", "key_bias", "value_bias", "sine", "cosine")),
        ("scale", c_float),
        *((n, c_void_p) for n in ("mixed", "to_mixed", "to_query_bias", "to_key_bias", "to_value_bias")),
    )  # fmt: skip
    waves: tuple[Tensor | None, ...]
    """Those of `sine` and `cosine`: theirs is the only memory nobody else holds on to."""


SHARE = 16_384
"""Numbers for which another thread is worth its call. Calling one for less gains nothing, and with another program on
its core everybody waits for it: a step of a small model took forty times as long."""
P, N, F = c_void_p, c_int32, c_float
LOOPS = {
    "join": (P, N),
    "join_back": (P, P, N),
    "drop": (P, P, P, N, N, N, N),
    "attend": (P, N),
    "attend_back": (P, N),
    "activate": (P, P, N, N, N, N, N),
    "activate_back": (P, P, P, N, N, N, N, N),
    "surprise": (P, P, P, P, N, N, F, N),
    "disagree": (P, P, P, P, P, N, N, F, F, N),
}


def loops() -> ctypes.CDLL | None:
    """The library, if it has been built."""
    found = library()
    return None if found is None else bound(found)


@cache
def bound(found: ctypes.CDLL) -> ctypes.CDLL:
    for name, given in LOOPS.items():
        loop = getattr(found, f"clearhead_{name}")
        loop.argtypes, loop.restype = given, ctypes.c_bool
    return found


def run(name: str, numbers: int, *given: Any) -> None:
    """One of the loops over so many numbers, on at most as many threads as torch has."""
    threads = max(1, min(torch.get_num_threads(), numbers // SHARE))
    if not getattr(loops(), f"clearhead_{name}")(*given, threads):
        raise MemoryError("no memory for a step of training")


def pointer(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()


@dataclass(frozen=True)
class Drop:
    """One place where numbers are dropped: the key of its draws, and the share dropped in 256ths."""

    rows: Rows
    places: Tensor
    """Of each sequence in the global batch."""
    key: int
    dropped: int

    def given(self) -> DropoutGiven:
        scale = 256 / (256 - self.dropped)
        where = (pointer(t) for t in (self.places, self.rows.sample, self.rows.place))
        return DropoutGiven(*where, self.key, self.dropped, scale)


class Products(torch.autograd.Function):
    """Several maps of the same rows, as one product, without their β."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, *weights: Tensor) -> Tensor:
        rounded = [weight.bfloat16() for weight in weights]
        weight = rounded[0] if len(rounded) == 1 else torch.cat(rounded)
        ctx.save_for_backward(h, weight)
        ctx.widths = [len(w) for w in weights]
        return torch.nn.functional.linear(h, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, ...]:
        h, weight = ctx.saved_tensors
        return gradient @ weight, *(gradient.T @ h).float().split(ctx.widths)


class Activate(torch.autograd.Function):
    """In place, there and back: what comes in is a product's, and nobody else holds it."""

    @staticmethod
    def forward(ctx: Any, u: Tensor, bias: Tensor | None, rows: Rows, squared: bool) -> Tensor:
        ctx.mark_dirty(u)
        run("activate", u.numel(), pointer(u), pointer(bias), rows.count, len(u), u.shape[1], squared)
        ctx.save_for_backward(u, bias)
        ctx.rows, ctx.squared = rows, squared
        return u

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        h, bias = ctx.saved_tensors
        to_u, to_bias = gradient.contiguous(), like(bias)
        given = (pointer(t) for t in (h, to_u, to_bias))
        run("activate_back", h.numel(), *given, ctx.rows.count, *h.shape, ctx.squared)
        return to_u, to_bias, None, None


def like(parameter: Tensor | None) -> Tensor | None:
    """Room for its gradient."""
    return None if parameter is None else torch.empty_like(parameter)


class Apart(torch.autograd.Function):
    """Columns in runs of the same width, each a view."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, count: int) -> tuple[Tensor, ...]:
        return x.chunk(count, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        return torch.cat(gradients, 1), None


@dataclass(frozen=True)
class Heads:
    """An attention: how many heads, how wide, and who may read whom."""

    heads: int
    groups: int
    h: int
    u: int
    scale: float
    causal: bool
    turning: bool

    def columns(self, own: bool) -> tuple[int, int]:
        """Where keys and values begin, in rows that hold queries, keys and values, or keys and values alone."""
        first = self.heads * self.h if own else 0
        return first, first + self.groups * self.h


class Attend(torch.autograd.Function):
    """Rows of queries, keys and values (or of queries, with keys and values in `asked`) → rows of mixed values."""

    @staticmethod
    def forward(
        ctx: Any, asking: Tensor, asked: Tensor | None, heads: Heads, rows: Rows, read: Rows, *biases: Tensor | None
    ) -> Tensor:
        mixed = empty_rows(asking, heads.heads * heads.u, rows)
        given = attention(asking, asked, heads, rows, read, biases)
        given.mixed = pointer(mixed)
        run("attend", mixed.numel(), byref(given))
        ctx.save_for_backward(asking, asked, *biases)
        ctx.heads, ctx.rows, ctx.read = heads, rows, read
        return mixed

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        asking, asked, *biases = ctx.saved_tensors
        gradient, to_biases = gradient.contiguous(), [like(bias) for bias in biases]
        to_asking = empty_rows(asking, asking.shape[1], ctx.rows)
        to_asked = None if asked is None else empty_rows(asked, asked.shape[1], ctx.read)
        to_read = to_asking if to_asked is None else to_asked
        given = attention(asking, asked, ctx.heads, ctx.rows, ctx.read, biases)
        given.to_mixed = pointer(gradient)
        given.to_query_bias, given.to_key_bias, given.to_value_bias = map(pointer, to_biases)
        key, value = ctx.heads.columns(asked is None)
        for side, to in ((given.query, to_asking), (given.key, to_read[:, key:]), (given.value, to_read[:, value:])):
            side.to, side.to_stride = pointer(to), to.stride(0)
        run("attend_back", gradient.numel(), byref(given))
        return to_asking, to_asked, None, None, None, *to_biases


def empty_rows(like: Tensor, width: int, rows: Rows) -> Tensor:
    """Room for so many numbers a row, zeros where there is only room."""
    made = torch.empty(len(like), width, dtype=like.dtype)
    made[rows.count :] = 0
    return made


def attention(
    asking: Tensor, asked: Tensor | None, heads: Heads, rows: Rows, read: Rows, biases: Sequence[Tensor | None]
) -> AttentionGiven:
    from_ = asking if asked is None else asked
    key, value = heads.columns(asked is None)
    lengths = rows.longest, read.longest
    waves = turns(heads.h, round_up(max(lengths)), torch.float32, asking.device) if heads.turning else (None, None)
    sides = (asking, from_[:, key:], from_[:, value:])
    given = AttentionGiven(
        rows.sequences, heads.heads, heads.groups, heads.h, heads.u, heads.causal, *lengths,
        pointer(rows.start), pointer(read.start), *(Side(pointer(side), None, side.stride(0)) for side in sides),
        *map(pointer, biases), *map(pointer, waves), heads.scale,
    )  # fmt: skip
    given.waves = waves
    return given


@dataclass(frozen=True)
class Norm:
    """A norm as the loops know it."""

    eps: float
    rms: bool


class Join(torch.autograd.Function):
    """The stream, a part of the network that is added to it, and the norm after: → (s, y, h), those that are wanted."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, part: Tensor | None, bias: Tensor | None, gamma: Tensor | None, beta: Tensor | None,
        rows: Rows, norm: Norm | None, drop: Drop | None, wanted: str,
    ) -> tuple[Tensor | None, ...]:  # fmt: skip
        ctx.set_materialize_grads(False)
        ctx.rows, ctx.norm, ctx.drop, ctx.added = rows, norm, drop, part is not None
        keeps = part is not None and ("s" in wanted or norm is not None)
        s = torch.empty_like(x) if keeps else None
        y = torch.empty_like(x) if "y" in wanted else None
        h = torch.empty_like(x, dtype=torch.bfloat16) if "h" in wanted else None
        given = given_join(x.shape[1], rows, norm, drop, bias, gamma, beta)
        given.x, given.part, given.s, given.y, given.h = map(pointer, (x, part, s, y, h))
        run("join", x.numel(), byref(given))
        ctx.save_for_backward(x if s is None else s, bias, gamma, beta)
        return s if "s" in wanted else None, y, h

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, to_s: Tensor | None, to_y: Tensor | None, to_h: Tensor | None) -> tuple[Any, ...]:
        s, *parameters = ctx.saved_tensors
        to_x = torch.empty_like(s)
        to_part = torch.empty_like(s, dtype=torch.bfloat16) if ctx.added else None
        to_parameters = [like(p) for p in parameters]
        received = [None if g is None else g.contiguous() for g in (to_s, to_y, to_h)]
        back = JoinBack(*map(pointer, (s, *received, to_x, to_part, *to_parameters)))
        given = given_join(s.shape[1], ctx.rows, ctx.norm, ctx.drop, *parameters)
        run("join_back", s.numel(), byref(given), byref(back))
        return to_x, to_part, *to_parameters, None, None, None, None


def given_join(width: int, rows: Rows, norm: Norm | None, drop: Drop | None, *parameters: Tensor | None) -> JoinGiven:
    """What a join is, both ways."""
    eps, rms = (0.0, False) if norm is None else (norm.eps, norm.rms)
    dropout = DropoutGiven() if drop is None else drop.given()
    bias, gamma, beta = map(pointer, parameters)
    return JoinGiven(rows.count, rows.room, width, rms, None, None, bias, dropout, gamma, beta, eps)


class Dropped(torch.autograd.Function):
    """Dropout of float32 rows."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, drop: Drop) -> Tensor:
        ctx.drop = drop
        return dropped(x, drop)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        return dropped(gradient.contiguous(), ctx.drop), None


def dropped(x: Tensor, drop: Drop) -> Tensor:
    out = torch.empty_like(x)
    run("drop", x.numel(), byref(drop.given()), pointer(x), pointer(out), drop.rows.count, len(x), x.shape[1])
    return out


def require_words(targets: Tensor, vocab: int) -> None:
    """The loops write where a target says."""
    if len(targets) and not 0 <= int(targets.min()) <= int(targets.max()) < vocab:
        raise IndexError(f"a target is not in the vocabulary of {vocab}")


def surprise(logits: Tensor, targets: Tensor, known: Tensor, kept: float) -> Tensor:
    """Each row of logits becomes p − kept · e_y. → log Σ exp of each row, whose targets' logits, not rounded, are
    `known`."""
    require_words(targets, logits.shape[1])
    normalisers = torch.empty(len(logits))
    given = (pointer(t) for t in (logits, targets, known, normalisers))
    run("surprise", logits.numel(), *given, *logits.shape, kept)
    return normalisers


def disagree(logits: Tensor, targets: Tensor, known: Tensor, kept: float, weight: float) -> tuple[Tensor, Tensor]:
    """Rows, then their second passes: each becomes ½ (p − kept · e_y) + weight · ∂(KL(p‖q) + KL(q‖p)). → log Σ exp of
    each, and each pair's divergences."""
    require_words(targets, logits.shape[1])
    normalisers, divergences = torch.empty(len(logits)), torch.empty(len(targets))
    given = (pointer(t) for t in (logits, targets, known, normalisers, divergences))
    run("disagree", logits.numel(), *given, len(targets), logits.shape[1], kept, weight)
    return normalisers, divergences
