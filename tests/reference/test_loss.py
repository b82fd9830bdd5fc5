"""The losses against torch's autograd on the plain formulas in float64: values, gradients, chunks, rounding."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from clearhead.nn.linear import products_in
from clearhead.train import loss
from clearhead.train.loss import RDropCrossEntropy, SmoothedCrossEntropy, rdrop_cross_entropy, smoothed_cross_entropy

R, D, V = 13, 5, 17


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def some_targets(rows: int = R) -> Tensor:
    return torch.randint(0, V, (rows,), generator=torch.Generator().manual_seed(1))


def plain(hidden: Tensor, weight: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """−(1−ε) log p_y − ε/V Σ_v log p_v, summed over rows."""
    log_p = torch.log_softmax(hidden @ weight.T, -1)
    of_target = log_p[torch.arange(len(targets)), targets]
    return -((1 - smoothing) * of_target + smoothing * log_p.mean(-1)).sum()


def plain_rdrop(hidden: Tensor, weight: Tensor, targets: Tensor, smoothing: float, alpha: float) -> Tensor:
    """The mean of both passes' losses + α/4 (KL(p‖q) + KL(q‖p))."""
    first, second = hidden.chunk(2)
    both = plain(first, weight, targets, smoothing) + plain(second, weight, targets, smoothing)
    log_p, log_q = torch.log_softmax(first @ weight.T, -1), torch.log_softmax(second @ weight.T, -1)
    there = (log_p.exp() * (log_p - log_q)).sum()
    back = (log_q.exp() * (log_q - log_p)).sum()
    return both / 2 + alpha / 4 * (there + back)


def agree(ours: Callable[..., Tensor], theirs: Callable[..., Tensor], leaves: list[Tensor], tolerance: float) -> None:
    """Values and gradients, within `tolerance` of the largest number of each; the gradient of 3 × the loss is 3 ×."""
    mine = [leaf.detach().clone().requires_grad_() for leaf in leaves]
    peers = [leaf.detach().double().requires_grad_() for leaf in leaves]
    value, expected = ours(*mine), theirs(*peers)
    (3 * value).backward()
    (3 * expected).backward()
    for a, b in [(value, expected), *((m.grad, p.grad) for m, p in zip(mine, peers, strict=True))]:
        assert (a.double() - b).abs().max() <= tolerance * b.abs().max()


@pytest.mark.parametrize("chunk", [2, 5, 512])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
def test_smoothed_cross_entropy(smoothing: float, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss, "CHUNK", chunk)
    y = some_targets()
    leaves = [draw(R, D), draw(V, D, seed=2)]

    def ours(hidden: Tensor, weight: Tensor) -> Tensor:
        return smoothed_cross_entropy(hidden, weight, y, smoothing)

    def theirs(hidden: Tensor, weight: Tensor) -> Tensor:
        return plain(hidden, weight, y, smoothing)

    agree(ours, theirs, leaves, 1e-12)
    agree(ours, theirs, [leaf.float() for leaf in leaves], 1e-5)


@pytest.mark.parametrize("chunk", [2, 6, 512])
@pytest.mark.parametrize(("smoothing", "alpha"), [(0.0, 1.0), (0.1, 5.0), (0.3, 0.01)])
def test_rdrop_cross_entropy(smoothing: float, alpha: float, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss, "CHUNK", chunk)
    y = some_targets()
    leaves = [draw(2 * R, D), draw(V, D, seed=2)]

    def ours(hidden: Tensor, weight: Tensor) -> Tensor:
        return rdrop_cross_entropy(hidden, weight, y, smoothing, alpha)

    def theirs(hidden: Tensor, weight: Tensor) -> Tensor:
        return plain_rdrop(hidden, weight, y, smoothing, alpha)

    agree(ours, theirs, leaves, 1e-12)
    agree(ours, theirs, [leaf.float() for leaf in leaves], 1e-5)


def test_the_gradients_are_the_slopes() -> None:
    y = some_targets(3)
    leaves = [draw(3, D).requires_grad_(), draw(V, D, seed=2).requires_grad_()]
    assert torch.autograd.gradcheck(lambda h, w: SmoothedCrossEntropy.apply(h, w, y, 0.1, torch.float32), leaves)
    leaves[0] = draw(6, D).requires_grad_()
    assert torch.autograd.gradcheck(lambda h, w: RDropCrossEntropy.apply(h, w, y, 0.1, 5.0, torch.float32), leaves)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("size", [30.0, 300.0, 3000.0])
def test_when_the_model_is_sure_and_wrong(size: float, smoothing: float, dtype: torch.dtype) -> None:
    """Logits hundreds apart: p_y is 0 in any floating-point, the loss is not."""
    y = some_targets()
    leaves = [size * draw(R, D).to(dtype), draw(V, D, seed=2).to(dtype)]
    tolerance = 1e-12 if dtype == torch.float64 else 1e-5
    agree(
        lambda h, w: smoothed_cross_entropy(h, w, y, smoothing),
        lambda h, w: plain(h, w, y, smoothing),
        leaves,
        tolerance,
    )
    leaves[0] = size * draw(2 * R, D).to(dtype)
    agree(
        lambda h, w: rdrop_cross_entropy(h, w, y, smoothing, 2.0),
        lambda h, w: plain_rdrop(h, w, y, smoothing, 2.0),
        leaves,
        tolerance,
    )


def test_in_bfloat16_within_its_rounding() -> None:
    """Products with 8 bits of mantissa: each logit is off by 2⁻⁸ of its parts, so are loss and gradients."""
    y, leaves = some_targets(), [draw(R, D).float(), draw(V, D, seed=2).float()]
    with products_in(torch.bfloat16):
        agree(lambda h, w: smoothed_cross_entropy(h, w, y, 0.1), lambda h, w: plain(h, w, y, 0.1), leaves, 0.02)
        exact = smoothed_cross_entropy(*leaves, y, 0.1).item()
        leaves[0] = draw(2 * R, D).float()
        agree(
            lambda h, w: rdrop_cross_entropy(h, w, y, 0.1, 1.0),
            lambda h, w: plain_rdrop(h, w, y, 0.1, 1.0),
            leaves,
            0.03,
        )
    assert exact != smoothed_cross_entropy(draw(R, D).float(), leaves[1], y, 0.1).item()
