"""Attention against loops: the seam's two forms, the module with every kind of heads and positions, torch's own."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.func import functional_call

from clearhead.nn import masks
from clearhead.nn.attention import Attention, ShortAttention, attend_explicit, attend_fast
from clearhead.nn.positions import build_score

B, N, Q, K, H, U = 2, 3, 5, 7, 11, 13
KINDS = ("none", "rotary", "alibi", "relative-t5", "relative-shaw")


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def some_masks() -> dict[str, Tensor | None]:
    """Among them one that leaves a query nothing, and one that differs by row."""
    free = torch.ones(1, 1, Q, K, dtype=torch.bool)
    free[:, :, 2] = False
    lengths = torch.tensor([K, 3])
    return {
        "everything": None,
        "padding": masks.from_lengths(lengths, K),
        "causal": masks.causal(Q, K, 2),
        "window": masks.window(Q, K, 1),
        "strided": masks.strided(Q, K, 1, 3),
        "a query with nothing": free,
        "a sentence with nothing": masks.from_lengths(torch.tensor([0, 3]), K),
        "several": masks.both(masks.from_lengths(lengths, K), masks.causal(Q, K), free),
    }


def some_biases() -> dict[str, Tensor | None]:
    return {"no bias": None, "a bias by head": draw(N, Q, K, seed=4), "a bias by row": draw(B, N, Q, K, seed=5)}


def lookups(allowed: Tensor | None, bias: np.ndarray | None) -> tuple[Callable, Callable]:
    """Mask and bias as the oracle asks for them."""
    full = None if allowed is None else allowed.expand(B, 1, Q, K)[:, 0].numpy()
    return (
        lambda b, q, k: full is None or full[b, q, k],
        lambda b, n, q, k: 0.0 if bias is None else bias[n, q, k] if bias.ndim == 3 else bias[b, n, q, k],
    )


@pytest.mark.parametrize("biased", some_biases())
@pytest.mark.parametrize("masked", some_masks())
@pytest.mark.parametrize("form", [attend_explicit, attend_fast])
def test_values_and_gradients(
    form: Callable, masked: str, biased: str, oracle: ModuleType, same: Callable, slopes: Callable
) -> None:
    allowed, bias = some_masks()[masked], some_biases()[biased]
    inputs = {"query": draw(B, N, Q, H, seed=1), "key": draw(B, N, K, H, seed=2), "value": draw(B, N, K, U, seed=3)}
    if bias is not None:
        inputs["bias"] = bias

    def ours(query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None = None) -> Tensor:
        return form(query, key, value, allowed, bias, 0.7)

    def loops(query: np.ndarray, key: np.ndarray, value: np.ndarray, bias: np.ndarray | None = None) -> np.ndarray:
        return oracle.attend(query, key, value, *lookups(allowed, bias), 0.7)

    same(ours(**inputs), loops(**{name: t.numpy() for name, t in inputs.items()}), 1e-12)
    same(
        ours(**{name: t.float() for name, t in inputs.items()}),
        loops(**{n: t.numpy() for n, t in inputs.items()}),
        1e-5,
    )
    slopes(ours, loops, inputs)


@pytest.mark.parametrize("masked", ["everything", "several", "a sentence with nothing"])
@pytest.mark.parametrize("biased", some_biases())
def test_the_written_out_gradient(masked: str, biased: str) -> None:
    allowed, bias = some_masks()[masked], some_biases()[biased]
    leaves = [draw(B, N, Q, 2, seed=1), draw(B, N, K, 2, seed=2), draw(B, N, K, 3, seed=3)]
    leaves = [leaf.requires_grad_() for leaf in [*leaves, *([] if bias is None else [bias])]]

    def run(query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None = None) -> Tensor:
        return ShortAttention.apply(query, key, value, None if allowed is None else ~allowed, bias, 0.7)

    assert torch.autograd.gradcheck(run, leaves)


def test_the_notes_form() -> None:
    """One token per column: Sa[X] = V[X] · softmax(K[X]ᵀ Q[X])."""
    q, k, v = draw(Q, H, seed=1), draw(K, H, seed=2), draw(K, U, seed=3)
    columns = v.T @ torch.softmax(k @ q.T, 0)
    rows = attend_explicit(q[None, None], k[None, None], v[None, None], None, None, 1.0)[0, 0]
    torch.testing.assert_close(rows, columns.T, rtol=1e-12, atol=1e-12)


def settings(n_heads: int, kv_heads: int, positions: str, scaled: bool) -> SimpleNamespace:
    return SimpleNamespace(n_heads=n_heads, kv_heads=kv_heads, head_width=10, positions=positions, scale_scores=scaled)


def module(s: SimpleNamespace, causal: bool, bias: bool, shake: Callable) -> Attention:
    scale = s.head_width**-0.5 if s.scale_scores else 1.0
    score = build_score(s.positions, s.n_heads, s.head_width, causal=causal, scale=scale)
    made = Attention(13, s.n_heads, s.head_width, 11, s.kv_heads, score, bias=bias, scale=scale)
    shake(made)
    return made


@pytest.mark.parametrize("kv_heads", [1, 2, 3, 6])
@pytest.mark.parametrize("positions", KINDS)
@pytest.mark.usefixtures("float64")
def test_many_heads(
    positions: str, kv_heads: int, oracle: ModuleType, same: Callable, weights: Callable, shake: Callable
) -> None:
    """Groups of heads share keys and values; every kind of positions; with biases and without, scaled and not."""
    s = settings(6, kv_heads, positions, scaled=kv_heads != 2)
    causal = kv_heads in (2, 3)
    made = module(s, causal, kv_heads != 3, shake)
    x = draw(2, 5, 13)
    allowed = masks.causal(5, 5) if causal else None
    expected = oracle.multi_head(
        x.numpy(), x.numpy(), weights(made), s, lambda b, q, k: not causal or k <= q, positions, causal
    )
    same(made(x, allowed=allowed), expected, 1e-12)
    same(made.float()(x.float(), allowed=allowed), expected, 1e-5)


@pytest.mark.parametrize("positions", KINDS)
@pytest.mark.usefixtures("float64")
def test_gradients_of_every_weight(positions: str, oracle: ModuleType, slopes: Callable, shake: Callable) -> None:
    s = SimpleNamespace(n_heads=2, kv_heads=1, head_width=2, positions=positions, scale_scores=True)
    score = build_score(positions, 2, 2, causal=True, scale=2**-0.5)
    made = Attention(5, 2, 2, 3, 1, score, scale=2**-0.5)
    shake(made)

    def ours(x: Tensor, **parameters: Tensor) -> Tensor:
        return functional_call(made, parameters, (x, None, masks.causal(7, 7)))

    def loops(x: np.ndarray, **parameters: np.ndarray) -> np.ndarray:
        return oracle.multi_head(x, x, parameters.get, s, lambda b, q, k: k <= q, positions, True)

    slopes(ours, loops, {"x": draw(3, 7, 5), **dict(made.named_parameters())})


@pytest.mark.usefixtures("float64")
def test_cross_attention_reads_what_it_is_given(
    oracle: ModuleType, same: Callable, weights: Callable, shake: Callable
) -> None:
    s = settings(2, 1, "none", scaled=True)
    made = module(s, False, True, shake)
    x, memory = draw(3, 5, 13, seed=1), draw(3, 7, 13, seed=2)
    lengths = torch.tensor([7, 2, 5])
    expected = oracle.multi_head(
        x.numpy(), memory.numpy(), weights(made), s, lambda b, q, k: k < lengths[b], "none", False
    )
    same(made(x, made.read(memory), masks.from_lengths(lengths, 7)), expected, 1e-12)


@pytest.mark.usefixtures("float64")
def test_as_torchs_own(shake: Callable) -> None:
    """torch.nn.MultiheadAttention with the same weights: the output, the gradients, the mean pattern."""
    made = Attention(22, 2, 11, 11, 2, build_score("none", 2, 11, causal=False, scale=1.0))
    shake(made)
    theirs = torch.nn.MultiheadAttention(22, 2, batch_first=True)
    with torch.no_grad():
        for name, packed in (("weight", theirs.in_proj_weight), ("bias", theirs.in_proj_bias)):
            packed.copy_(torch.cat([getattr(part, name) for part in (made.query, made.key, made.value)]))
        theirs.out_proj.weight.copy_(made.out.weight)
        theirs.out_proj.bias.copy_(made.out.bias)
    x, memory = draw(3, 5, 22, seed=1).requires_grad_(), draw(3, 7, 22, seed=2).requires_grad_()
    allowed = masks.from_lengths(torch.tensor([7, 2, 5]), 7)
    ours = made(x, made.read(memory), allowed)
    expected, _ = theirs(x, memory, memory, key_padding_mask=~allowed[:, 0, 0])
    torch.testing.assert_close(ours, expected, rtol=1e-12, atol=1e-12)
    weigh = draw(3, 5, 22, seed=3)
    for a, b in zip(*(torch.autograd.grad(y, (x, memory), weigh) for y in (ours, expected)), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


def test_scale_by_default_is_one_over_root_of_the_width() -> None:
    assert Attention(13, 2, 5, 7, 1, build_score("none", 2, 5, causal=False, scale=1.0)).scale == 1 / math.sqrt(5)
