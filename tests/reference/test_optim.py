"""Optimisers against their formulas in NumPy, step by step; and which parameters go where."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from clearhead.config import TrainSettings
from clearhead.nn.embedding import TokenTable
from clearhead.nn.linear import Linear
from clearhead.nn.norm import LayerNorm
from clearhead.train.optim import Optimiser, gradient_norm, split_parameters
from clearhead.train.schedule import factor


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = TokenTable(11, 5)
        self.linear = Linear(5, 3)
        self.wide = Linear(3, 7, bias=False)
        self.norm = LayerNorm(5)


def with_gradients(model: nn.Module, step: int) -> dict[str, np.ndarray]:
    generator = torch.Generator().manual_seed(step)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator)
    return {name: p.grad.double().numpy() for name, p in model.named_parameters()}


class AdamW:
    """θ ← θ − η (m̂ / (√v̂ + ε) + λ θ)."""

    def __init__(self, start: np.ndarray, betas: tuple[float, float], decay: float) -> None:
        self.theta, self.betas, self.decay = start.copy(), betas, decay
        self.m, self.v, self.t = np.zeros_like(start), np.zeros_like(start), 0

    def step(self, gradient: np.ndarray, lr: float) -> np.ndarray:
        one, two = self.betas
        self.t += 1
        self.m = one * self.m + (1 - one) * gradient
        self.v = two * self.v + (1 - two) * gradient**2
        direction = (self.m / (1 - one**self.t)) / (np.sqrt(self.v / (1 - two**self.t)) + 1e-9)
        self.theta -= lr * (direction + self.decay * self.theta)
        return self.theta


class Muon:
    """θ ← θ − η (√max(1, rows/columns) · orthogonalise(Nesterov momentum) + λ θ)."""

    def __init__(self, start: np.ndarray, decay: float) -> None:
        self.theta, self.decay, self.momentum = start.copy(), decay, np.zeros_like(start)

    def step(self, gradient: np.ndarray, lr: float) -> np.ndarray:
        self.momentum = 0.95 * self.momentum + 0.05 * gradient
        update = newton_schulz(0.05 * gradient + 0.95 * self.momentum)
        rows, columns = self.theta.shape
        self.theta -= lr * (max(1.0, rows / columns) ** 0.5 * update + self.decay * self.theta)
        return self.theta


def newton_schulz(g: np.ndarray) -> np.ndarray:
    """Five turns of s ← 3.4445 s − 4.775 s³ + 2.0315 s⁵ on every singular value bring them near 1."""
    u, s, v = np.linalg.svd(g / np.linalg.norm(g), full_matrices=False)
    for _ in range(5):
        s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
    return u * s @ v


def numbers(model: nn.Module) -> dict[str, np.ndarray]:
    return {name: p.detach().double().numpy().copy() for name, p in model.named_parameters()}


DECAYED = {"table.weight", "linear.weight", "wide.weight"}


def test_adamw() -> None:
    model, settings = Small(), TrainSettings(lr=0.03, weight_decay=0.2, betas=(0.8, 0.95))
    optimiser = Optimiser(model, settings)
    oracle = {n: AdamW(p, settings.betas, 0.2 if n in DECAYED else 0.0) for n, p in numbers(model).items()}
    for step, f in ((1, 0.25), (2, 1.0), (3, 0.5)):
        gradients = with_gradients(model, step)
        optimiser.step(f)
        for name, theta in numbers(model).items():
            expected = oracle[name].step(gradients[name], 0.03 * f)
            np.testing.assert_allclose(theta, expected, rtol=1e-5, atol=1e-6, err_msg=name)


def test_muon_takes_the_matrices_and_adamw_the_rest() -> None:
    """Newton–Schulz runs in bfloat16, and its steep polynomial makes 2⁻⁸ into some per cent of an update."""
    model = Small()
    settings = TrainSettings(lr=0.03, muon_lr=0.2, weight_decay=0.1, betas=(0.8, 0.95), optimiser="muon")
    optimiser = Optimiser(model, settings)
    start = numbers(model)
    matrices = {"linear.weight", "wide.weight"}
    oracle = {
        n: Muon(p, 0.1) if n in matrices else AdamW(p, settings.betas, 0.1 if n in DECAYED else 0.0)
        for n, p in start.items()
    }
    for step, f in ((1, 0.25), (2, 1.0), (3, 0.5)):
        before, gradients = numbers(model), with_gradients(model, step)
        optimiser.step(f)
        for name, theta in numbers(model).items():
            lr = (0.2 if name in matrices else 0.03) * f
            expected = oracle[name].step(gradients[name], lr) - before[name]
            off = np.linalg.norm(theta - before[name] - expected) / np.linalg.norm(expected)
            assert off < (0.1 if name in matrices else 1e-4), name
            oracle[name].theta = theta.copy()


def test_muons_updates_are_nearly_orthogonal() -> None:
    model = Small()
    optimiser = Optimiser(model, TrainSettings(optimiser="muon", muon_lr=1.0))
    before = numbers(model)["wide.weight"]
    with_gradients(model, 1)
    optimiser.step(1.0)
    singular = np.linalg.svd(numbers(model)["wide.weight"] - before)[1] / (7 / 3) ** 0.5
    assert 0.6 < singular.min() <= singular.max() < 1.3


@pytest.mark.parametrize("positions", ["learned", "relative-t5", "relative-shaw"])
def test_tables_are_no_matrices(positions: str, tiny_model: Callable) -> None:
    """Rows that are looked up are not orthogonalised; each learned tensor is in one group, once."""
    model = tiny_model(positions=positions, tie="none")
    matrices, tables, vectors = split_parameters(model)
    names = {id(p): name for name, p in model.named_parameters()}
    found = sorted(names[id(p)] for p in [*matrices, *tables, *vectors])
    assert found == sorted(names.values())
    assert {names[id(p)] for p in tables} == {n for n in names.values() if "table" in n or n == "output.weight"}
    assert all(p.ndim == 1 for p in vectors)


def test_tied_tables_are_one(tiny_model: Callable) -> None:
    tables = split_parameters(tiny_model(tie="all"))[1]
    assert len(tables) == 1


def test_what_is_saved_continues_exactly() -> None:
    for optimiser in ("adamw", "muon"):
        settings = TrainSettings(optimiser=optimiser)
        one, two = Small(), Small()
        two.load_state_dict(one.state_dict())
        first, second = Optimiser(one, settings), Optimiser(two, settings)
        with_gradients(one, 1)
        first.step(1.0)
        two.load_state_dict(one.state_dict())
        second.load(first.tensors())
        for model, steps in ((one, first), (two, second)):
            with_gradients(model, 2)
            steps.step(1.0)
        assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))


def test_gradient_norm() -> None:
    model = Small()
    squares = {name: (g**2).sum() for name, g in with_gradients(model, 1).items()}
    assert gradient_norm(model.parameters()).item() == pytest.approx(sum(squares.values()) ** 0.5, rel=1e-6)
    model.norm.bias.grad = None
    rest = sum(squares.values()) - squares["norm.bias"]
    assert gradient_norm(model.parameters()).item() == pytest.approx(rest**0.5, rel=1e-6)


SCHEDULES = {
    "inverse-sqrt": lambda step: min(step / 100, (100 / step) ** 0.5),
    "constant": lambda step: min(step / 100, 1.0),
    "cosine": lambda step: min(step / 100, (1 + np.cos(np.pi * max(0, step - 100) / 900)) / 2),
    "wsd": lambda step: min(step / 100, 1.0, (1000 - step) / 250),
}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_schedules(schedule: str) -> None:
    settings = TrainSettings(schedule=schedule, warmup_steps=100, max_steps=1000, decay_fraction=0.25)
    for step in range(1, 1001):
        assert factor(step, settings) == pytest.approx(SCHEDULES[schedule](step), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_schedules_without_warm_up_or_beyond_the_end(schedule: str) -> None:
    settings = TrainSettings(schedule=schedule, warmup_steps=0, max_steps=10)
    assert factor(1, settings) <= 1.0
    assert all(0.0 <= factor(step, settings) <= 1.0 for step in range(1, 20))
    late = TrainSettings(schedule=schedule, warmup_steps=100, max_steps=10)
    assert factor(10, late) == 0.1
