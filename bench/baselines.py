"""What distance costs: the Transformer and the baselines it replaced, of about equal size, on two tasks of pure rules.

    python bench/baselines.py [--kinds seq2seq recurrent convolutional] [--tasks recall parity] [--steps 750] [--json]

recall: "k3 v7 k1 v2 … ? k1" → "v2", trained on one to eight entries; judged on eight, by how many entries back the
asked one stands.
parity: "1 0 1 1" → "odd", trained on lengths 1 to 16; judged by length, and on lengths never trained on.

Every step sees fresh pairs; the test pairs are others. All kinds get the same pairs, steps, schedule and width, and
are judged by greedy decoding: the share of wholly right answers. A run takes under a minute on two cores.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import torch

from clearhead.config import DecodeSettings, ModelSettings, TrainSettings
from clearhead.data import synthetic
from clearhead.data.batching import Batch, assemble, ragged
from clearhead.data.synthetic import Pair
from clearhead.decode.decode import decode
from clearhead.models.build import KINDS, build
from clearhead.models.protocol import EncoderDecoder
from clearhead.models.seq2seq import parameter_count
from clearhead.train.gradients import compute_gradients
from clearhead.train.optim import Optimiser
from clearhead.train.schedule import factor

BATCH = 128
TEST_PAIRS = 300
TEST_SEED = 1 << 40
FIRST_ID = 5
SYMBOLS, ENTRIES, TRAINED_LENGTH = 8, 8, 16
TESTED = {"recall": tuple(range(1, ENTRIES + 1)), "parity": (2, 4, 8, 12, 16, 20, 24)}
WORDS = ["?", "0", "1", "odd", "even", *(f"{side}{i}" for side in "kv" for i in range(SYMBOLS))]
IDS = {word: FIRST_ID + i for i, word in enumerate(WORDS)}


@dataclass(frozen=True)
class Result:
    task: str
    kind: str
    parameters: int
    steps: int
    seconds: float
    loss: float
    """Mean per target token over the last twenty steps."""
    accuracy: dict[int, float]
    """By distance (recall) or length (parity)."""


def fresh_pairs(task: str, seed: int) -> list[Pair]:
    """One step's pairs: every size up to the largest alike. From large ones alone nothing learns in a minute."""
    if task == "recall":
        each = BATCH // ENTRIES
        return [p for n in range(1, ENTRIES + 1) for p in synthetic.recall(each, seed * 100 + n, n, symbols=SYMBOLS)]
    each = BATCH // TRAINED_LENGTH
    return [pair for n in range(1, TRAINED_LENGTH + 1) for pair in synthetic.parity(each, seed * 100 + n, n)]


def test_pairs(task: str, at: int) -> list[Pair]:
    if task == "recall":
        return synthetic.recall(TEST_PAIRS, TEST_SEED + at, ENTRIES, at, SYMBOLS)
    return synthetic.parity(TEST_PAIRS, TEST_SEED + at, at)


def ids(texts: Sequence[str]) -> list[list[int]]:
    return [[IDS[word] for word in text.split()] for text in texts]


def as_batch(pairs: list[Pair]) -> Batch:
    sources, targets = zip(*pairs, strict=True)
    return assemble(ragged(ids(sources)), ragged(ids(targets)), np.arange(len(pairs)))


def train(model: EncoderDecoder, task: str, settings: TrainSettings) -> float:
    """The training loop's own parts, without validation and checkpoints. Returns the last losses' mean."""
    optimiser = Optimiser(model, settings)
    model.train()
    losses = []
    for step in range(1, settings.max_steps + 1):
        gradients = compute_gradients(model, [as_batch(fresh_pairs(task, step))], settings, step)
        torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip_norm)
        optimiser.step(factor(step, settings))
        losses.append(gradients.loss)
    return sum(losses[-20:]) / len(losses[-20:])


def accuracy(model: EncoderDecoder, pairs: list[Pair]) -> float:
    sources, targets = (ids(side) for side in zip(*pairs, strict=True))
    written = decode(model, sources, DecodeSettings(method="greedy", max_extra=1, max_ratio=0.1))
    return sum(list(best.tokens) == target for (best,), target in zip(written, targets, strict=True)) / len(pairs)


def measure(task: str, kind: str, steps: int, lr: float) -> Result:
    settings = ModelSettings(kind=kind, d_model=64, d_ff=128, encoder_layers=2, decoder_layers=2, dropout=0.0)
    model = build(settings, FIRST_ID + len(WORDS), FIRST_ID + len(WORDS), seed=1)
    schedule = TrainSettings(
        max_steps=steps, lr=lr, schedule="cosine", warmup_steps=100, label_smoothing=0.0, precision="float32"
    )
    start = time.perf_counter()
    loss = train(model, task, schedule)
    seconds = time.perf_counter() - start
    model.eval()
    found = {at: accuracy(model, test_pairs(task, at)) for at in TESTED[task]}
    return Result(task, kind, parameter_count(model), steps, seconds, loss, found)


def table(results: list[Result]) -> str:
    lines = []
    for task in dict.fromkeys(result.task for result in results):
        head = "".join(f"{at:>6}" for at in TESTED[task])
        lines.append(f"{task + ', by ' + ('distance' if task == 'recall' else 'length'):<20}  params    s   loss{head}")
        for r in (result for result in results if result.task == task):
            cells = "".join(f"{value:>6.0%}" for value in r.accuracy.values())
            lines.append(f"  {r.kind:<18}{r.parameters:>8,}{r.seconds:>5.0f}{r.loss:>7.3f}{cells}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=["seq2seq", "recurrent", "convolutional"])
    parser.add_argument("--tasks", nargs="+", choices=list(TESTED), default=list(TESTED))
    parser.add_argument("--steps", type=int, default=750)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results = [measure(task, kind, options.steps, options.lr) for task in options.tasks for kind in options.kinds]
    print(json.dumps([asdict(r) for r in results], indent=2) if options.json else table(results))


if __name__ == "__main__":
    main()
