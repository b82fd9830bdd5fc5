"""Linear maps, feed-forward parts and embeddings against loops."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch
from torch.func import functional_call

from clearhead.nn.embedding import Embedding, TokenTable
from clearhead.nn.feedforward import FeedForward
from clearhead.nn.linear import Linear
from clearhead.nn.positions import build_absolute

pytestmark = pytest.mark.usefixtures("float64")


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def test_linear_of_the_notes(oracle: ModuleType) -> None:
    """Apple (2 0 2), Orange (0 0 3), Watch (1 3 0) times (4 3 / 2 1 / 0 1)."""
    words = torch.tensor([[2.0, 0, 2], [0, 0, 3], [1, 3, 0]])
    made = Linear(3, 2, bias=False)
    with torch.no_grad():
        made.weight.copy_(torch.tensor([[4.0, 3], [2, 1], [0, 1]]).T)
    assert made(words).tolist() == [[8, 8], [0, 3], [10, 6]]
    assert oracle.linear(words.numpy(), made.weight.detach().numpy()).tolist() == made(words).tolist()


def test_linear_starts_within_glorots_bounds() -> None:
    weight = Linear(101, 53, gain=0.5).weight
    bound = 0.5 * (6 / 154) ** 0.5
    assert weight.abs().max() <= bound
    assert weight.abs().max() > 0.99 * bound
    assert weight.mean().abs() < 0.02 * bound


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu", "relu2", "swiglu", "geglu"])
def test_feedforward(
    activation: str,
    bias: bool,
    oracle: ModuleType,
    same: Callable,
    slopes: Callable,
    weights: Callable,
    shake: Callable,
) -> None:
    made = FeedForward(5, 11, activation, bias=bias)
    shake(made)
    inputs = {"x": draw(2, 3, 5), **dict(made.named_parameters())}

    def ours(x: torch.Tensor, **parameters: torch.Tensor) -> torch.Tensor:
        return functional_call(made, parameters, (x,))

    def loops(x: np.ndarray, **parameters: np.ndarray) -> np.ndarray:
        return oracle.feedforward(x, parameters.get, activation)

    expected = oracle.feedforward(inputs["x"].numpy(), weights(made), activation)
    same(made(inputs["x"]), expected, 1e-12)
    slopes(ours, loops, inputs)
    same(made.float()(inputs["x"].float()), expected, 1e-5)


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("positions", ["sinusoidal", "sinusoidal-halves", "learned", "none"])
def test_embedding(
    positions: str, scaled: bool, ids: Callable, oracle: ModuleType, same: Callable, slopes: Callable
) -> None:
    made = Embedding(TokenTable(31, 6), build_absolute(positions, 13, 6), scale=scaled)
    s = SimpleNamespace(d_model=6, embedding_scale=scaled, positions=positions)
    tokens = ids(3, 7)

    def ours(**parameters: torch.Tensor) -> torch.Tensor:
        return functional_call(made, parameters, (tokens,))

    def loops(**parameters: np.ndarray) -> np.ndarray:
        return oracle.embedding(tokens.numpy(), parameters.get, s)

    parameters = dict(made.named_parameters())
    same(ours(**parameters), loops(**{n: p.detach().numpy() for n, p in parameters.items()}), 1e-12)
    slopes(ours, loops, parameters)


def test_token_tables_start_so_that_scaled_embeddings_have_variance_1() -> None:
    made = Embedding(TokenTable(1009, 46), None)
    assert made(torch.arange(1009)[None]).std().item() == pytest.approx(1.0, abs=0.02)
