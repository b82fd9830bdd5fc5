"""What saving costs: the share of training time that goes into checkpoints, at the default interval.

    python bench/save_cost.py                     tiny and small, as many threads as there are cores
    python bench/save_cost.py --sizes base --folder /data/scratch

For each size a real run on made-up pairs, with the settings its amount of data would get: `save` is timed (writing,
syncing, hashing, reading back), and the steps between. The promise is at most 2 %; the disk under --folder counts.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from clearhead.data.synthetic import reverse
from clearhead.train.checkpoint import Checkpoints
from clearhead.train.gradients import Gradients
from clearhead.train.state import RunState
from clearhead.verbs.quiet import Quiet
from clearhead.verbs.resolve import resolve
from clearhead.verbs.train import train

PAIRS = {"tiny": 5_000, "small": 20_000, "base": 200_000}
WARM_UP, STEPS, SAVE_EVERY = 2, 26, 4
PROMISED = 0.02


class Clock(Quiet):
    """The moments at which steps were done; saves are taken out."""

    def __init__(self) -> None:
        super().__init__()
        self.moments: list[float] = []

    def stepped(self, state: RunState, gradients: Gradients, lr_factor: float) -> None:
        self.moments.append(time.perf_counter())

    def saved(self, state: RunState) -> None:
        self.moments.append(float("nan"))  # the time to the next step holds no save, the one before does


def timed(call: Callable[..., Any], seconds: list[float]) -> Callable[..., Any]:
    def timing(*given: Any, **named: Any) -> Any:
        start = time.perf_counter()
        result = call(*given, **named)
        seconds.append(time.perf_counter() - start)
        return result

    return timing


def measure(size: str, folder: Path) -> dict[str, Any]:
    pairs = folder / "pairs.tsv"
    made = reverse(PAIRS[size], 1, length=20, symbols=26)
    pairs.write_text("".join(f"{source}\t{target}\n" for source, target in made), encoding="utf-8")
    every = resolve({"size": size}, PAIRS[size]).checkpoint.every_steps
    saves: list[float] = []
    clock, save = Clock(), Checkpoints.save
    Checkpoints.save = timed(save, saves)  # type: ignore[method-assign]
    try:
        recipe = {
            "files": [str(pairs)],
            "size": size,
            "text": {"vocab_size": 4000, "level": "word"},
            "train": {"max_steps": STEPS},
            "validation": {"every_steps": STEPS, "metric": "loss", "decode_pairs": 0},
            "checkpoint": {"every_steps": SAVE_EVERY},
        }
        finished = train(recipe, folder / "run", clock)
    finally:
        Checkpoints.save = save  # type: ignore[method-assign]
    between = [b - a for a, b in zip(clock.moments, clock.moments[1:], strict=False)]
    step = statistics.median([seconds for seconds in between[WARM_UP:] if seconds == seconds])
    cost = statistics.median(saves)
    newest = max((folder / "run" / "checkpoints").iterdir(), key=lambda path: int(path.name.removeprefix("step-")))
    return {
        "size": size,
        "parameters": finished.parameters,
        "checkpoint_mb": round(sum(file.stat().st_size for file in newest.iterdir()) / 2**20, 1),
        "step_ms": round(1000 * step, 1),
        "save_ms": round(1000 * cost, 1),
        "default_interval_steps": every,
        "share": round(cost / (every * step + cost), 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", choices=PAIRS, default=["tiny", "small"])
    parser.add_argument("--folder", type=Path, help="where to save; the disk matters")
    given = parser.parse_args()
    for size in given.sizes:
        with tempfile.TemporaryDirectory(dir=given.folder) as folder:
            found = measure(size, Path(folder))
        kept = "kept" if found["share"] <= PROMISED else "NOT kept"
        print(json.dumps(found), f"at most {PROMISED:.0%}: {kept}", flush=True)


if __name__ == "__main__":
    main()
