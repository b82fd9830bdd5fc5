"""Which weights would be shipped: exact averages, saved and brought back to the bit."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from clearhead.config import TrainSettings
from clearhead.train.weights import Averages, Weights, borrowed, copy_weights, named_weights, put_weights


def moved(model: nn.Module, value: float) -> None:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(value)


@pytest.fixture
def model() -> nn.Module:
    found = nn.Linear(3, 2)
    moved(found, 1.0)
    return found


def same(a: Weights, b: Weights) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_a_shared_tensor_stands_once() -> None:
    tied = nn.ModuleDict({"a": nn.Linear(2, 2, bias=False), "b": nn.Linear(2, 2, bias=False)})
    tied["b"].weight = tied["a"].weight
    assert list(named_weights(tied)) == ["a.weight"]


def test_the_exponential_average(model: nn.Module) -> None:
    averages, expected = Averages(model, TrainSettings(ema=0.9)), 1.0
    for step, value in ((1, 2.0), (2, -1.0), (200, 5.0)):
        moved(model, value)
        averages.after_step(model, step)
        decay = min(0.9, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * value
    assert averages.shipped(model)["weight"].flatten().tolist() == pytest.approx([expected] * 6)


def test_the_mean_of_the_last_snapshots(model: nn.Module) -> None:
    averages = Averages(model, TrainSettings(average=2, average_every=10))
    assert averages.shipped(model)["weight"][0, 0] == 1.0
    for step in range(1, 41):
        moved(model, float(step))
        averages.after_step(model, step)
    assert (averages.shipped(model)["weight"] == 35.0).all()


def test_nothing_asked_for_ships_the_latest(model: nn.Module) -> None:
    averages = Averages(model, TrainSettings())
    averages.after_step(model, 1)
    assert averages.tensors() == {} and averages.shipped(model)["weight"] is model.weight


def test_saved_and_brought_back(model: nn.Module) -> None:
    settings = TrainSettings(ema=0.5, average=3, average_every=1)
    averages = Averages(model, settings)
    for step in (1, 2):
        moved(model, step / 3)
        averages.after_step(model, step)
    again = Averages(model, settings)
    again.load(averages.tensors())
    assert same(again.tensors(), averages.tensors()) and len(again.snapshots) == 2
    moved(model, 9.0)
    averages.after_step(model, 3)
    again.after_step(model, 3)
    assert same(again.tensors(), averages.tensors())


def test_going_back_forgets_later_snapshots(model: nn.Module) -> None:
    """A checkpoint from before the first snapshot holds none; what is in memory must not stay."""
    averages = Averages(model, TrainSettings(average=3, average_every=1))
    averages.after_step(model, 1)
    averages.load({})
    assert not averages.snapshots


def test_borrowed_weights_are_given_back(model: nn.Module) -> None:
    before = copy_weights(model)
    model.train()
    other = {name: tensor + 1 for name, tensor in before.items()}
    with pytest.raises(RuntimeError), borrowed(model, other):
        assert not model.training and same(copy_weights(model), other)
        raise RuntimeError
    assert model.training and same(copy_weights(model), before)


def test_putting_weights_in_asks_for_all(model: nn.Module) -> None:
    with pytest.raises(KeyError):
        put_weights(model, {"weight": torch.zeros(2, 3)})
