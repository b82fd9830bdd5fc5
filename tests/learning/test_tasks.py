"""Small things are learned in seconds: one batch by heart, copying, reversing, sorting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch

from clearhead.config import DecodeSettings, ModelSettings, TrainSettings
from clearhead.data.batching import Batch, assemble, ragged
from clearhead.decode.decode import decode
from clearhead.models.build import build
from clearhead.models.protocol import EncoderDecoder
from clearhead.train.gradients import compute_gradients
from clearhead.train.optim import Optimiser
from clearhead.train.schedule import factor

VOCAB = 15
SMALL = {"d_model": 48, "n_heads": 4, "d_ff": 96, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0}
Row = list[int]


def learner(
    settings: TrainSettings, seed: int = 1, **given: Any
) -> tuple[EncoderDecoder, Callable[[int, Batch], float]]:
    """A model, and what one step does to it."""
    model = build(ModelSettings(**{**SMALL, **given}), VOCAB, VOCAB, seed)
    optimiser = Optimiser(model, settings)

    def step(number: int, batch: Batch) -> float:
        loss = compute_gradients(model, [batch], settings, number).loss
        torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip_norm)
        optimiser.step(factor(number, settings))
        return loss

    return model, step


def pairs(n: int, rule: Callable[[Row], Row], seed: int) -> list[tuple[Row, Row]]:
    """Rows of 3 to 7 words, and what the rule makes of them."""
    generator = np.random.default_rng(seed)
    rows = [generator.integers(5, VOCAB, generator.integers(3, 8)).tolist() for _ in range(n)]
    return [(row, rule(row)) for row in rows]


def batch(given: Sequence[tuple[Row, Row]]) -> Batch:
    source, target = zip(*given, strict=True)
    return assemble(ragged(source), ragged(target), np.arange(len(given)))


def test_one_batch_is_learned_by_heart() -> None:
    """Answers that follow from nothing: only memory helps."""
    settings = TrainSettings(lr=5e-3, schedule="constant", warmup_steps=10, label_smoothing=0.0, precision="float32")
    model, step = learner(settings)
    questions, answers = pairs(8, list, 1), pairs(8, list, 2)
    one = batch([(question, answer) for (question, _), (answer, _) in zip(questions, answers, strict=True)])
    losses = [step(number, one) for number in range(1, 81)]
    assert losses[0] > 2.0
    assert losses[-1] < 0.02
    found = decode(model, [question for question, _ in questions], DecodeSettings(method="greedy"), max_len=64)
    assert [list(h[0].tokens) for h in found] == [answer for answer, _ in answers]


@pytest.mark.parametrize(
    ("name", "positions", "optimiser"),
    [("copy", "rotary", "muon"), ("reverse", "sinusoidal", "muon"), ("sort", "rotary", "adamw")],
)
def test_rules_are_learned(name: str, positions: str, optimiser: str) -> None:
    """At least 95 of 100 new rows are answered without a mistake."""
    rule: Callable[[Row], Row] = {"copy": list, "reverse": lambda row: row[::-1], "sort": sorted}[name]
    settings = TrainSettings(
        lr=5e-3, schedule="wsd", warmup_steps=20, max_steps=STEPS[name], optimiser=optimiser, precision="float32"
    )
    model, step = learner(settings, positions=positions)
    for number in range(1, settings.max_steps + 1):
        step(number, batch(pairs(48, rule, number)))
    new = pairs(101, rule, 0)
    found = decode(model, [source for source, _ in new], DecodeSettings(method="greedy"), max_len=64)
    right = sum(list(h[0].tokens) == target for h, (_, target) in zip(found, new, strict=True))
    assert right / len(new) >= 0.95


STEPS = {"copy": 250, "reverse": 200, "sort": 250}
