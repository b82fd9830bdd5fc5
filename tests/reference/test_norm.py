"""Layer, RMS and batch norm against their formulas: values, gradients, and batch norm's memory."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest
import torch
from torch.func import functional_call

from clearhead.nn.norm import BatchNorm, LayerNorm, RMSNorm, build_norm

pytestmark = pytest.mark.usefixtures("float64")


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return 3 * torch.randn(shape, generator=torch.Generator().manual_seed(seed)) + 2


def batch_norm(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, eps: float = 1e-5) -> np.ndarray:
    result = np.zeros(x.shape)
    for d in range(x.shape[-1]):
        tokens = [x[b, at, d] for b, at in np.ndindex(x.shape[:2])]
        mean = sum(tokens) / len(tokens)
        variance = sum((t - mean) ** 2 for t in tokens) / len(tokens)
        for b, at in np.ndindex(x.shape[:2]):
            result[b, at, d] = (x[b, at, d] - mean) / np.sqrt(variance + eps) * weight[d] + bias[d]
    return result


@pytest.mark.parametrize("kind", ["layer", "layer without bias", "rms", "batch"])
def test_values_and_gradients(kind: str, oracle: ModuleType, same: Callable, slopes: Callable, shake: Callable) -> None:
    made = build_norm(kind.split()[0], 11, bias="without" not in kind)
    shake(made)
    loops = {"layer": oracle.layer_norm, "rms": oracle.rms_norm, "batch": batch_norm}[kind.split()[0]]

    def expected(x: np.ndarray, **w: np.ndarray) -> np.ndarray:
        return loops(x, w["weight"]) if kind == "rms" else loops(x, w["weight"], w.get("bias"))

    def ours(x: torch.Tensor, **parameters: torch.Tensor) -> torch.Tensor:
        return functional_call(made, parameters, (x,))

    inputs = {"x": draw(3, 5, 11), **dict(made.named_parameters())}
    numbers = expected(**{name: t.detach().numpy() for name, t in inputs.items()})
    same(ours(**inputs), numbers, 1e-12)
    slopes(ours, expected, inputs)
    same(made.float()(inputs["x"].float()), numbers, 1e-5)


def test_layer_norm_starts_with_mean_0_and_variance_1_per_token() -> None:
    y = LayerNorm(101)(draw(3, 5, 101))
    torch.testing.assert_close(y.mean(-1), torch.zeros(3, 5), rtol=0, atol=1e-12)
    torch.testing.assert_close(y.var(-1, unbiased=False), torch.ones(3, 5), rtol=1e-5, atol=0)


def test_neighbours_move_batch_norm_only() -> None:
    x = draw(3, 5, 11)
    more = torch.cat((x, 7 * draw(2, 5, 11, seed=1)))
    for norm, moves in ((LayerNorm(11), False), (RMSNorm(11), False), (BatchNorm(11), True)):
        assert torch.equal(norm(x), norm(more)[:3]) != moves


def test_batch_norm_remembers_averages_for_later() -> None:
    """0.9 of what it knew, 0.1 of this batch; in evaluation it uses what it knows, and the batch is nothing to it."""
    norm, x = BatchNorm(11), draw(3, 5, 11)
    norm(x)
    tokens = x.reshape(15, 11)
    torch.testing.assert_close(norm.running_mean, 0.1 * tokens.mean(0))
    torch.testing.assert_close(norm.running_variance, 0.9 + 0.1 * tokens.var(0, unbiased=False))
    norm.eval()
    expected = (x - norm.running_mean) / (norm.running_variance + 1e-5).sqrt()
    torch.testing.assert_close(norm(x), expected)
    assert torch.equal(norm(x)[:1], norm(x[:1]))
