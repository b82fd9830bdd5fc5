"""The seam's two forms give one answer: explicit = fast, values and gradients, short and long, whatever is masked."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from clearhead.nn import attention, masks
from clearhead.nn.attention import Attention, attend_explicit, attend_fast
from clearhead.nn.positions import build_score
from clearhead.nn.tap import listen

B, N, H = 2, 3, 11


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def some_masks(queries: int, keys: int) -> dict[str, Tensor | None]:
    lengths = torch.tensor([keys, keys // 3])
    free = torch.ones(1, 1, queries, keys, dtype=torch.bool)
    free[:, :, 2] = False
    return {
        "everything": None,
        "padding": masks.from_lengths(lengths, keys),
        "causal": masks.causal(queries, keys),
        "window": masks.window(queries, keys, 2),
        "strided": masks.strided(queries, keys, 1, 3),
        "a query with nothing": free,
        "a sentence with nothing": masks.from_lengths(torch.tensor([keys, 0]), keys),
        "nothing at all": torch.zeros(B, 1, queries, keys, dtype=torch.bool),
        "several": masks.both(masks.from_lengths(lengths, keys), masks.causal(queries, keys), free),
    }


MASKS = list(some_masks(5, 7))
BIASES = ("no bias", "a bias by head", "a bias by row")


def bias_of(kind: str, queries: int, keys: int) -> Tensor | None:
    shapes = {"a bias by head": (N, queries, keys), "a bias by row": (B, N, queries, keys)}
    return draw(*shapes[kind], seed=4) if kind in shapes else None


def both_forms(
    masked: str, biased: str, width: int, dtype: torch.dtype, queries: int = 5, keys: int = 7
) -> tuple[list[Tensor], list[Tensor], Tensor | None]:
    """[mixed, gradients …] of the explicit and of the fast form."""
    allowed, bias = some_masks(queries, keys)[masked], bias_of(biased, queries, keys)
    leaves = [draw(B, N, queries, H, seed=1), draw(B, N, keys, H, seed=2), draw(B, N, keys, width, seed=3)]
    leaves = [leaf.to(dtype).requires_grad_() for leaf in [*leaves, *([] if bias is None else [bias])]]
    bias = leaves[3] if len(leaves) == 4 else None
    weigh, found = draw(B, N, queries, width, seed=5).to(dtype), []
    for form in (attend_explicit, attend_fast):
        mixed = form(*leaves[:3], allowed, bias, 0.7)
        found.append([mixed.detach(), *torch.autograd.grad(mixed, leaves, weigh)])
    return *found, allowed


def assert_equal(explicit: list[Tensor], fast: list[Tensor], tolerance: float) -> None:
    for a, b in zip(explicit, fast, strict=True):
        assert torch.isfinite(a).all()
        assert torch.isfinite(b).all()
        assert (a - b).abs().max() <= tolerance * max(1.0, a.abs().max().item())


@pytest.mark.parametrize("limit", [attention.LONG, 0], ids=["written out", "torch's kernel"])
@pytest.mark.parametrize("width", [11, 13], ids=["values as wide as keys", "values wider"])
@pytest.mark.parametrize("biased", BIASES)
@pytest.mark.parametrize("masked", MASKS)
def test_explicit_is_fast(masked: str, biased: str, width: int, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "LONG", limit)
    explicit, fast, allowed = both_forms(masked, biased, width, torch.float64)
    assert_equal(explicit, fast, 1e-12)
    empty = torch.zeros(B, 1, 5, dtype=torch.bool) if allowed is None else ~allowed.expand(B, 1, 5, 7).any(-1)
    for mixed in (explicit[0], fast[0]):
        assert (mixed[empty.expand(B, N, 5)] == 0).all()
    assert_equal(*both_forms(masked, biased, width, torch.float32)[:2], 1e-5)


@pytest.mark.parametrize("biased", BIASES)
@pytest.mark.parametrize("masked", ["everything", "several", "a sentence with nothing"])
def test_long_sequences(masked: str, biased: str) -> None:
    """More scores than `LONG`: torch's blocked kernel itself, not a small stand-in."""
    assert attention.LONG < 263 * 257
    assert_equal(*both_forms(masked, biased, 11, torch.float32, 263, 257)[:2], 2e-5)


@pytest.mark.parametrize("kv_heads", [1, 2, 6])
@pytest.mark.parametrize("positions", ["none", "rotary", "alibi", "relative-t5", "relative-shaw"])
def test_listening_changes_nothing(positions: str, kv_heads: int, shake: Callable[[torch.nn.Module], None]) -> None:
    """The module with its pattern heard (explicit) and unheard (fast): output and every gradient."""
    made = Attention(23, 6, 10, 7, kv_heads, build_score(positions, 6, 10, causal=True, scale=10**-0.5)).double()
    shake(made)
    x, allowed = draw(B, 5, 23).requires_grad_(), masks.causal(5, 5)
    leaves = [x, *made.parameters()]
    silent = made(x, allowed=allowed)
    heard = []
    with listen(made, lambda name, t: (heard.append(name), t)[1], lambda name: name == "pattern"):
        open_one = made(x, allowed=allowed)
    assert heard == ["pattern"]
    gradients = [torch.autograd.grad(y, leaves, draw(B, 5, 23, seed=1)) for y in (open_one, silent)]
    assert_equal([open_one.detach(), *gradients[0]], [silent.detach(), *gradients[1]], 1e-12)
