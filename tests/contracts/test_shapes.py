"""The shape annotations of the heart are enforced in this test run: a wrong shape is an error, everywhere."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable

import pytest
import torch
from jaxtyping import TypeCheckError

import clearhead
from clearhead.models.encoder import Encoder
from clearhead.nn import masks
from clearhead.nn.attention import Attention, attend_explicit, attend_fast
from clearhead.nn.embedding import TokenTable
from clearhead.nn.linear import linear
from clearhead.nn.norm import LayerNorm
from clearhead.nn.positions import Rotary, ScorePositions
from clearhead.nn.residual import Residual
from clearhead.nn.rounded import taken_apart
from clearhead.train.loss import rdrop_cross_entropy, smoothed_cross_entropy

ROOMS = ("clearhead.nn", "clearhead.models", "clearhead.train.loss")
MODULES = [info.name for info in pkgutil.walk_packages(clearhead.__path__, "clearhead.") if info.name.startswith(ROOMS)]


def zeros(*shape: int) -> torch.Tensor:
    return torch.zeros(shape)


def whole(*shape: int) -> torch.Tensor:
    return torch.zeros(shape, dtype=torch.long)


def attention() -> Attention:
    return Attention(23, 2, 5, 7, 1, ScorePositions())


WRONG: dict[str, Callable[[], object]] = {
    "keys wider than queries": lambda: attend_fast(
        zeros(2, 3, 5, 7), zeros(2, 3, 11, 13), zeros(2, 3, 11, 17), None, None, 1.0
    ),
    "fewer values than keys": lambda: attend_explicit(
        zeros(2, 3, 5, 7), zeros(2, 3, 11, 7), zeros(2, 3, 13, 7), None, None, 1.0
    ),
    "a mask of numbers": lambda: attend_explicit(
        zeros(2, 3, 5, 7), zeros(2, 3, 11, 7), zeros(2, 3, 11, 7), zeros(5, 11), None, 1.0
    ),
    "attention without a batch": lambda: attention()(zeros(3, 23)),
    "channels that are not split in heads": lambda: attention()._repeat(zeros(2, 3, 5)),
    "weights of another width": lambda: linear(zeros(2, 3), zeros(5, 7)),
    "a bias of another width": lambda: linear(zeros(2, 3), zeros(5, 3), zeros(3)),
    "ids that are no integers": lambda: TokenTable(11, 3)(zeros(2, 5)),
    "one row of ids alone": lambda: masks.padding(whole(5), 0),
    "a norm without channels": lambda: LayerNorm(1)(torch.tensor(1.0)),
    "turning without heads": lambda: Rotary(2).rotate(zeros(2, 3, 2)),
    "a residual stream without a batch": lambda: Residual(LayerNorm(3), 0.0, pre=True)(zeros(2, 3), lambda x: x),
    "fewer targets than rows": lambda: smoothed_cross_entropy(zeros(2, 3), zeros(7, 3), whole(5), 0.1),
    "an output layer of another width": lambda: smoothed_cross_entropy(zeros(2, 3), zeros(7, 5), whole(2), 0.1),
    "a flat hidden state": lambda: rdrop_cross_entropy(zeros(3), zeros(7, 3), whole(1), 0.1, 1.0),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_shape_is_an_error(name: str) -> None:
    with pytest.raises(TypeCheckError):
        WRONG[name]()


@pytest.mark.parametrize("name", MODULES)
def test_every_module_of_the_heart_is_checked(name: str, checked: tuple[str, ...]) -> None:
    assert set(ROOMS) == set(checked)
    loader = importlib.import_module(name).__loader__
    assert type(loader).__module__ == "jaxtyping._import_hook", f"{name} was imported without its shapes checked"


def test_split_heads_are_as_many_as_asked_for() -> None:
    """A shape may also depend on an argument: `{heads}`."""
    assert taken_apart(zeros(3, 5, 14), 2).shape == (3, 2, 5, 7)


def test_an_encoder_takes_sentences_only(tiny_settings: Callable[..., object]) -> None:
    with pytest.raises(TypeCheckError):
        Encoder(tiny_settings())(zeros(5, 22), None)
