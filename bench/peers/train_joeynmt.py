"""JoeyNMT as a contestant: its model, its loss, its training loop; the batches are those of the others."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from gate import Batches, Gate
from joeynmt.batch import Batch
from joeynmt.config import TestConfig, parse_train_args
from joeynmt.model import build_model
from joeynmt.training import TrainManager
from joeynmt.vocabulary import Vocabulary
from protocol import serve

SPECIAL = SimpleNamespace(
    **{"unk_id": 0, "pad_id": 1, "bos_id": 2, "eos_id": 3, "sep_id": None, "sep_token": None, "lang_tags": []},
    **{f"{name}_token": f"<{name}>" for name in ("unk", "pad", "bos", "eos")},
)
OURS_TO_THEIRS = [1, 2, 3, 0]
"""Padding, start, end, unknown: ids 0 to 3 here, in another order there."""


class Data:
    """What the training loop asks of a dataset and its iterator."""

    def __init__(self, batches: Batches, vocabulary: int) -> None:
        self.batches, self.seed = batches, 0
        self.gate: Gate | None = None
        self.batch_sampler = SimpleNamespace(set_seed=lambda seed: None)
        self.ids = np.array([*OURS_TO_THEIRS, *range(4, vocabulary)])

    def make_iter(self, **_: Any) -> Data:
        return self

    def __iter__(self) -> Iterator[Batch]:
        assert self.gate is not None
        for source, target_in, target_out in self.batches:
            self.gate.wait()
            yield self.batch(source, target_in, target_out)

    def batch(self, source: np.ndarray, target_in: np.ndarray, target_out: np.ndarray) -> Batch:
        target = np.concatenate((target_in[:, :1], target_out), 1)
        return Batch(
            src=torch.from_numpy(self.ids[source]),
            src_length=torch.from_numpy((source != 0).sum(1)),
            src_prompt_mask=None,
            trg=torch.from_numpy(self.ids[target]),
            trg_prompt_mask=None,
            indices=torch.arange(len(source)),
            device=torch.device("cpu"),
            pad_index=SPECIAL.pad_id,
            eos_index=SPECIAL.eos_id,
        )


def model_config(shape: dict) -> dict:
    def stack(layers: int) -> dict:
        return {
            "type": "transformer",
            "num_layers": layers,
            "num_heads": shape["n_heads"],
            "embeddings": {"embedding_dim": shape["d_model"], "scale": True, "dropout": shape["dropout"]},
            "hidden_size": shape["d_model"],
            "ff_size": shape["d_ff"],
            "dropout": shape["dropout"],
            "layer_norm": "post",
            "activation": "relu",
        }

    return {
        "tied_embeddings": True,
        "tied_softmax": True,
        "initializer": "xavier_uniform",
        "encoder": stack(shape["encoder_layers"]),
        "decoder": stack(shape["decoder_layers"]),
    }


class Contestant:
    def __init__(self, file: str, vocabulary: int, shape: dict, precision: str, threads: int, seed: int) -> None:
        torch.set_num_threads(threads)
        torch.manual_seed(seed)
        logging.disable(logging.CRITICAL)
        self.batches = Batches(file)
        words = Vocabulary([f"t{place}" for place in range(4, vocabulary)], SPECIAL)
        model = build_model(model_config(shape), words, words)
        model.loss_function = ("crossentropy", 0.1)
        settings = {
            "normalization": "tokens",
            "label_smoothing": 0.1,
            "learning_rate": 1e-4,
            "scheduling": "noam",
            "clip_grad_norm": 1.0,
            "epochs": 1 << 30,
            "validation_freq": 1 << 30,
            "logging_freq": 1 << 30,
            "batch_size": 1,
            "batch_type": "token",
        }
        manager = TrainManager(
            rank=0,
            model=model,
            model_dir=Path(tempfile.mkdtemp(prefix="clearhead-bench-")),
            device=torch.device("cpu"),
            autocast={"device_type": "cpu", "enabled": False},
            seed=seed,
            train_args=parse_train_args(settings),
            dev_args=TestConfig(*[None] * len(TestConfig._fields)),
        )
        manager._save_checkpoint = lambda *_: None  # it would hide what went wrong behind a failed save
        data = Data(self.batches, vocabulary)
        data.gate = self.gate = Gate(lambda: manager.train_and_validate(data, SimpleNamespace(seed=0)))

    def train(self, steps: int) -> dict:
        return {"seconds": self.gate.steps(steps), "tokens": self.batches.count(steps)}


if __name__ == "__main__":
    serve(Contestant)
