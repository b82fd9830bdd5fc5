"""What looking inside costs: a traced pass, leave one out, the map of all heads, a page; and taps nobody listens to.

    python bench/glass.py [--threads 2] [--repeat 7] [--json]

Two sizes: 3 + 3 layers of 256 channels and a vocabulary of 8,000, and 6 + 6 of 512 with 32,000; a sentence of twenty
words on either side. Weights as they are drawn: time does not depend on what was learned. Each number is the median
of its runs after two to warm up, with the fastest beside it, and a target where there is one.

Taps: the same training step and the same decoding step, with every tap in place and with all of them replaced by
nothing, turn and turn about, so that a slow spell of the machine falls on both.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import torch

from clearhead.config import DecodeSettings, ModelSettings, TrainSettings
from clearhead.data.batching import assemble, ragged
from clearhead.glass.decoded import trace as decoded
from clearhead.glass.lenses.ablation import head_map
from clearhead.glass.lenses.attention import rollout, value_zeroing, weighted_norms
from clearhead.glass.lenses.erasure import leave_one_out
from clearhead.glass.lenses.gradients import gradient_input, integrated_gradients
from clearhead.glass.lenses.layers import logit_lens
from clearhead.glass.tracer import trace_pass
from clearhead.models.build import build
from clearhead.models.protocol import EncoderDecoder
from clearhead.train.gradients import compute_gradients

WORDS = 20
SIZES: dict[str, tuple[dict[str, Any], int]] = {
    "3+3, d256": ({"encoder_layers": 3, "decoder_layers": 3, "d_model": 256, "d_ff": 1024, "n_heads": 4}, 8_000),
    "6+6, d512": ({"encoder_layers": 6, "decoder_layers": 6, "d_model": 512, "d_ff": 2048, "n_heads": 8}, 32_000),
}
TARGETS = {
    ("3+3, d256", "traced pass"): 20,
    ("3+3, d256", "leave one out"): 150,
    ("3+3, d256", "map of all heads"): 300,
    ("6+6, d512", "traced pass"): 80,
    ("6+6, d512", "leave one out"): 1000,
    ("6+6, d512", "map of all heads"): 6000,
}
"""Milliseconds on two cores."""
MOST_SHARE = 0.01
"""Of a step, for taps nobody listens to."""


@dataclass(frozen=True)
class Timed:
    """Milliseconds."""

    size: str
    what: str
    median: float
    fastest: float
    target: float | None

    @property
    def line(self) -> str:
        verdict = (
            "" if self.target is None else f"   target {self.target:,.0f} {'✓' if self.median <= self.target else '✗'}"
        )
        return f"{self.size:<12} {self.what:<34} {self.median:>9.1f} ms   fastest {self.fastest:>9.1f}{verdict}"


@dataclass(frozen=True)
class Silence:
    """What the taps of a step cost while nobody listens."""

    size: str
    what: str
    taps: int
    with_taps: float
    without: float
    per_call: float
    """Nanoseconds of one silent call, measured by itself."""

    @property
    def share(self) -> float:
        """Calls times the price of a call: exact where the difference of two noisy times is not."""
        return self.taps * self.per_call / 1e6 / self.without

    @property
    def line(self) -> str:
        measured, mark = self.with_taps / self.without - 1, "✓" if self.share <= MOST_SHARE else "✗"
        price = f"{self.taps} calls of {self.per_call:.0f} ns in {self.without:.1f} ms: {self.share:.2%}"
        target = f"target {MOST_SHARE:.0%} {mark}   (clock: {measured:+.1%})"
        return f"{self.size:<12} taps in {self.what:<26} {price}   {target}"


def sentence(vocab: int, seed: int) -> list[int]:
    return torch.randint(5, vocab, (WORDS,), generator=torch.Generator().manual_seed(seed)).tolist()


def runs(job: Callable[[], object], repeat: int) -> list[float]:
    """Milliseconds of each run, after two to warm up."""
    taken = []
    for at in range(repeat + 2):
        start = time.perf_counter()
        job()
        if at > 1:
            taken.append(1e3 * (time.perf_counter() - start))
    return taken


def looks(name: str, repeat: int) -> Iterator[Timed]:
    """Everything a page or a lens asks of one sentence."""
    shape, vocab = SIZES[name]
    network = build(ModelSettings.model_validate({**shape, "dropout": 0.0, "max_len": 128}), vocab, vocab).eval()
    source, output = sentence(vocab, 1), sentence(vocab, 2)
    trace = trace_pass(network, source, output)
    greedy = DecodeSettings(method="greedy", max_ratio=0.01, max_extra=WORDS)
    cross = trace.attentions()[-1]
    jobs: dict[str, Callable[[], object]] = {
        "plain pass": lambda: plain(network, source, output),
        "traced pass": lambda: trace_pass(network, source, output),
        "decoded and traced": lambda: decoded(network, source, greedy, max_len=128),
        "leave one out": lambda: leave_one_out(network, trace),
        "map of all heads": lambda: head_map(network, trace),
        "weight × value, one attention": lambda: weighted_norms(network, trace, cross),
        "value zeroing, one attention": lambda: value_zeroing(network, trace, cross),
        "rollout": lambda: rollout(trace),
        "logit lens": lambda: logit_lens(network, trace),
        "gradient × input, all words": lambda: gradient_input(network, trace),
        "integrated gradients, one word": lambda: integrated_gradients(network, trace, [5]),
    }
    for what, job in jobs.items():
        taken = runs(job, repeat)
        yield Timed(name, what, median(taken), min(taken), TARGETS.get((name, what)))


@torch.inference_mode()
def plain(network: EncoderDecoder, source: list[int], output: list[int]) -> torch.Tensor:
    return network.logits(network(torch.tensor([source]), torch.tensor([output])))


def silence(name: str, repeat: int) -> Iterator[Silence]:
    shape, vocab = SIZES[name]
    network = build(ModelSettings.model_validate({**shape, "dropout": 0.1, "max_len": 128}), vocab, vocab)
    settings = TrainSettings(precision="float32")
    rows = [sentence(vocab, seed) for seed in range(16)]
    batch = assemble(ragged(rows), ragged(rows), torch.arange(len(rows)).numpy())
    steps: dict[str, Callable[[], object]] = {
        "a training step": lambda: compute_gradients(network.train(), [batch], settings, 1),
        "a decoding step": decoding_step(network, rows[0]),
    }
    price = per_call()
    for what, step in steps.items():
        taps = counted(step)
        with_taps, without = [], []
        for _ in range(repeat):
            with_taps += runs(step, 1)
            with no_taps():
                without += runs(step, 1)
        yield Silence(name, what, taps, median(with_taps), median(without), price)


def decoding_step(network: EncoderDecoder, source: list[int]) -> Callable[[], object]:
    """One word more, of one sentence, by the plain step: the fast one has no taps at all."""

    @torch.inference_mode()
    def step() -> object:
        network.eval()
        state = network.start(memory)
        return network.logits(network.step(torch.tensor([[7]]), state))

    with torch.inference_mode():
        memory = network.eval().encode(torch.tensor([source]))
    return step


def places(word: str) -> list[Any]:
    """The modules in which this function of nn/tap.py is called."""
    found = [module for name, module in sys.modules.items() if name.startswith("clearhead.")]
    return [
        module for module in found if callable(getattr(module, word, None)) and not name_of(module).endswith(".tap")
    ]


def name_of(module: Any) -> str:
    return str(module.__name__)


@contextmanager
def replaced(word: str, by: Callable[..., object]) -> Iterator[None]:
    held = [(module, getattr(module, word)) for module in places(word)]
    for module, _ in held:
        setattr(module, word, by)
    try:
        yield
    finally:
        for module, own in held:
            setattr(module, word, own)


@contextmanager
def no_taps() -> Iterator[None]:
    """Every tap is the shortest function there is, and nobody asks whether anybody listens."""
    with replaced("tap", lambda module, name, tensor: tensor), replaced("heard", lambda module, *names: False):
        yield


def counted(step: Callable[[], object]) -> int:
    """Calls of taps, and questions whether somebody listens, in one step."""
    calls = [0]

    def tap(module: object, name: str, tensor: object) -> object:
        calls[0] += 1
        return tensor

    def heard(module: object, *names: str) -> bool:
        calls[0] += 1
        return False

    with replaced("tap", tap), replaced("heard", heard):
        step()
    return calls[0]


def per_call(calls: int = 200_000) -> float:
    """Nanoseconds of one tap nobody listens to."""
    from clearhead.nn.tap import tap

    module, tensor = torch.nn.Identity(), torch.zeros(1)
    start = time.perf_counter()
    for _ in range(calls):
        tap(module, "pattern", tensor)
    return 1e9 * (time.perf_counter() - start) / calls


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--repeat", type=int, default=7)
    options.add_argument("--json", action="store_true")
    options.add_argument("--size", choices=SIZES, action="append", help="both when not given")
    asked = options.parse_args()
    torch.set_num_threads(asked.threads)
    if not asked.json:
        print(f"torch {torch.__version__}, {asked.threads} threads, {WORDS} words, median of {asked.repeat}")
    for name in asked.size or SIZES:
        for found in (*looks(name, asked.repeat), *silence(name, asked.repeat)):
            shown = asdict(found) | ({"share": found.share} if isinstance(found, Silence) else {})
            print(json.dumps(shown) if asked.json else found.line, flush=True)


if __name__ == "__main__":
    main()
