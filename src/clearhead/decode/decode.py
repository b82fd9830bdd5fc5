"""Many sources: sorted by length, decoded in batches, returned in their own order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch

from clearhead.config import DecodeSettings
from clearhead.decode.beam import Beam
from clearhead.decode.rank import Hypothesis
from clearhead.decode.single import Single
from clearhead.models.protocol import EncoderDecoder
from clearhead.nn.linear import products_in

Progress = Callable[[int], None]
PRODUCTS = {"float32": torch.float32, "bf16": torch.bfloat16, "int8": torch.int8}


def length_limit(source_length: int, settings: DecodeSettings, longest: int) -> int:
    """Output tokens at most; always below the model's own limit."""
    return min(int(source_length * settings.max_ratio) + settings.max_extra, longest - 1)


def length_batches(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Places of sources, longest first, each batch at most `batch_tokens` padded tokens (or one source)."""
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if batch and (len(batch) + 1) * (lengths[batch[0]] + 1) > batch_tokens:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


@torch.inference_mode()
def decode(
    model: EncoderDecoder,
    sources: Sequence[Sequence[int]],
    settings: DecodeSettings,
    progress: Progress | None = None,
    max_len: int = 1024,
    places: Sequence[int] | None = None,
    prefixes: Sequence[Sequence[int]] = (),
) -> list[list[Hypothesis]]:
    """For each source its hypotheses, best first. `places`: what a source's draws are counted by, if not its index;
    `prefixes`: what its outputs begin with, if with anything."""
    counted = range(len(sources)) if places is None else places
    results: list[list[Hypothesis]] = [[] for _ in sources]
    with products_in(PRODUCTS[settings.precision]):
        for chosen in length_batches([len(s) for s in sources], settings.batch_tokens):
            batch = [sources[i] for i in chosen]
            begun = [prefixes[i] for i in chosen] if prefixes else []
            limits = [length_limit(len(s), settings, max_len) for s in batch]
            if begun:
                limits = [min(limit + len(p), max_len - 1) for limit, p in zip(limits, begun, strict=True)]
            found = decode_batch(model, batch, limits, [counted[i] for i in chosen], settings, begun)
            for index, hypotheses in zip(chosen, found, strict=True):
                results[index] = hypotheses
            if progress is not None:
                progress(len(chosen))
    return results


def decode_batch(
    model: EncoderDecoder,
    sources: Sequence[Sequence[int]],
    limits: Sequence[int],
    places: Sequence[int],
    settings: DecodeSettings,
    prefixes: Sequence[Sequence[int]] = (),
) -> list[list[Hypothesis]]:
    if settings.method == "beam" and settings.beam > 1:
        return Beam(model, sources, limits, settings, prefixes=prefixes).run()
    return [[h] for h in Single(model, sources, limits, places, settings, prefixes).run()]
