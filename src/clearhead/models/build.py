"""From settings to a network whose first weights are a function of the seed alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from clearhead.config import ModelSettings
from clearhead.models.convolutional import Convolutional
from clearhead.models.protocol import EncoderDecoder
from clearhead.models.recurrent import Recurrent
from clearhead.models.seq2seq import Seq2Seq
from clearhead.randomness import key

KINDS: dict[str, Callable[[ModelSettings, int, int], EncoderDecoder]] = {
    "seq2seq": Seq2Seq,
    "recurrent": Recurrent,
    "convolutional": Convolutional,
}


def build(settings: ModelSettings, source_vocab: int, target_vocab: int, seed: int = 0) -> EncoderDecoder:
    """The generator torch's initialisers draw from is put back as it was: building leaves no trace."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(key(seed, "weights") % 2**63)
        return KINDS[settings.kind](settings, source_vocab, target_vocab)


class Undrawn(TorchFunctionMode):
    """While it is entered, no first weights are drawn: for models that get theirs from a file, or that only show their
    shapes. Drawing takes time, and drawing for a tensor without memory loads torch's compiler: seconds."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") in ("normal_", "uniform_"):
            return args[0] if args else (kwargs or {})["tensor"]
        return func(*args, **(kwargs or {}))
