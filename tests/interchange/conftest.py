"""Models that other programs can express, and their weights as they are exported."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from clearhead.config import ModelSettings
from clearhead.models.build import build
from clearhead.models.protocol import EncoderDecoder

BENCHED = {
    "d_model": 22,
    "n_heads": 2,
    "d_ff": 17,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "max_len": 61,
    "positions": "sinusoidal-halves",
    "norm_order": "post",
}
Make = Callable[..., tuple[ModelSettings, EncoderDecoder]]


@pytest.fixture(scope="session")
def exportable(shake: Callable[[torch.nn.Module], None]) -> Make:
    """(settings, model) of the architecture everybody knows; any setting can be given."""

    def make(source_vocab: int = 31, target_vocab: int = 31, **given: object) -> tuple[ModelSettings, EncoderDecoder]:
        settings = ModelSettings.model_validate(BENCHED | given)
        model = build(settings, source_vocab, target_vocab, seed=3)
        shake(model)
        return settings, model.eval()

    return make
