"""A little training on tasks of pure rules, through the parts the real loop is made of: gradients, clip, update.

Every step sees fresh pairs; nothing is saved, nothing is validated on the way. Knows words between spaces. Refuses
to know files and sub-words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch

from clearhead.config import DecodeSettings, TrainSettings
from clearhead.data.batching import Batch, assemble, ragged
from clearhead.data.synthetic import Pair
from clearhead.decode.decode import decode
from clearhead.models.protocol import EncoderDecoder
from clearhead.text.vocabulary import SPECIAL
from clearhead.train.gradients import compute_gradients
from clearhead.train.optim import Optimiser
from clearhead.train.schedule import factor

TEST_SEED = 1 << 40
"""Added to the seed of what a model is tested on, so that nobody trains on it."""


class Words:
    """Words to ids: whatever is in the list, in its order."""

    def __init__(self, words: Iterable[str]) -> None:
        self.ids = {word: number for number, word in enumerate(dict.fromkeys(words), start=len(SPECIAL))}

    @property
    def size(self) -> int:
        return len(SPECIAL) + len(self.ids)

    def encode(self, texts: Iterable[str]) -> list[list[int]]:
        return [[self.ids[word] for word in text.split()] for text in texts]

    def batch(self, pairs: Sequence[Pair]) -> Batch:
        sources, targets = zip(*pairs, strict=True)
        return assemble(ragged(self.encode(sources)), ragged(self.encode(targets)), np.arange(len(pairs)))


def steps(n: int, lr: float = 3e-3) -> TrainSettings:
    """Training for n steps: a short rise, then a half cosine down to nothing."""
    return TrainSettings(
        max_steps=n, lr=lr, schedule="cosine", warmup_steps=n // 10, label_smoothing=0.0, precision="float32"
    )


def learn(
    model: EncoderDecoder, vocabulary: Words, fresh: Callable[[int], list[Pair]], settings: TrainSettings
) -> list[float]:
    """Train on `fresh(step)` for as many steps as the settings say. Returns each step's loss per target token."""
    optimiser = Optimiser(model, settings)
    model.train()
    losses = []
    for step in range(1, settings.max_steps + 1):
        gradients = compute_gradients(model, [vocabulary.batch(fresh(step))], settings, step)
        torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip_norm)
        optimiser.step(factor(step, settings))
        losses.append(gradients.loss)
    model.eval()
    return losses


def accuracy(model: EncoderDecoder, vocabulary: Words, pairs: Sequence[Pair]) -> float:
    """The share of pairs whose target greedy decoding writes exactly."""
    sources, targets = (vocabulary.encode(side) for side in zip(*pairs, strict=True))
    longest = max(map(len, targets)) + 1
    written = decode(model.eval(), sources, DecodeSettings(method="greedy", max_extra=longest, max_ratio=0.01))
    return sum(list(best.tokens) == target for (best,), target in zip(written, targets, strict=True)) / len(pairs)


def smooth(losses: Sequence[float], width: int = 10) -> list[tuple[float, float]]:
    """A curve of at most a hundred points: the mean of the last `width` losses."""
    every = max(1, len(losses) // 100)
    return [
        (float(at), sum(losses[max(0, at - width) : at]) / min(width, at)) for at in range(1, len(losses) + 1, every)
    ]
