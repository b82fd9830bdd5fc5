"""The first word from cold: a fresh process each time, until its first translation of one sentence is there.

As a library (imports, loading, one sentence of ids) for everybody; for clearhead also as the command a person types.
Beside it `import torch` alone: the seconds and the memory that everything built on it begins with.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench.children import Child, Failed
from bench.contest_decode import FIXED
from bench.rounds import play

Say = Callable[[str], None]


@dataclass(frozen=True)
class Program:
    """How to start a contestant of decoding."""

    python: Path
    script: str
    arguments: Mapping[str, Any]


def contest(
    programs: Mapping[str, Program], command: list[str], source: list[int], threads: int, rounds: int, say: Say
) -> dict[str, Any]:
    memory: dict[str, float] = {}
    names = [*programs, "clearhead, the command", "import torch"]
    series = play(names, rounds, partial(turn, programs, command, source, threads, memory))
    results = {}
    for name, found in series.items():
        results[name] = {"seconds": found.median, "rounds": found.values, "peak_mb": memory.get(name)}
        if found.failed is not None:
            results[name] = {"failed": found.failed}
        say(f"start {name:<28} {f'{found.median:.2f} s' if found.median else found.failed}")
    return results


def turn(
    programs: Mapping[str, Program],
    command: list[str],
    source: list[int],
    threads: int,
    memory: dict[str, float],
    name: str,
) -> float:
    start = time.perf_counter()
    if name in programs:
        program = programs[name]
        child = Child(program.python, program.script, threads, **program.arguments)
        try:
            child.ask("decode", chunks=[[source]], beam=1, max_length=FIXED)
            memory[name] = child.peak_mb
        finally:
            child.close()
    elif name == "import torch":
        child = Child(Path(sys.executable), "only_torch.py", threads)
        memory[name] = child.peak_mb
        child.close()
    else:
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise Failed(done.stderr.strip()[-300:])
    return time.perf_counter() - start
