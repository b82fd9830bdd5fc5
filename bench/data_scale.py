"""How the store behaves as the data grows: time, disk and memory for a million and for ten million pairs.

    python bench/data_scale.py [--pairs 1000000 10000000] [--batches 2000 | --whole-epoch] [--json]

Each size runs in a process of its own, so that its peak memory is its own. Pairs are made up; the encoder is a
look-up in a bank of made-up rows, so that what is measured is the store and the batches, not a tokenizer.
Everything is written to a temporary folder (TMPDIR says where) and removed.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from clearhead.data.batching import Batches
from clearhead.data.order import Cursor
from clearhead.data.store import open_store
from clearhead.data.store_builder import Coding, build_store

BANK = 4096
VOCAB = 16_000
BATCH_TOKENS = 4096
MAX_TOKENS = 100


def make_bank(seed: int) -> dict[str, tuple[list[int], list[int]]]:
    """Made-up texts with their rows on both sides: skewed lengths around 20, the two sides alike."""
    generator = np.random.default_rng(seed)
    source = np.clip(generator.lognormal(2.8, 0.6, BANK), 1, MAX_TOKENS)
    target = np.clip(source * generator.lognormal(0.0, 0.15, BANK), 1, MAX_TOKENS)
    return {f"text {i}": (row(generator, source[i]), row(generator, target[i])) for i in range(BANK)}


def row(generator: np.random.Generator, length: float) -> list[int]:
    return generator.integers(5, VOCAB, int(length)).tolist()


def make_pairs(n: int, texts: list[str], seed: int) -> Iterator[tuple[str, str]]:
    generator = np.random.default_rng(seed)
    for start in range(0, n, 65_536):
        for i in generator.integers(0, len(texts), min(65_536, n - start)).tolist():
            yield texts[i], texts[i]


def measure(n: int, n_batches: int | None) -> dict[str, float]:
    """Build, open, plan and read; what each took."""
    bank = make_bank(seed=1)
    source = Coding(lambda texts: [bank[text][0] for text in texts], VOCAB)
    target = Coding(lambda texts: [bank[text][1] for text in texts], VOCAB)
    with tempfile.TemporaryDirectory(prefix="data-scale-") as temporary:
        folder = Path(temporary) / "store"
        start = time.perf_counter()
        store = build_store(
            make_pairs(n, list(bank), seed=2), source, target, folder, fingerprint="bench", max_tokens=MAX_TOKENS
        )
        built = time.perf_counter()
        store = open_store(folder, "bench")
        opened = time.perf_counter()
        batches = Batches(store, BATCH_TOKENS, seed=1)
        in_epoch = batches.plan.n_batches(0)
        planned = time.perf_counter()
        count = min(n_batches or in_epoch, in_epoch)
        tokens = 0
        for index in range(count):
            batch = batches.at(Cursor(0, index))
            tokens += batch.n_source_tokens + batch.n_target_tokens
        read = time.perf_counter()
        stored = store.n_source_tokens + store.n_target_tokens
        waste = batches.plan.waste(0)
        return {
            "pairs": len(store),
            "tokens": stored,
            "disk_mb": sum(file.stat().st_size for file in folder.iterdir()) / 1e6,
            "build_s": built - start,
            "build_pairs_per_s": n / (built - start),
            "build_tokens_per_s": stored / (built - start),
            "open_s": opened - built,
            "plan_s": planned - opened,
            "batches_in_epoch": in_epoch,
            "batches_read": count,
            "read_s": read - planned,
            "read_tokens_per_s": tokens / (read - planned),
            "waste_source": waste.source,
            "waste_target": waste.target,
            "peak_rss_mb": peak_rss_mb(),
        }


def peak_rss_mb() -> float:
    unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, Linux kilobytes
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def in_own_process(n: int, n_batches: int | None) -> dict[str, float]:
    command = [sys.executable, __file__, "--child", str(n), "--batches", str(n_batches or 0)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def table(results: list[dict[str, float]]) -> str:
    lines = []
    for name in results[0]:
        cells = [f"{result[name]:>16,.3f}" if result[name] < 100 else f"{result[name]:>16,.0f}" for result in results]
        lines.append(f"{name:<20}" + "".join(cells))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--batches", type=int, default=2000, help="batches to read (0: the whole epoch)")
    parser.add_argument("--whole-epoch", action="store_const", const=0, dest="batches")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        print(json.dumps(measure(options.child, options.batches or None)))
        return
    results = [in_own_process(n, options.batches or None) for n in options.pairs]
    print(json.dumps(results, indent=2) if options.json else table(results))


if __name__ == "__main__":
    main()
