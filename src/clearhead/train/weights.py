"""Which weights would be shipped now: the latest, their exponential average, or the mean of the last few.

ema ← decay · ema + (1 − decay) · weights          after every step; decay is (1+t)/(10+t) at first
mean of the last n snapshots                       Vaswani et al. 2017, §6.1
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from clearhead.config import TrainSettings

Weights = dict[str, Tensor]


def copy_weights(model: nn.Module) -> Weights:
    """Every learned tensor and every buffer that is saved, each shared one once."""
    return {name: tensor.detach().clone() for name, tensor in named_weights(model).items()}


def named_weights(model: nn.Module) -> Weights:
    seen: set[int] = set()
    weights: Weights = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            weights[name] = tensor
    return weights


def put_weights(model: nn.Module, weights: Weights) -> None:
    with torch.no_grad():
        for name, tensor in named_weights(model).items():
            tensor.copy_(weights[name])


class Averages:
    """The exponential average and the last snapshots of a run, as the settings ask for."""

    def __init__(self, model: nn.Module, settings: TrainSettings) -> None:
        self.device = next(model.parameters()).device
        self.decay = settings.ema
        self.every = settings.average_every
        self.ema: Weights | None = copy_weights(model) if settings.ema else None
        self.snapshots: deque[Weights] = deque(maxlen=settings.average or None)
        self.keeps_snapshots = settings.average > 0

    def after_step(self, model: nn.Module, step: int) -> None:
        if self.ema is not None:
            decay = min(self.decay, (1 + step) / (10 + step))
            for name, tensor in named_weights(model).items():
                self.ema[name].lerp_(tensor.detach().to(self.ema[name].dtype), 1 - decay)
        if self.keeps_snapshots and step % self.every == 0:
            self.snapshots.append(copy_weights(model))

    def shipped(self, model: nn.Module) -> Weights:
        """The weights that would be the result if the run ended now."""
        if self.snapshots:
            return {name: torch.stack([s[name] for s in self.snapshots]).mean(0) for name in self.snapshots[0]}
        return self.ema if self.ema is not None else named_weights(model)

    def tensors(self) -> Weights:
        """Everything to be saved, under names that `load` understands."""
        found = {f"ema/{name}": t for name, t in (self.ema or {}).items()}
        for place, snapshot in enumerate(self.snapshots):
            found |= {f"snapshot-{place}/{name}": t for name, t in snapshot.items()}
        return found

    def load(self, tensors: Weights) -> None:
        groups: dict[str, Weights] = {}
        for name, tensor in tensors.items():
            group, _, rest = name.partition("/")
            groups.setdefault(group, {})[rest] = tensor.to(self.device, copy=True)
        if "ema" in groups:
            self.ema = groups.pop("ema")
        self.snapshots.clear()
        self.snapshots.extend(groups[f"snapshot-{place}"] for place in range(len(groups)))


@contextmanager
def borrowed(model: nn.Module, weights: Weights) -> Iterator[None]:
    """The model has these weights while the block runs, and its own, bit for bit, afterwards."""
    own = copy_weights(model)
    training = model.training
    put_weights(model, weights)
    model.eval()
    try:
        yield
    finally:
        put_weights(model, own)
        model.train(training)
