"""What the tests of the glass share: networks of every kind, a sentence, and the pass recomputed (recomputed.py)."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from clearhead.config import ModelSettings
from clearhead.decode.step import BOS, EOS
from clearhead.glass.trace import Trace
from clearhead.glass.tracer import trace_pass
from clearhead.models.build import build
from clearhead.models.protocol import EncoderDecoder

VOCAB = 31
WIDTHS = {"d_model": 12, "d_ff": 17, "n_heads": 4, "d_head": 6, "d_value": 5, "max_len": 61, "dropout": 0.0}
KINDS: dict[str, dict[str, Any]] = {
    "1+1 sinusoidal": {"encoder_layers": 1, "decoder_layers": 1},
    "2+1 post-norm, learned positions": {
        "encoder_layers": 2,
        "decoder_layers": 1,
        "norm_order": "post",
        "positions": "learned",
        "activation": "relu2",
    },
    "1+3 rotary, rms, grouped": {
        "encoder_layers": 1,
        "decoder_layers": 3,
        "positions": "rotary",
        "norm": "rms",
        "n_kv_heads": 2,
    },
    "halves, no biases, nothing tied": {"positions": "sinusoidal-halves", "bias": False, "tie": "none"},
    "shaw, swiglu, embeddings as they are": {
        "positions": "relative-shaw",
        "activation": "swiglu",
        "embedding_scale": False,
    },
    "t5, geglu, post-norm rms, one key head": {
        "positions": "relative-t5",
        "activation": "geglu",
        "norm": "rms",
        "norm_order": "post",
        "n_kv_heads": 1,
    },
    "alibi, gelu, batch norm": {"positions": "alibi", "activation": "gelu", "norm": "batch"},
    "no positions, unscaled, window": {"positions": "none", "scale_scores": False, "attention_window": 2},
    "strided, post-norm batch": {
        "attention_window": 1,
        "attention_stride": 3,
        "norm": "batch",
        "norm_order": "post",
        "tie": "target",
    },
    "convolutional": {"kind": "convolutional", "encoder_layers": 2},
    "convolutional, post-norm, wider": {"kind": "convolutional", "norm_order": "post", "attention_window": 2},
    "recurrent": {"kind": "recurrent", "encoder_layers": 2, "decoder_layers": 2},
    "recurrent, no biases": {"kind": "recurrent", "bias": False, "tie": "target"},
}
SOURCE, OUTPUT = [7, 11, 8, 23, 11, 19, 30], [9, 27, 9, 14, 5]
BASICS = {"encoder_layers": 1, "decoder_layers": 1}

Make = Callable[..., EncoderDecoder]


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def glass_model() -> Make:
    """A tiny network; every parameter and running statistic is moved off its start."""

    def make(seed: int = 3, **given: object) -> EncoderDecoder:
        settings = ModelSettings(**{**WIDTHS, **BASICS, **given})
        model = build(settings, VOCAB, VOCAB, seed)
        generator = torch.Generator().manual_seed(seed + 4)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter += 0.3 * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
            for name, buffer in model.named_buffers():
                if name.endswith("running_mean"):
                    buffer += 0.3 * torch.randn(buffer.shape, generator=generator, dtype=buffer.dtype)
                elif name.endswith("running_variance"):
                    buffer += torch.rand(buffer.shape, generator=generator, dtype=buffer.dtype)
        return model.eval()

    return make


@pytest.fixture(params=KINDS, scope="module")
def kind(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Settings of every kind of network there is, one after the other."""
    return KINDS[request.param]


@pytest.fixture(
    params=["1+1 sinusoidal", "2+1 post-norm, learned positions", "1+3 rotary, rms, grouped"], scope="module"
)
def transformer(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Settings of three Transformers of unequal depths."""
    return KINDS[request.param]


@pytest.fixture(scope="session")
def source() -> list[int]:
    return list(SOURCE)


@pytest.fixture(scope="session")
def output() -> list[int]:
    return list(OUTPUT)


@pytest.fixture(scope="session")
def traced() -> Callable[..., Trace]:
    """The trace of the sentence (or another) through a network."""

    def trace(model: EncoderDecoder, source: list[int] = SOURCE, output: list[int] = OUTPUT) -> Trace:
        return trace_pass(model, source, output)

    return trace


@pytest.fixture(scope="session")
def recompute() -> Callable[..., dict[str, np.ndarray]]:
    """Every number of the sentence's pass, by the other path; `change` is an intervention on it."""
    numpy_pass = load("recomputed").Recomputed

    def run(
        model: EncoderDecoder, change: Any = None, source: list[int] = SOURCE, output: list[int] = OUTPUT
    ) -> dict[str, np.ndarray]:
        return numpy_pass(model, change).run([*source, EOS], [BOS, *output], [*output, EOS])

    return run


@pytest.fixture(scope="session")
def log_p() -> Callable[..., np.ndarray]:
    """By the other path: log-probabilities (position, token) of any ids, as they are given."""
    numpy_pass = load("recomputed").Recomputed

    def run(model: EncoderDecoder, source: list[int], target: list[int], change: Any = None) -> np.ndarray:
        logits = numpy_pass(model, change).run(source, target, target)["logits"]
        lifted = logits - logits.max(1, keepdims=True)
        return lifted - np.log(np.exp(lifted).sum(1, keepdims=True))

    return run


@pytest.fixture(scope="session")
def same() -> Callable[[np.ndarray, np.ndarray, float], None]:
    """Equal within `tolerance` of the largest finite magnitude; −∞ where the other has −∞."""

    def check(ours: np.ndarray, theirs: np.ndarray, tolerance: float) -> None:
        assert ours.shape == theirs.shape, f"{ours.shape} is not {theirs.shape}"
        finite = np.isfinite(theirs)
        np.testing.assert_array_equal(np.isfinite(ours), finite)
        apart = np.abs(np.where(finite, ours, 0.0) - np.where(finite, theirs, 0.0)).max(initial=0.0)
        largest = np.abs(theirs[finite]).max(initial=1e-30)
        assert apart <= tolerance * largest, f"{apart:.2e} apart, the largest number is {largest:.2e}"

    return check
