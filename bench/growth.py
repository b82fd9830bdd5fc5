"""How cost grows: with the length of a sentence, the size of a batch, the number of layers, the pairs of a corpus.

Decoding is measured on random weights of the tiny width whose outputs never end by themselves, so that lengths are
exact; CTranslate2, where it is there, on the same weights.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from bench.children import Child, Failed
from bench.rounds import play

LENGTHS = {False: (8, 16, 32, 64, 128, 256), True: (8, 32, 128)}
BATCHES = {False: (1, 4, 16, 64, 256), True: (1, 8, 64)}
LAYERS = {False: (1, 2, 4, 8), True: (1, 4)}
PAIRS = {False: (30_000, 300_000, 1_000_000), True: (30_000, 100_000)}
"""By `quick`."""
ROWS, WORDS = 8, 20
Say = Callable[[str], None]


def with_length(children: Mapping[str, Child], vocabulary: int, quick: bool) -> dict[str, Any]:
    """Milliseconds per output token, at ROWS sentences of so many tokens, as many written."""
    points = {n: made_up(ROWS, n, vocabulary) for n in LENGTHS[quick]}
    return {n: per_token(children, chunk, n, 1 if quick else 2) for n, chunk in points.items()}


def with_batch(children: Mapping[str, Child], vocabulary: int, quick: bool) -> dict[str, Any]:
    """Milliseconds per output token, at so many sentences of WORDS tokens."""
    points = {n: made_up(n, WORDS, vocabulary) for n in BATCHES[quick]}
    return {n: per_token(children, chunk, WORDS, 1 if quick else 2) for n, chunk in points.items()}


def per_token(children: Mapping[str, Child], chunk: list[list[int]], length: int, rounds: int) -> dict[str, Any]:
    for name, child in children.items():
        turn(children, [chunk[:1]], 2, name)
        child.ask("decode", chunks=[chunk], beam=1, max_length=2)
    series = play(list(children), rounds, partial(turn, children, [chunk], length))
    return {name: found.median for name, found in series.items()}


def turn(children: Mapping[str, Child], chunks: list[list[list[int]]], length: int, name: str) -> float:
    answer = children[name].ask("decode", chunks=chunks, beam=1, max_length=length)
    tokens = sum(map(len, answer["outputs"]))
    if not tokens:
        raise Failed("wrote nothing")
    return 1000 * sum(answer["seconds"]) / tokens


def made_up(rows: int, length: int, vocabulary: int) -> list[list[int]]:
    """Ordinary ids in a fixed pattern."""
    return [[5 + (7919 * (row * length + place)) % (vocabulary - 5) for place in range(length)] for row in range(rows)]


def with_pairs(quick: bool) -> dict[int, dict[str, float]]:
    """Storing and batching a corpus (bench/data_scale.py), in processes of its own."""
    command = [sys.executable, str(Path(__file__).parent / "data_scale.py"), "--json", "--batches", "200", "--pairs"]
    done = subprocess.run([*command, *map(str, PAIRS[quick])], check=True, capture_output=True, text=True)
    return {int(found["pairs"]): found for found in json.loads(done.stdout)}
