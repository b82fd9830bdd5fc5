"""What is written down when loss or gradient is not finite: which pairs, and where it began. Numbers, never text.

The batch is sent through the model again, with the same masks, and every module is listened to: the first whose
output is not finite while its inputs are is where it began. If all outputs are finite, it began on the way back.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.config import TrainSettings
from clearhead.data.batching import Batch
from clearhead.models.protocol import EncoderDecoder
from clearhead.train.gradients import Gradients, piece_loss

SHOWN = 8


def bundle(
    model: EncoderDecoder, batches: Sequence[Batch], settings: TrainSettings, step: int, gradients: Gradients
) -> dict[str, Any]:
    """Everything there is to say about a step whose numbers went wrong. Uses the gradients as they stand."""
    norms = {name: p.grad.norm().item() for name, p in model.named_parameters() if p.grad is not None}
    bad_weights = [name for name, p in model.named_parameters() if not p.isfinite().all()]
    return {
        "step": step,
        "loss": number(gradients.loss),
        "gradient_norm": number(gradients.norm),
        "batches": [{"epoch": b.epoch, "rows": [int(row) for row in b.rows]} for b in batches],
        "first_bad_module": first_bad_module(model, batches, settings, step),
        "bad_weights": bad_weights,
        "gradient_norms": {name: number(norm) for name, norm in norms.items()},
        "bad_gradients": [name for name, norm in norms.items() if not math.isfinite(norm)],
    }


def sentence(found: dict[str, Any]) -> str:
    """The bundle in short."""
    rows = [row for batch in found["batches"] for row in batch["rows"]]
    gradient = found["bad_gradients"][0] if found["bad_gradients"] else "none"
    shown = f"{str(rows[:SHOWN])[1:-1]}{', …' if len(rows) > SHOWN else ''}"
    return f"first bad module: {found['first_bad_module'] or 'none'}; first bad gradient: {gradient}; pairs {shown}"


def number(value: float) -> float | str:
    """JSON has no infinity."""
    return value if math.isfinite(value) else str(value)


def first_bad_module(model: EncoderDecoder, batches: Sequence[Batch], settings: TrainSettings, step: int) -> str | None:
    place = 0
    with torch.no_grad(), listening(model) as bad:
        for batch in batches:
            piece_loss(model, batch, slice(None), settings, step, place)
            place += len(batch)
            if bad:
                return bad[0]
    return None


@contextmanager
def listening(model: nn.Module) -> Iterator[list[str]]:
    """Names of modules whose output is not finite, in the order they were run."""
    bad: list[str] = []

    def listener(name: str) -> Any:
        def heard(module: nn.Module, inputs: Any, output: Any) -> None:
            if not all(map(finite, tensors(output))):
                bad.append(name)

        return heard

    handles = [module.register_forward_hook(listener(name)) for name, module in model.named_modules() if name]
    try:
        yield bad
    finally:
        for handle in handles:
            handle.remove()


def tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for part in value:
            yield from tensors(part)


def finite(tensor: Tensor) -> bool:
    return not tensor.is_floating_point() or bool(tensor.isfinite().all())
