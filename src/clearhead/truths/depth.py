"""Residual connections: add the input back (row R1).

    with      x ← x + part(norm(x))        without      x ← part(norm(x))

Twelve layers of the encoder both ways: what arrives from below, what gradient arrives from above before the first
step, and what becomes of training. Each attention layer averages; without the way around it all words are the same
vector after a few layers (Dong et al. 2021), and the gradient is the same for all of them: whatever its size, it cannot
say which word should change. The decoder is the same in both, and can read nothing that the encoder did not carry up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from torch import Tensor, nn

from clearhead.config import ModelSettings
from clearhead.models.build import build
from clearhead.models.encoder import EncoderLayer
from clearhead.models.protocol import EncoderDecoder
from clearhead.train.gradients import compute_gradients
from clearhead.truths.figure import Bars, Curves
from clearhead.truths.learn import TEST_SEED, Words, accuracy, learn, smooth, steps
from clearhead.truths.positions import LENGTH, LETTERS, between
from clearhead.truths.truth import Given, Result, Truth

LAYERS = 12
STEPS, ROWS, TESTED = 400, 48, 200
VOCABULARY = Words([*LETTERS, "?"])


class Bare(nn.Module):
    """A part without its residual."""

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, x: Tensor, part: Callable[[Tensor], Tensor]) -> Tensor:
        return part(self.norm(x))


def model(residual: bool, given: Given) -> EncoderDecoder:
    settings = ModelSettings(d_model=32, d_ff=64, encoder_layers=LAYERS, decoder_layers=1, dropout=0.0)
    made = build(settings, VOCABULARY.size, VOCABULARY.size, given.seed)
    for layer in made.modules():
        if isinstance(layer, EncoderLayer) and not residual:
            for name in ("attention_residual", "feedforward_residual"):
                setattr(layer, name, Bare(getattr(layer, name).norm))
    return made


def fresh(given: Given) -> Callable[[int], list[tuple[str, str]]]:
    return lambda step: between(ROWS, given.seed * 10_000 + step)


class Passing(NamedTuple):
    """What passes through each layer before the first step, the lowest layer first."""

    alike: list[float]
    """Mean cosine between the words of a text."""
    apart: list[float]
    """The part of the gradient that differs from word to word."""
    size: list[float]
    """The gradient's norm."""


def passing(made: EncoderDecoder, given: Given) -> Passing:
    heard: list[Tensor] = []

    def hear(module: nn.Module, inputs: object, output: Tensor) -> None:
        output.retain_grad()
        heard.append(output)

    layers = [layer for layer in made.modules() if isinstance(layer, EncoderLayer)]
    hooks = [layer.register_forward_hook(hear) for layer in layers]
    compute_gradients(made.train(), [VOCABULARY.batch(fresh(given)(0))], steps(1), 1)
    for hook in hooks:
        hook.remove()
    slopes = [one.grad for one in heard if one.grad is not None]
    return Passing([alike(one) for one in heard], [apart(one) for one in slopes], [one.norm().item() for one in slopes])


def alike(words: Tensor) -> float:
    unit = nn.functional.normalize(words.detach(), dim=-1)
    others = words.shape[1] - 1
    return ((unit @ unit.transpose(1, 2)).sum(-1) - 1).mean().item() / others


def apart(gradient: Tensor) -> float:
    return ((gradient - gradient.mean(1, keepdim=True)).norm() / gradient.norm()).item()


def experiment(given: Given) -> Result:
    models = {"with": model(not given.control, given), "without": model(False, given)}
    found = {name: passing(made, given) for name, made in models.items()}
    losses = {name: learn(made, VOCABULARY, fresh(given), steps(STEPS)) for name, made in models.items()}
    tests = between(TESTED, given.seed + TEST_SEED)
    right = {name: accuracy(made, VOCABULARY, tests) for name, made in models.items()}
    least = {name: min(one.apart) for name, one in found.items()}
    return Result(
        {f"cosine between words after {LAYERS} layers, {name}": one.alike[-1] for name, one in found.items()}
        | {f"least part of the gradient that differs from word to word, {name}": part for name, part in least.items()}
        | {f"right answers, {name}": value for name, value in right.items()}
        | {"guessing": 1 / LENGTH},
        {
            "with residuals every layer's gradient tells the words apart": least["with"] > 0.1,
            "without, the words are one vector and so are their gradients": (
                found["without"].alike[-1] > 0.999 and least["without"] < 0.01
            ),
            "with residuals twelve layers learn the task": right["with"] > 0.9,
            "without, they do not": right["without"] < 0.5,
        },
        [
            Curves("words alike, before training", "layer", "cosine", series(found, "alike")),
            Curves("the gradient, before training", "layer", "share that differs by word", series(found, "apart")),
            Curves("its size", "layer", "norm of the gradient", series(found, "size"), log_y=True),
            Curves("learning, 12 layers", "step", "loss", {name: smooth(curve) for name, curve in losses.items()}),
            Bars("right answers", right),
        ],
        ["Norms keep the gradient's size in range both ways. What vanishes without residuals is what it could say."],
    )


def series(found: Mapping[str, Passing], what: str) -> dict[str, list[tuple[float, float]]]:
    return {name: [(float(at), y) for at, y in enumerate(getattr(one, what), 1)] for name, one in found.items()}


TRUTH = Truth(
    name="depth",
    row="R1",
    claim="Residual connections: add the input back; better gradient flow, lighter layers, deeper networks.",
    refuted_by="twelve layers that learn as well without residuals, or do not learn with them",
    control="the residuals",
    experiment=experiment,
)
