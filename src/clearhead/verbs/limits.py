"""What this machine can do: matrix products by precision and shape, and bytes moved. The yardstick of every rate.

A product of (rows × in) and (in × out) is 2 · rows · in · out operations. The rate "at the model's own shapes" is the
rate of all products of one training step, each timed alone, forward and backward, at the shapes the model has:

    rate = Σ operations / Σ seconds

so a fraction of 1 would be a step that does nothing but those products. Attention's own products are left out there:
they are taken in float32, in small pieces.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from clearhead.config import ModelSettings

SQUARE = 1536
MOVED = 1 << 28
"""Bytes copied at a time: more than any cache holds."""
TRIES = 3
SECONDS = 0.15

Product = tuple[int, int, int]
"""(rows, in, out)"""


@dataclass(frozen=True)
class Limits:
    """GFLOP/s (int8: GOP/s) of large square products, and GB/s of a copy, read and written."""

    float32: float
    bf16: float
    int8: float | None
    bandwidth: float
    threads: int

    def as_table(self) -> dict[str, Any]:
        return asdict(self)


def measure() -> Limits:
    square = (SQUARE, SQUARE, SQUARE)
    try:
        whole: float | None = rate([square], torch.int8)
    except RuntimeError:  # no such product in this build
        whole = None
    return Limits(
        rate([square], torch.float32), rate([square], torch.bfloat16), whole, bandwidth(), torch.get_num_threads()
    )


def rate(products: list[Product], dtype: torch.dtype) -> float:
    """Billions of operations a second over all these products, each shape timed once."""
    times = {shape: product_seconds(shape, dtype) for shape in set(products)}
    operations = sum(2 * rows * inputs * outputs for rows, inputs, outputs in products)
    return operations / sum(times[shape] for shape in products) / 1e9


def product_seconds(shape: Product, dtype: torch.dtype) -> float:
    """By the fastest way there is here: torch's own product, or oneDNN's with weights arranged beforehand."""
    rows, inputs, outputs = shape
    return min(best_seconds(way) for way in ways(rows, inputs, outputs, dtype))


def ways(rows: int, inputs: int, outputs: int, dtype: torch.dtype) -> Iterator[Callable[[], Any]]:
    if dtype == torch.int8:
        x = torch.randint(-127, 128, (rows, inputs), dtype=torch.int8)
        weight = torch.randint(-127, 128, (outputs, inputs), dtype=torch.int8)
        yield lambda: torch._int_mm(x, weight.T)
        return
    x, weight = torch.randn(rows, inputs, dtype=dtype), torch.randn(outputs, inputs, dtype=dtype)
    yield lambda: torch.nn.functional.linear(x, weight)
    if dtype == torch.float32 and torch.backends.mkldnn.is_available():
        arranged = torch.ops.mkldnn._reorder_linear_weight(weight, rows)
        yield lambda: torch.ops.mkldnn._linear_pointwise(x, arranged, None, "none", [], "")


def best_seconds(work: Callable[[], Any]) -> float:
    """The best of a few tries, each long enough to be timed."""
    work()
    start = time.perf_counter()
    work()
    count = max(1, round(SECONDS / TRIES / max(time.perf_counter() - start, 1e-7)))
    best = float("inf")
    for _ in range(TRIES):
        start = time.perf_counter()
        for _ in range(count):
            work()
        best = min(best, (time.perf_counter() - start) / count)
    return best


def bandwidth() -> float:
    source = torch.zeros(MOVED // 4)
    target = torch.empty_like(source)
    return 2 * MOVED / best_seconds(lambda: target.copy_(source)) / 1e9


def step_products(settings: ModelSettings, vocab: int, source_tokens: int, target_tokens: int) -> list[Product]:
    """The products of the linear maps in one training step: forward, to the input's gradient, to the weight's."""
    return [
        turned
        for rows, inputs, outputs in forward_products(settings, vocab, source_tokens, target_tokens)
        for turned in ((rows, inputs, outputs), (rows, outputs, inputs), (outputs, rows, inputs))
    ]


def forward_products(settings: ModelSettings, vocab: int, source_tokens: int, target_tokens: int) -> list[Product]:
    """Of a Transformer encoder-decoder. (rows, in, out) for each linear map."""
    d, queries = settings.d_model, settings.n_heads * settings.head_width
    keys, values = settings.kv_heads * settings.head_width, settings.kv_heads * settings.value_width
    mixed = settings.n_heads * settings.value_width

    def attention(asking: int, asked: int) -> list[Product]:
        return [(asking, d, queries), (asked, d, keys), (asked, d, values), (asking, mixed, d)]

    def feedforward(rows: int) -> list[Product]:
        ups = 2 if settings.activation.endswith("glu") else 1
        return [*[(rows, d, settings.d_ff)] * ups, (rows, settings.d_ff, d)]

    encoder = [*attention(source_tokens, source_tokens), *feedforward(source_tokens)]
    decoder = [
        *attention(target_tokens, target_tokens),
        *attention(target_tokens, source_tokens),
        *feedforward(target_tokens),
    ]
    return [
        *encoder * settings.encoder_layers,
        *decoder * settings.decoder_layers,
        (target_tokens, d, vocab),
    ]


def step_operations(settings: ModelSettings, vocab: int, source_lengths: Tensor, target_lengths: Tensor) -> float:
    """What one training step has to compute, padding not counted: linear maps, and attention's products, three times
    each (forward and two gradients)."""
    source, target = int(source_lengths.sum()), int(target_lengths.sum())
    linear = sum(2 * a * b * c for a, b, c in step_products(settings, vocab, source, target))
    s, t = source_lengths.double(), target_lengths.double()
    pairs = settings.encoder_layers * (s * s).sum() + settings.decoder_layers * ((t * t).sum() / 2 + (t * s).sum())
    widths = settings.n_heads * (settings.head_width + settings.value_width)
    return linear + 3 * 2 * widths * float(pairs)
