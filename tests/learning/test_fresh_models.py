"""Every learned number gets a gradient, whatever is chosen; and a fresh model knows nothing yet."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

from clearhead.config import ModelSettings
from clearhead.models.build import build
from clearhead.train.loss import smoothed_cross_entropy

CHOICES: dict[str, tuple[Any, ...]] = {
    "positions": (
        "sinusoidal",
        "sinusoidal-halves",
        "learned",
        "relative-shaw",
        "relative-t5",
        "rotary",
        "alibi",
        "none",
    ),
    "norm": ("layer", "rms", "batch"),
    "norm_order": ("pre", "post"),
    "activation": ("relu", "gelu", "relu2", "swiglu", "geglu"),
    "bias": (True, False),
    "scale_scores": (True, False),
    "embedding_scale": (True, False),
    "tie": ("all", "target", "none"),
    "n_kv_heads": (None, 1),
    "attention_window": (None, 2),
    "attention_dropout": (0.0, 0.1),
    "word_dropout": (0.0, 0.1),
}


def pairwise_sample() -> list[dict[str, Any]]:
    """Few combinations in which every two choices of different settings meet at least once."""
    draw, names = random.Random(5), list(CHOICES)
    missing = {
        ((a, x), (b, y)) for i, a in enumerate(names) for b in names[i + 1 :] for x in CHOICES[a] for y in CHOICES[b]
    }
    chosen: list[dict[str, Any]] = []
    while missing:
        tries = [{name: draw.choice(values) for name, values in CHOICES.items()} for _ in range(40)]
        one = max(tries, key=lambda c: sum(c[a] == x and c[b] == y for (a, x), (b, y) in missing))
        met = {pair for pair in missing if all(one[name] == value for name, value in pair)}
        if met:
            chosen.append(one)
            missing -= met
    return chosen


def words(given: dict[str, Any]) -> str:
    return " ".join(str(value) for value in given.values())


@pytest.mark.parametrize("given", pairwise_sample(), ids=words)
def test_every_parameter_gets_a_gradient(given: dict[str, Any], tiny_settings: Callable, ids: Callable) -> None:
    """Of a fresh model, not a shaken one. What cannot move the output is named here, and nothing else."""
    model = build(tiny_settings(decoder_layers=2, encoder_layers=2, **given), 31, 31, 1)
    source, target = ids(5, 11, lengths=[11, 2, 5, 7, 3]), ids(5, 13, seed=1)
    hidden = model(source, target).flatten(0, 1)
    smoothed_cross_entropy(hidden, model.output_weight, ids(5, 13, seed=2).flatten(), 0.1).backward()
    without = {name for name, p in model.named_parameters() if p.grad is None or not p.grad.abs().max() > 1e-9}
    assert {name for name in without if not name.endswith("attention.key.bias")} == set()
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_the_bias_of_keys_moves_nothing(tiny_model: Callable, ids: Callable) -> None:
    """It adds the same q · β to every score of a query: the softmax does not see it."""
    model, source, target = tiny_model(positions="sinusoidal").double(), ids(3, 7), ids(3, 5)
    before = model(source, target)
    with torch.no_grad():
        model.encoder.layers[0].self_attention.key.bias += 3.0
    torch.testing.assert_close(model(source, target), before, rtol=1e-9, atol=1e-9)


FRESH = ModelSettings(d_model=64, n_heads=4, d_ff=128, encoder_layers=2, decoder_layers=2)


def first_loss(ids: Callable, **given: Any) -> float:
    """Mean surprise in nats of a fresh model, over 8 seeds, of words it has not just read."""
    losses = []
    for seed in range(8):
        model = build(FRESH.model_copy(update=given), 997, 997, seed)
        source, target, answer = (ids(11, 13, 3 * seed + i, vocab=997) for i in range(3))
        with torch.inference_mode():
            hidden = model(source, target).flatten(0, 1)
            loss = smoothed_cross_entropy(hidden, model.output_weight, answer.flatten(), 0.0)
        losses.append(loss.item() / answer.numel())
    return sum(losses) / len(losses)


@pytest.mark.parametrize(
    "given",
    [
        {"tie": "all"},
        {"tie": "target"},
        {"tie": "none"},
        {"tie": "all", "embedding_scale": False},
        {"tie": "all", "norm_order": "post"},
        {"tie": "all", "positions": "rotary"},
    ],
    ids=str,
)
def test_a_fresh_model_is_as_surprised_as_it_should_be(given: dict[str, Any], ids: Callable) -> None:
    """log V, and ½ on top: normalised states times rows of variance 1/D give logits of variance 1."""
    assert first_loss(ids, **given) == pytest.approx(math.log(997) + 0.5, abs=0.15)


def test_a_fresh_tied_model_would_repeat_the_word_it_read(ids: Callable) -> None:
    """The embedding still stands in the residual stream, and the output layer is the embedding."""
    source, target = ids(11, 13, vocab=997), ids(11, 13, seed=1, vocab=997)
    surprise = {}
    for tie in ("all", "none"):
        model = build(FRESH.model_copy(update={"tie": tie}), 997, 997, 0)
        with torch.inference_mode():
            hidden = model(source, target).flatten(0, 1)
            surprise[tie] = smoothed_cross_entropy(hidden, model.output_weight, target.flatten(), 0.0) / target.numel()
    assert surprise["all"] < math.log(997) - 2
    assert surprise["none"] > math.log(997)
