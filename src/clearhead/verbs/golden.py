"""golden.json: built-in inputs with the outputs a model must give, checked by `clearhead doctor RUN`.

The inputs are the same for every model and say nothing of its training text; a model that reads only so many tokens at
once gets so many of each. Outputs are compared as ids, scores within a tolerance: another machine may add numbers up in
another order.
"""

from __future__ import annotations

import json
from itertools import zip_longest
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from clearhead.config import DecodeSettings, Experiment
from clearhead.decode.decode import decode
from clearhead.errors import ModelFileError
from clearhead.files.manifest import read_json
from clearhead.models.build import build
from clearhead.models.protocol import EncoderDecoder
from clearhead.train.weights import Weights, put_weights
from clearhead.verbs.tokenizers import Tokenizers

INPUTS = ("Hello.", "1, 2, 3", "A small test of this model.", "…")
SETTINGS = DecodeSettings(method="greedy", max_ratio=1.0, max_extra=8)
TOLERANCE = 1e-3
LARGEST = 1_000_000


class Example(BaseModel):
    """One built-in input and what came out."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    input: str
    ids: list[int]
    log_probability: float


Examples = TypeAdapter(list[Example])


def outputs(model: EncoderDecoder, tokenizers: Tokenizers, max_len: int) -> list[dict[str, Any]]:
    sources = [ids[: max_len - 1] for ids in tokenizers.source.encode_many(INPUTS)]
    found = decode(model, sources, SETTINGS, max_len=max_len)
    return [
        {"input": text, "ids": list(hypotheses[0].tokens), "log_probability": hypotheses[0].log_probability}
        for text, hypotheses in zip(INPUTS, found, strict=True)
    ]


def make(experiment: Experiment, tokenizers: Tokenizers, weights: Weights) -> bytes:
    model = build(experiment.model, tokenizers.source.vocab_size, tokenizers.target.vocab_size).eval()
    put_weights(model, weights)
    found = outputs(model, tokenizers, experiment.model.max_len)
    return (json.dumps(found, ensure_ascii=False, indent=1) + "\n").encode()


def read(path: Path) -> list[Example]:
    """The stored outputs of a folder that anybody may have made."""
    try:
        return Examples.validate_python(read_json(path, LARGEST))
    except ValidationError as error:
        raise ModelFileError(f"is not a list of examples: {error.errors()[0]['msg']}", file=path) from None


def differences(stored: list[Example], model: EncoderDecoder, tokenizers: Tokenizers, max_len: int) -> list[str]:
    """A sentence for each built-in input whose output is not the stored one."""
    found = []
    for old, new in zip_longest(stored, map(Example.model_validate, outputs(model, tokenizers, max_len))):
        if old is None or new is None or old.input != new.input:
            return ["the stored inputs are not the built-in ones"]
        if old.ids != new.ids:
            found.append(f"{old.input!r}: ids {new.ids}, stored {old.ids}")
        elif abs(old.log_probability - new.log_probability) > TOLERANCE:
            found.append(f"{old.input!r}: score {new.log_probability:.5f}, stored {old.log_probability:.5f}")
    return found
