"""The verb `bench`: this machine's limits, and how fast a model learns and writes here. No peers, under a minute.

A model of somebody's own is measured with its own shape and weights; without one, the tiny size with random weights.
The ids are made up, so nothing but the shapes of sentences matters: LENGTH tokens each, and as many written.
The peers stand beside it in the repository's bench/ folder.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from clearhead.config import DecodeSettings, ModelSettings, TrainSettings
from clearhead.data.batching import Batch, assemble, ragged
from clearhead.decode.decode import decode
from clearhead.decode.step import EOS
from clearhead.models.build import build
from clearhead.models.presets import SIZES
from clearhead.models.protocol import EncoderDecoder
from clearhead.native import build as native
from clearhead.train.gradients import compute_gradients
from clearhead.train.optim import Optimiser
from clearhead.train.weights import borrowed, copy_weights
from clearhead.verbs import limits
from clearhead.verbs.folder import open_folder
from clearhead.verbs.resolve import fast_bfloat16

VOCAB = 8000
FIRST_ID = 5
LENGTH = 20
SENTENCES = 64
TRAIN_SENTENCES = 4096 // (LENGTH + 1)
SINGLES = 12
STEP_SECONDS = 4.0
PRECISIONS = ("float32", "bf16", "int8")
Say = Callable[[str], None]


@dataclass(frozen=True)
class Subject:
    """What is measured."""

    name: str
    settings: ModelSettings
    network: EncoderDecoder
    source_vocab: int
    target_vocab: int
    folder: Path | None = None


@dataclass
class Rates:
    subject: str
    limits: limits.Limits
    training: dict[str, Any] = field(default_factory=dict)
    decoding: dict[str, dict[str, float]] = field(default_factory=dict)
    """By precision: output tokens a second greedy and with beam 5 at 64 sentences, milliseconds of a single one."""
    start_up: dict[str, float] = field(default_factory=dict)
    """Seconds from the start of a process."""

    def as_table(self) -> dict[str, Any]:
        return asdict(self)


def bench(run: Path | None, threads: int | None, say: Say = lambda text: None) -> Rates:
    if threads:
        torch.set_num_threads(threads)
    subject = subject_of(run)
    native.build(say)
    say("this machine's limits …")
    found = Rates(subject.name, limits.measure())
    for precision in PRECISIONS:
        say(f"decoding in {precision} …")
        found.decoding[precision] = decoding(subject, precision)
    if subject.settings.kind == "seq2seq":
        say("training …")
        found.training = training(subject)
    say("starting …")
    found.start_up = start_up(subject)
    return found


def subject_of(run: Path | None) -> Subject:
    if run is None:
        settings = ModelSettings.model_validate(SIZES["tiny"])
        network = build(settings, VOCAB, VOCAB, seed=1).eval()
        with torch.no_grad():
            network.output_weight[EOS] = 0.0  # never among the likeliest, so every output has full length
        return Subject("size tiny, random weights", settings, network, VOCAB, VOCAB)
    opened = open_folder(run)
    sizes = opened.tokenizers.source.vocab_size, opened.tokenizers.target.vocab_size
    return Subject(str(run), opened.experiment.model, opened.model, *sizes, run)


def made_up(rows: int, vocab: int, seed: int) -> list[list[int]]:
    return np.random.default_rng(seed).integers(FIRST_ID, vocab, (rows, LENGTH)).tolist()


def decoding(subject: Subject, precision: str) -> dict[str, float]:
    sources = made_up(SENTENCES, subject.source_vocab, seed=1)
    rates = {}
    for name, beam in (("greedy", 1), ("beam 5", 5)):
        rates[name] = max(tokens_per_second(subject, [sources], precision, beam)[0] for _ in range(2))
    alone = [[source] for source in sources[:SINGLES]]
    tokens_per_second(subject, alone[:1], precision, 1)
    rate, milliseconds = tokens_per_second(subject, alone, precision, 1)
    return {**rates, "single": rate, "milliseconds": milliseconds}


def tokens_per_second(
    subject: Subject, chunks: Sequence[list[list[int]]], precision: str, beam: int
) -> tuple[float, float]:
    """(output tokens per second, median milliseconds of a chunk)."""
    settings = DecodeSettings.model_validate(
        {"method": "beam" if beam > 1 else "greedy", "beam": beam, "precision": precision}
        | {"max_ratio": 1e-9, "max_extra": LENGTH, "batch_tokens": 1 << 24}
    )
    times, tokens = [], 0
    for chunk in chunks:
        start = time.perf_counter()
        found = decode(subject.network, chunk, settings, max_len=subject.settings.max_len)
        times.append(time.perf_counter() - start)
        tokens += sum(len(best[0].tokens) for best in found)
    return tokens / sum(times), 1000 * median(times)


def training(subject: Subject) -> dict[str, Any]:
    """Steps on one batch of made-up pairs; the weights are put back."""
    precision = "bf16" if fast_bfloat16(torch.device("cpu")) else "float32"
    settings = TrainSettings.model_validate({"precision": precision})
    batch = training_batch(subject)
    with borrowed(subject.network, copy_weights(subject.network)):
        subject.network.train()
        seconds = step_seconds(subject.network, batch, settings)
    lengths = torch.full((len(batch),), LENGTH + 1)
    operations = limits.step_operations(subject.settings, subject.target_vocab, lengths, lengths)
    products = limits.step_products(
        subject.settings, subject.target_vocab, batch.n_source_tokens, batch.n_target_tokens
    )
    own = limits.rate(products, torch.bfloat16 if precision == "bf16" else torch.float32)
    return {
        "precision": precision,
        "tokens_per_s": batch.n_target_tokens / seconds,
        "gflops": operations / seconds / 1e9,
        "own_shapes_gflops": own,
        "fraction": operations / seconds / 1e9 / own,
    }


def training_batch(subject: Subject) -> Batch:
    source, target = (
        ragged(made_up(TRAIN_SENTENCES, vocab, seed))
        for vocab, seed in ((subject.source_vocab, 2), (subject.target_vocab, 3))
    )
    return assemble(source, target, np.arange(TRAIN_SENTENCES))


def step_seconds(network: EncoderDecoder, batch: Batch, settings: TrainSettings) -> float:
    """The median of as many steps as fit."""
    optimiser = Optimiser(network, settings)
    times: list[float] = []
    began = time.perf_counter()
    while len(times) < 4 or time.perf_counter() - began < STEP_SECONDS:
        start = time.perf_counter()
        compute_gradients(network, [batch], settings, 1 + len(times))
        optimiser.step(0.0)
        times.append(time.perf_counter() - start)
    return median(times[2:])


def start_up(subject: Subject) -> dict[str, float]:
    """Seconds of a process of its own: until help is shown, torch is there, and a first sentence is translated."""
    found = {
        "help": process_seconds("-m", "clearhead.cli.main", "--help"),
        "import torch": process_seconds("-c", "import torch"),
    }
    if subject.folder is not None:
        command = ("-m", "clearhead.cli.main", "translate", str(subject.folder), "a")
        found["first translation"] = process_seconds(*command)
    return found


def process_seconds(*arguments: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def lines(found: Rates) -> list[str]:
    """For people."""
    machine = found.limits
    whole = "no int8 products" if machine.int8 is None else f"int8 {machine.int8:,.0f} GOP/s"
    told = [
        f"machine ({machine.threads} threads): products float32 {machine.float32:,.0f} GFLOP/s, "
        f"bf16 {machine.bf16:,.0f} GFLOP/s, {whole}; memory {machine.bandwidth:,.1f} GB/s",
        f"model: {found.subject}",
    ]
    if found.training:
        t = found.training
        told.append(
            f"training: {t['tokens_per_s']:,.0f} target tokens/s in {t['precision']}, {t['gflops']:,.0f} GFLOP/s: "
            f"{t['fraction']:.0%} of the products' rate at its own shapes ({t['own_shapes_gflops']:,.0f})"
        )
    told.append(f"decoding, output tokens/s    greedy ×{SENTENCES}   beam 5 ×{SENTENCES}     single   (ms)")
    for precision, rates in found.decoding.items():
        told.append(
            f"    {precision:<20} {rates['greedy']:>14,.0f} {rates['beam 5']:>12,.0f} {rates['single']:>10,.0f}"
            f"   {rates['milliseconds']:,.1f}"
        )
    told.append("start-up: " + ", ".join(f"{name} {seconds:.2f} s" for name, seconds in found.start_up.items()))
    return told
