"""Makes the stored folder of the current format. Run once per format; what it made is never made again.

    python tests/formats/make.py

    format-N/run/           a finished run of 20 steps: the model, and its last checkpoint
    format-N/losses.json    the losses of steps 21 to 30, and the class of machines they were taken on

Built from data/synthetic.py, so nothing but the package is needed to go on with it.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from clearhead.data import synthetic
from clearhead.files.manifest import FORMAT
from clearhead.train.gradients import Gradients
from clearhead.train.machine import this_machine
from clearhead.train.state import RunState
from clearhead.verbs.quiet import Quiet
from clearhead.verbs.train import train

HERE = Path(__file__).parent
FIRST, MORE = 20, 10
RECIPE: dict[str, Any] = {
    "text": {"vocab_size": 270, "byte_fallback": False, "bpe_dropout": 0.1},
    "model": {"d_model": 16, "d_ff": 32, "n_heads": 2, "encoder_layers": 1, "decoder_layers": 1, "max_len": 64}
    | {"dropout": 0.1},
    "train": {"batch_tokens": 200, "warmup_steps": 5, "lr": 5e-3, "threads": 1, "precision": "float32"}
    | {"ema": 0.9, "optimiser": "muon", "schedule": "inverse-sqrt"},
    "validation": {"every_steps": 10, "metric": "loss", "decode_pairs": 2, "patience": 20},
    "checkpoint": {"every_steps": 10, "keep": 1},
    "data": {"valid_pairs": 5},
}


class Losses(Quiet):
    def __init__(self) -> None:
        super().__init__()
        self.values: list[float] = []

    def stepped(self, state: RunState, gradients: Gradients, lr_factor: float) -> None:
        self.values.append(gradients.loss)


def go_on(run: Path, steps: int) -> list[float]:
    """Train until so many steps are done; the losses of the new ones."""
    pairs = run.parent / "pairs.tsv"
    made = synthetic.reverse(80, 1, length=5, symbols=8)
    pairs.write_text("".join(f"{source}\t{target}\n" for source, target in made), encoding="utf-8")
    listener = Losses()
    table = {**RECIPE, "files": [str(pairs)], "train": {**RECIPE["train"], "max_steps": steps}}
    train(table, run, listener)
    return listener.values


def main() -> None:
    stored = HERE / f"format-{FORMAT}"
    if stored.exists():
        raise SystemExit(f"{stored} is there already: a stored format does not change")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        run = Path("run")  # relative, so that this machine's folders are not stored
        go_on(run, FIRST)
        for name in ("data", "data-words.json", "lock", "log.jsonl"):
            path = run / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(run, stored / "run")
        found = {"losses": go_on(run, FIRST + MORE), "machine": this_machine().model_dump()}
    (stored / "losses.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
