"""What reference tests share: the oracle (oracle.py, beside this file) and two ways to hold a brick against it."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

Array = np.ndarray
Weights = Callable[[str], Array]


def load_oracle() -> ModuleType:
    spec = importlib.util.spec_from_file_location("oracle", Path(__file__).with_name("oracle.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def weights_of(module: torch.nn.Module) -> Weights:
    """The module's numbers by name, as float64; None where there is none."""
    return {name: t.detach().double().numpy() for name, t in module.state_dict().items()}.get


def assert_same(ours: torch.Tensor, oracle: Array, tolerance: float) -> None:
    """Equal within `tolerance` of the oracle's largest number."""
    found = ours.detach().double().numpy()
    assert found.shape == oracle.shape, f"{found.shape} is not {oracle.shape}"
    worst = np.abs(found - oracle).max() / max(np.abs(oracle).max(), 1e-30)
    assert worst <= tolerance, f"differs by {worst:.2e} of the largest number, more than {tolerance:.0e}"


def assert_slopes(
    f: Callable[..., torch.Tensor], oracle: Callable[..., Array], inputs: dict[str, torch.Tensor]
) -> None:
    """Our gradient by each input, along a random direction, is the oracle's slope along it."""
    generator = torch.Generator().manual_seed(11)
    inputs = {name: value.detach().double().requires_grad_() for name, value in inputs.items()}
    out = f(**inputs)
    weigh = torch.randn(out.shape, generator=generator, dtype=torch.float64)
    gradients = torch.autograd.grad(out, list(inputs.values()), weigh)
    step = 1e-5
    for (name, value), gradient in zip(inputs.items(), gradients, strict=True):
        direction = torch.randn(value.shape, generator=generator, dtype=torch.float64)
        ends = [
            oracle(**{n: (v + sign * step * direction if n == name else v).detach().numpy() for n, v in inputs.items()})
            for sign in (1, -1)
        ]
        slope = float(((ends[0] - ends[1]) * weigh.numpy()).sum() / (2 * step))
        ours = float((gradient * direction).sum())
        size = float(gradient.norm() * direction.norm())
        assert abs(ours - slope) <= 1e-7 * max(size, 1.0), (
            f"{name}: gradient gives {ours}, the oracle's slope is {slope}"
        )


@pytest.fixture(scope="session")
def oracle() -> ModuleType:
    """Every brick once more, in loops."""
    return load_oracle()


@pytest.fixture(scope="session")
def weights() -> Callable[[torch.nn.Module], Weights]:
    return weights_of


@pytest.fixture(scope="session")
def same() -> Callable[[torch.Tensor, Array, float], None]:
    return assert_same


@pytest.fixture(scope="session")
def slopes() -> Callable[..., None]:
    return assert_slopes
