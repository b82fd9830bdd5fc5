"""Three small runs whose losses are known, step by step. Not a test: test_golden_losses.py compares with what it makes.

    python tests/train/golden_losses.py          writes golden_losses.json again, for this class of machines

Losses that change without a line in CHANGELOG.md are a mistake somewhere.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from clearhead.data import synthetic
from clearhead.train.gradients import Gradients
from clearhead.train.machine import this_machine
from clearhead.train.state import RunState
from clearhead.verbs.quiet import Quiet
from clearhead.verbs.train import train

STORED = Path(__file__).with_name("golden_losses.json")
STEPS = 60
SHAPE = {"d_model": 16, "d_ff": 32, "n_heads": 2, "encoder_layers": 1, "decoder_layers": 1, "max_len": 64}
PLAIN = {"max_steps": STEPS, "batch_tokens": 200, "warmup_steps": 10, "lr": 5e-3, "threads": 1, "precision": "float32"}
RARELY: dict[str, Any] = {
    "validation": {"every_steps": STEPS, "metric": "loss", "decode_pairs": 0},
    "checkpoint": {"every_steps": STEPS},
    "data": {"valid_pairs": 10},
}

RECIPES: dict[str, dict[str, Any]] = {
    "plain": {
        "model": {**SHAPE, "dropout": 0.1},
        "text": {"vocab_size": 300},
        "train": PLAIN,
        **RARELY,
    },
    "everything": {
        "model": {**SHAPE, "positions": "rotary", "norm": "rms", "activation": "swiglu", "bias": False}
        | {"n_kv_heads": 1, "dropout": 0.1, "attention_dropout": 0.1, "word_dropout": 0.1},
        "text": {"vocab_size": 300, "bpe_dropout": 0.1},
        "train": {**PLAIN, "optimiser": "muon", "schedule": "wsd", "rdrop": 1.0, "ema": 0.9, "accumulate": 2}
        | {"batch_tokens": 100},
        **RARELY,
    },
    "rounded": {
        "model": {**SHAPE, "positions": "relative-t5", "norm_order": "post", "tie": "target", "dropout": 0.1},
        "text": {"vocab_size": 300, "algorithm": "unigram", "shared": False},
        "train": {**PLAIN, "schedule": "cosine", "weight_decay": 0.1, "precision": "bf16"},
        **RARELY,
    },
}


class Losses(Quiet):
    """Keeps the loss of every step."""

    def __init__(self) -> None:
        super().__init__()
        self.values: list[float] = []

    def stepped(self, state: RunState, gradients: Gradients, lr_factor: float) -> None:
        self.values.append(gradients.loss)


def losses(recipe: dict[str, Any], folder: Path) -> list[float]:
    pairs = folder / "pairs.tsv"
    made = synthetic.agreement(60, 1) + synthetic.reverse(60, 1, length=6, symbols=9)
    pairs.write_text("".join(f"{source}\t{target}\n" for source, target in made), encoding="utf-8")
    listener = Losses()
    train({"files": [str(pairs)], **recipe}, folder / "run", listener)
    return listener.values


def main() -> None:
    found: dict[str, Any] = {"machine": None, "losses": {}}
    for name, recipe in RECIPES.items():
        with tempfile.TemporaryDirectory() as folder:
            found["losses"][name] = losses(recipe, Path(folder))
    found["machine"] = this_machine().model_dump()
    STORED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
