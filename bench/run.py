"""clearhead beside its peers: same machine, same run, in turns, same data, architecture, vocabulary, batch, weights.

    python bench/run.py [--quick] [--data FOLDER] [--only train decode …] [--sizes tiny base] [--peers ctranslate2 …]

Under twenty minutes once the peers' environments are there, three with --quick. Writes one page of Markdown and one
JSON. What is measured, how, and what each figure means: docs/bench.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench import parts
from bench.children import Failed
from bench.data import chosen_files
from bench.environments import CACHE, RECIPES
from bench.goals import goals
from bench.report import report

PARTS = ("limits", "train", "decode", "start", "growth", "text")
SIZES = ("tiny", "base")
STEPS = {False: 600, True: 120}
"""Of the tiny model's training, by `quick`."""


def main() -> None:
    options = arguments()
    bench = parts.Bench(
        folder=options.envs,
        threads=options.threads,
        quick=options.quick,
        steps=options.steps or STEPS[options.quick],
        peers=tuple(options.peers),
        files=files_of(options),
        say=speaker(),
    )
    results = measure(bench, options.only, options.sizes)
    results["about"] = about(bench, options)
    results["missing"] = {name: e.note for name, e in bench.environments.items() if e.python is None}
    found = goals(results)
    results["goals"] = [goal.as_table() for goal in found]
    page = report(results, found)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "bench.json").write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    (options.out / "bench.md").write_text(page, encoding="utf-8")
    print(page)


def measure(bench: parts.Bench, wanted: list[str], sizes: list[str]) -> dict[str, Any]:
    """Every part that was asked for. One that fails is reported; the others go on."""
    results: dict[str, Any] = {"failed": {}}

    def run(name: str, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except Failed as error:
            bench.say(f"{name} failed: {error}")
            results["failed"][name] = str(error)
            return None

    alone = {"limits": parts.machine, "start": parts.start, "growth": parts.grow, "text": parts.text}
    by_size = {"train": parts.train, "decode": parts.decode}
    for name in (name for name in PARTS if name in wanted):
        if name in alone:
            results[name] = run(name, lambda name=name: alone[name](bench))
        else:
            found = {size: run(f"{name} {size}", lambda n=name, s=size: by_size[n](bench, s)) for size in sizes}
            results[name] = {size: value for size, value in found.items() if value is not None}
    return results


def speaker() -> Callable[[str], None]:
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - began:6.0f} s] {text}", file=sys.stderr, flush=True)

    return say


def files_of(options: argparse.Namespace) -> dict[str, list[str]] | None:
    if options.data is None:
        return None
    train, test = chosen_files(options.data, options.source)
    return {"train": [str(path) for path in train], "test": [str(path) for path in test]}


def about(bench: parts.Bench, options: argparse.Namespace) -> dict[str, Any]:
    return {
        "processor": f"{platform.machine()}, {processor()}, {bench.threads} threads",
        "versions": f"clearhead {version('clearhead')}, torch {version('torch')}, Python {platform.python_version()}",
        **{name: e.note for name, e in bench.environments.items() if e.python is not None},
        "data": options.data.name if options.data else "the phrasebook in the package",
        "run": f"{'quick' if bench.quick else 'full'}, {bench.rounds} rounds, tiny trained for {bench.steps} steps",
    }


def processor() -> str:
    """Its name, where Linux tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="about three minutes instead of twenty")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--peers", nargs="*", choices=sorted(RECIPES), default=sorted(RECIPES))
    parser.add_argument("--data", type=Path, help="folder with train.XX, train.YY, test*.XX, test*.YY")
    parser.add_argument("--source", help="suffix of the source files; en when there is one")
    parser.add_argument("--envs", type=Path, default=CACHE, help="where environments and weights are kept")
    parser.add_argument("--out", type=Path, default=Path("bench-results"), help="where bench.md and bench.json go")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--steps", type=int, help="training steps of the tiny model that is translated with")
    return parser.parse_args()


if __name__ == "__main__":
    main()
