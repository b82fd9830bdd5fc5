"""A tiny model of any kind that reads and writes whole words, made without training; and a sentence explained."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import torch

from clearhead.config import Experiment
from clearhead.models.build import build
from clearhead.text.tokenizer import Tokenizer, train_tokenizer
from clearhead.verbs.explain import Explained, explain
from clearhead.verbs.folder import Opened
from clearhead.verbs.model import Model
from clearhead.verbs.tokenizers import Tokenizers

TEXTS = ["the woman ate the raccoon", "the raccoon ate a fish", "die Frau aß den Waschbären", "der Fisch"]
TEXT = "the woman ate the </script> raccoon"
SPELLED = {
    "▁woman": "</script>",
    "▁raccoon": "<!--<script>",
    "▁der": "<img src=x onerror=alert(1)>",
    "▁the": "&amp;\u2028",
}
"""Printed forms of some words that would be markup, if a page let them."""
SHAPE = {"encoder_layers": 2, "decoder_layers": 1, "d_model": 12, "n_heads": 2, "d_ff": 16, "max_len": 32}


class Spelled(Tokenizer):
    """Prints some of its tokens as markup."""

    def token(self, token_id: int) -> str:
        plain = super().token(token_id)
        return SPELLED.get(plain, plain)


MakeModel = Callable[..., Model]
MakeExplained = Callable[..., Explained]


@pytest.fixture(scope="session")
def make_model() -> MakeModel:
    @cache
    def made(shape: tuple[tuple[str, object], ...]) -> Model:
        given = {"text": {"level": "word"}, "model": {**SHAPE, "dropout": 0.0, **dict(shape)}}
        experiment = Experiment.model_validate({**given, "decode": {"beam": 3, "method": "beam", "max_extra": 6}})
        both = Spelled(train_tokenizer(TEXTS * 3, experiment.text).parts)
        network = build(experiment.model, both.vocab_size, both.vocab_size, 5).eval()
        generator = torch.Generator().manual_seed(11)
        with torch.no_grad():
            for parameter in network.parameters():
                parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
        about: dict[str, str | int] = {"source": "en", "target": "de"}
        return Model(Opened(Path("made-up"), experiment, Tokenizers(both, both), network, about))

    return lambda **shape: made(tuple(shape.items()))


@pytest.fixture(scope="session")
def make_explained(make_model: MakeModel) -> MakeExplained:
    """Of a model of this shape; `text` and decoding settings may be given."""

    @cache
    def made(text: str, beam: int, shape: tuple[tuple[str, object], ...]) -> Explained:
        how = {"beam": beam, "method": "beam" if beam > 1 else "greedy"}
        return explain(make_model(**dict(shape)), text, **how)

    return lambda text=TEXT, beam=3, **shape: made(text, beam, tuple(shape.items()))
