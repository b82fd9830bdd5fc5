"""The parts of the bench, one function each: who takes part, with what, how often."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from bench import contest_decode, contest_start, contest_train, growth
from bench.children import Child, Failed
from bench.contest_start import Program
from bench.environments import Environment, prepare

OURS = Path(sys.executable)
CT2_TYPES = ("float32", "int8", "bfloat16", "int8_bfloat16", "int16")
PRECISIONS = ("float32", "bf16", "int8")
MOST_TEST = {False: 16, True: 2}
"""Chunks of the test set that are translated for BLEU; by `quick`."""
TRAIN_STEPS = {"tiny": 6, "base": 2}
"""A turn."""
SEED = 1


@dataclass
class Bench:
    """What was asked for, and what all parts share."""

    folder: Path
    threads: int
    quick: bool
    steps: int
    peers: tuple[str, ...]
    files: dict[str, list[str]] | None
    say: Callable[[str], None]

    @cached_property
    def environments(self) -> dict[str, Environment]:
        found = {}
        for name in self.peers:
            self.say(f"environment of {name} …")
            found[name] = prepare(name, self.folder)
            if found[name].python is None:
                self.say(f"{name} cannot be installed: {found[name].note}")
        return found

    @cached_property
    def workshop(self) -> Child:
        given = {"folder": str(self.folder), "files": self.files, "steps": self.steps}
        return Child(OURS, "workshop.py", self.threads, 3600, **given)

    @cached_property
    def tiny(self) -> str:
        self.say(f"training the tiny model ({self.steps} steps; a second run finds it) …")
        folder: str = self.workshop.ask("tiny")["folder"]
        return folder

    @cached_property
    def base(self) -> str:
        folder: str = self.workshop.ask("random", name="base", size="base")["folder"]
        return folder

    def python(self, peer: str) -> Path | None:
        """The peer's interpreter; None when it does not take part or cannot be installed."""
        return self.environments[peer].python if peer in self.peers else None

    @property
    def rounds(self) -> int:
        return 2 if self.quick else 3


@contextmanager
def running(programs: dict[str, Program], bench: Bench) -> Iterator[tuple[dict[str, Child], dict[str, dict[str, str]]]]:
    """The programs that could be started, and why the others could not."""
    children: dict[str, Child] = {}
    failed: dict[str, dict[str, str]] = {}
    try:
        for name, program in programs.items():
            try:
                children[name] = Child(program.python, program.script, bench.threads, **program.arguments)
            except Failed as error:
                failed[name] = {"failed": str(error)}
                bench.say(f"{name}: {error}")
        yield children, failed
    finally:
        for child in children.values():
            child.close()


def machine(bench: Bench) -> dict[str, Any]:
    found = bench.workshop.ask("machine")
    bench.say(", ".join(f"{name} {value:,.0f}" for name, value in found.items() if value))
    return found


def train(bench: Bench, size: str) -> dict[str, Any]:
    batches = bench.workshop.ask("batches", size=size)
    given = {name: batches[name] for name in ("file", "vocabulary", "shape")} | {"seed": SEED}
    programs = {}
    for name, script, python, precisions in (
        ("clearhead", "train_clearhead.py", OURS, ("bf16", "float32")),
        ("plain loop", "train_plain.py", OURS, ("bf16", "float32")),
        ("Hugging Face", "train_huggingface.py", bench.python("huggingface"), ("bf16", "float32")),
        ("JoeyNMT", "train_joeynmt.py", bench.python("joeynmt"), ("float32",)),
    ):
        if python is not None:
            for precision in precisions:
                programs[f"{name} {precision}"] = Program(python, script, given | {"precision": precision})
    with running(programs, bench) as (children, failed):
        steps = TRAIN_STEPS[size] // 2 if bench.quick else TRAIN_STEPS[size]
        found = contest_train.contest(size, children, bench.workshop, batches, steps, bench.rounds, bench.say)
    found["contestants"] |= failed
    return found


def decode(bench: Bench, size: str) -> dict[str, Any]:
    programs = decoders(bench, size, getattr(bench, size))
    with running(programs, bench) as (children, failed):
        contestants = [
            contest_decode.Contestant(name, child, not name.startswith("clearhead")) for name, child in children.items()
        ]
        found = contest_decode.contest(decode_work(bench, size), contestants, bench.workshop, bench.say)
    return found | failed


def decoders(bench: Bench, name: str, own: str, few: bool = False) -> dict[str, Program]:
    """Everybody who can decode this model. `few`: in float32 and int8 alone."""
    programs = {}
    for precision in PRECISIONS if not few else ("float32", "int8"):
        given = {"folder": own, "precision": precision}
        programs[f"clearhead {precision}"] = Program(OURS, "decode_clearhead.py", given)
    if not bench.quick and not few:
        for precision in ("float32", "int8"):
            given = {"folder": own, "precision": precision, "compiled": False}
            programs[f"clearhead {precision}, torch alone"] = Program(OURS, "decode_clearhead.py", given)
    python = bench.python("ctranslate2")
    if python is not None:
        packages = str(bench.environments["ctranslate2"].packages)
        folder = bench.workshop.ask("export", name=name, to="ctranslate2", packages=packages)["folder"]
        for kind in offered(python, few):
            given = {"folder": folder, "precision": kind}
            programs[f"CTranslate2 {kind}"] = Program(python, "decode_ctranslate2.py", given)
        if not bench.quick and not few:
            given = {"folder": folder, "precision": "int8", "workers": 2}
            programs["CTranslate2 int8, 2 workers"] = Program(python, "decode_ctranslate2.py", given)
    python = bench.python("huggingface")
    if python is not None:
        folder = bench.workshop.ask("export", name=name, to="hf")["folder"]
        for kind in ("float32",) if bench.quick or few else ("float32", "bf16"):
            given = {"folder": folder, "precision": kind}
            programs[f"Hugging Face {kind}"] = Program(python, "decode_huggingface.py", given)
    return programs


def decode_work(bench: Bench, size: str) -> contest_decode.Work:
    chunks, singles = (2, 8) if bench.quick else (4, 16)
    if size == "base":
        timed = bench.workshop.ask("chunks", size=contest_decode.BATCH, count=1, fixed=True)
        singles = singles // 2
    else:
        timed = bench.workshop.ask("chunks", size=contest_decode.BATCH, count=chunks)
    test = bench.workshop.ask("chunks", size=contest_decode.BATCH, count=MOST_TEST[bench.quick])
    alone = bench.workshop.ask("chunks", size=1, count=singles)["chunks"]
    return contest_decode.Work(
        size=size,
        chunks=timed["chunks"],
        singles=alone,
        test=test["chunks"],
        places=[place for chunk in test["places"] for place in chunk],
        max_length=contest_decode.FIXED if size == "base" else test["max_length"],
        rounds=bench.rounds,
    )


def offered(python: Path, few: bool) -> list[str]:
    """The number types CTranslate2 computes in on this machine, as far as they differ."""
    asked = "import ctranslate2 as c; print(*c.get_supported_compute_types('cpu'))"
    said = subprocess.run([str(python), "-c", asked], check=True, capture_output=True, text=True).stdout.split()
    return [kind for kind in (CT2_TYPES[:2] if few else CT2_TYPES) if kind in said]


def start(bench: Bench) -> dict[str, Any]:
    programs = decoders(bench, "tiny", bench.tiny, few=True)
    chunk = bench.workshop.ask("chunks", size=1, count=1)
    text = bench.workshop.ask("text", place=chunk["places"][0][0])["text"]
    command = [sys.executable, "-m", "clearhead.cli.main", "translate", bench.tiny, text]
    source = chunk["chunks"][0][0]
    return contest_start.contest(programs, command, source, bench.threads, bench.rounds, bench.say)


def grow(bench: Bench) -> dict[str, Any]:
    found: dict[str, Any] = {"layers": {}}
    for layers in growth.LAYERS[bench.quick]:
        model = bench.workshop.ask("random", name="deep", size="tiny", layers=layers)
        programs = {
            name: program
            for name, program in decoders(bench, "deep", model["folder"], few=True).items()
            if name in ("clearhead float32", "CTranslate2 float32")
        }
        with running(programs, bench) as (children, _):
            chunk = growth.made_up(growth.ROWS, growth.WORDS, model["vocabulary"])
            found["layers"][layers] = growth.per_token(children, chunk, growth.WORDS, 1 if bench.quick else 2)
            if layers == 4:
                found["length"] = growth.with_length(children, model["vocabulary"], bench.quick)
                found["batch"] = growth.with_batch(children, model["vocabulary"], bench.quick)
        bench.say(f"growth: {layers} layers")
    found["pairs"] = growth.with_pairs(bench.quick)
    bench.say("growth: pairs")
    return found


def text(bench: Bench) -> dict[str, Any]:
    found = bench.workshop.ask("tokenise")
    bench.say(", ".join(f"{name} {rate:,.0f} tokens/s" for name, rate in found["tokens_per_s"].items()))
    return found
