"""clearhead as a contestant: its own loop, one step at a time; nothing is validated or saved."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from gate import Batches
from protocol import serve

from clearhead.config.load import build_experiment
from clearhead.data.batching import Batch
from clearhead.models.build import build
from clearhead.train.loop import Training
from clearhead.verbs.quiet import Quiet
from clearhead.verbs.resolve import with_precision


class Endless:
    """The file's batches, as the loop takes them."""

    def __init__(self, batches: Batches) -> None:
        self.batches = iter(batches)

    def take(self, cursor: Any, n: int) -> tuple[list[Batch], Any]:
        return [as_batch(*next(self.batches)) for _ in range(n)], cursor


def as_batch(source: np.ndarray, target_in: np.ndarray, target_out: np.ndarray) -> Batch:
    real = int((source != 0).sum()), int((target_out != 0).sum())
    return Batch(source, target_in, target_out, np.arange(len(source)), 0, *real)


class Contestant:
    def __init__(self, file: str, vocabulary: int, shape: dict, precision: str, threads: int, seed: int) -> None:
        torch.set_num_threads(threads)
        self.batches = Batches(file)
        train = {"precision": precision, "seed": seed, "lr": 1e-4, "max_steps": 1 << 40}
        experiment = with_precision(build_experiment({"model": shape, "train": train, "files": []}))
        model = build(experiment.model, vocabulary, vocabulary, seed).train()
        given: Any = Endless(self.batches), experiment, None, None, Quiet()
        self.training = Training(model, *given)

    def train(self, steps: int) -> dict:
        start = time.perf_counter()
        for _ in range(steps):
            self.training.advance()
        return {"seconds": time.perf_counter() - start, "tokens": self.batches.count(steps)}


if __name__ == "__main__":
    serve(Contestant)
