"""The verb `plan`: what a run will take, measured on the spot in seconds, before hours are spent."""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from clearhead.config.load import apply_overrides
from clearhead.models.seq2seq import parameter_count
from clearhead.train.checkpoint import copies_saved
from clearhead.train.gradients import compute_gradients
from clearhead.train.loop import Stop
from clearhead.verbs.quiet import Quiet
from clearhead.verbs.train import Prepared, prepare

WARM_UP, MEASURED_SECONDS = 2, 6.0


@dataclass(frozen=True)
class Plan:
    """What a run will take on this machine."""

    size: str
    parameters: int
    parts: dict[str, int]
    train_pairs: int
    held_out: int
    steps: int
    epochs: float
    seconds_per_step: float
    tokens_per_second: float
    seconds: float
    peak_memory: int
    """Bytes, of this process, while measuring."""
    checkpoint: int
    """Bytes of one checkpoint."""
    disk: int
    """Bytes of the run's folder at its largest."""
    padding: dict[str, float]
    precision: str
    threads: int

    def as_table(self) -> dict[str, Any]:
        return asdict(self)


def plan(table: Mapping[str, Any], overrides: Sequence[str], say: Callable[[str], None]) -> Plan:
    with tempfile.TemporaryDirectory(prefix="clearhead-plan-") as folder:
        prepared = prepare(apply_overrides(table, overrides), Path(folder), Quiet(say), Stop())
        data = sum(p.stat().st_size for p in Path(folder).rglob("*") if p.is_file())
        return measure(prepared, data)


def measure(prepared: Prepared, data: int) -> Plan:
    training, experiment = prepared.training, prepared.experiment
    model, settings = training.model, experiment.train
    seconds_per_step, tokens = time_steps(prepared)
    parameters = parameter_count(model)
    steps_per_epoch = prepared.batches.plan.n_batches(0) / settings.accumulate
    copies = copies_saved(settings)
    checkpoint = 4 * parameters * copies
    waste = prepared.batches.plan.waste(0)
    return Plan(
        size=str(experiment.size),
        parameters=parameters,
        parts=parts_of(model),
        train_pairs=prepared.corpus.train_pairs,
        held_out=len(prepared.corpus.valid),
        steps=settings.max_steps,
        epochs=settings.max_steps / steps_per_epoch,
        seconds_per_step=seconds_per_step,
        tokens_per_second=tokens / seconds_per_step,
        seconds=seconds_per_step * settings.max_steps,
        peak_memory=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        checkpoint=checkpoint,
        disk=data + checkpoint * (experiment.checkpoint.keep + 1) + 8 * parameters,
        padding={"source": waste.source, "target": waste.target},
        precision=settings.precision,
        threads=torch.get_num_threads(),
    )


def time_steps(prepared: Prepared) -> tuple[float, float]:
    """(seconds, target tokens) of a mean step: real batches, real gradients, weights unchanged."""
    training, settings = prepared.training, prepared.experiment.train
    training.model.train()
    cursor, tokens = training.state.cursor, 0
    times: list[float] = []
    began = time.monotonic()
    while len(times) <= WARM_UP or time.monotonic() - began < MEASURED_SECONDS:
        start = time.perf_counter()
        batches, cursor = prepared.batches.take(cursor, settings.accumulate)
        found = compute_gradients(training.model, batches, settings, 1 + len(times))
        training.optimiser.step(0.0)
        times.append(time.perf_counter() - start)
        if len(times) > WARM_UP:
            tokens += found.target_tokens
    measured = times[WARM_UP:]
    return sum(measured) / len(measured), tokens / len(measured)


def parts_of(model: nn.Module) -> dict[str, int]:
    """Learned numbers by part; what is tied counts where it stands first."""
    seen: set[int] = set()
    parts: dict[str, int] = {}
    for name, parameter in model.named_parameters():
        if id(parameter) not in seen:
            seen.add(id(parameter))
            part = part_of(name)
            parts[part] = parts.get(part, 0) + parameter.numel()
    return parts


def part_of(name: str) -> str:
    """ "encoder.layers.3.self_attention.query.weight" → "encoder self_attention"."""
    words = [word for word in name.split(".") if not word.isdecimal() and word != "layers"]
    if "embedding" in words[0] or words[0] == "output":
        return "embeddings"
    return " ".join(words[:2]) if len(words) > 2 else words[0]


def lines(found: Plan) -> list[str]:
    """For people."""
    width = max(map(len, found.parts))
    table = [
        f"    {name:<{width}}  {count:>12,}  {count / found.parameters:6.1%}" for name, count in found.parts.items()
    ]
    return [
        f"size {found.size}: {found.parameters:,} parameters",
        *table,
        f"data: {found.train_pairs:,} pairs, {found.held_out:,} held out; "
        f"padding {found.padding['source']:.1%} of source, {found.padding['target']:.1%} of target places",
        f"time: {found.seconds_per_step * 1000:,.0f} ms a step ({found.tokens_per_second:,.0f} target tokens/s, "
        f"{found.precision}, {found.threads} threads), {found.steps:,} steps = {found.epochs:.1f} epochs: "
        f"about {clock(found.seconds)}, or less if it stops early",
        f"memory: {found.peak_memory / 2**20:,.0f} MB at its peak so far",
        f"disk: {found.checkpoint / 2**20:,.1f} MB a checkpoint, {found.disk / 2**20:,.1f} MB in all",
    ]


def clock(seconds: float) -> str:
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{minutes} minutes" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02d} min"
