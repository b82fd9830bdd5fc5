"""What every test shares: checked shapes, one thread, float64 on request, a tiny model.

The shape annotations of the heart (`Float[Tensor, "B N Q H"]`) are enforced in every test, by jaxtyping and beartype,
from the moment these modules are imported; so they must not have been imported before this file.
tests/contracts/test_shapes.py shows that the checking is on. Sizes in tests are different primes (or twice a prime,
where a width must be even), so that no two dimensions can be taken for each other.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("CLEARHEAD_NATIVE", "0")  # the same road on every machine; tests/parity/test_native.py takes both

import pytest
from jaxtyping import install_import_hook

CHECKED = ("clearhead.nn", "clearhead.models", "clearhead.train.loss")

if early := [name for name in sys.modules if name.startswith(CHECKED)]:
    raise pytest.UsageError(f"imported before their shapes could be checked: {', '.join(early)}")
install_import_hook(CHECKED, "beartype.beartype")

import torch  # noqa: E402

from clearhead.config import ModelSettings  # noqa: E402
from clearhead.models.build import build  # noqa: E402
from clearhead.models.protocol import EncoderDecoder  # noqa: E402

VOCAB = 31
TINY = {
    "d_model": 22,
    "n_heads": 2,
    "d_head": 10,
    "d_value": 11,
    "d_ff": 17,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "max_len": 61,
    "dropout": 0.0,
}

Settings = Callable[..., ModelSettings]
Build = Callable[..., EncoderDecoder]
Ids = Callable[..., torch.Tensor]


@pytest.fixture(scope="session")
def checked() -> tuple[str, ...]:
    """The rooms whose shape annotations are enforced."""
    return CHECKED


@pytest.fixture
def float64() -> Iterator[None]:
    """New tensors, parameters and tables are float64 while the test runs."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@pytest.fixture(scope="session")
def tiny_settings() -> Settings:
    """Settings of a one-layer model with odd sizes; any of them can be given."""
    return lambda **given: ModelSettings(**{**TINY, **given})


@pytest.fixture(scope="session")
def shake() -> Callable[[torch.nn.Module], None]:
    """Moves every parameter off its start, so that zeros and ones there hide no mistake."""

    def move(module: torch.nn.Module, seed: int = 7) -> None:
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in module.parameters():
                parameter += 0.2 * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)

    return move


@pytest.fixture(scope="session")
def tiny_model(tiny_settings: Settings, shake: Callable[[torch.nn.Module], None]) -> Build:
    """A tiny Transformer, every parameter moved off its start."""

    def make(vocab: int = VOCAB, seed: int = 3, **given: object) -> EncoderDecoder:
        model = build(tiny_settings(**given), vocab, vocab, seed)
        shake(model)
        return model.eval()

    return make


@pytest.fixture(scope="session")
def ids() -> Ids:
    """Rows of ordinary ids; with `lengths`, padded behind them."""

    def make(
        rows: int, width: int, seed: int = 0, lengths: list[int] | None = None, vocab: int = VOCAB
    ) -> torch.Tensor:
        made = torch.randint(5, vocab, (rows, width), generator=torch.Generator().manual_seed(seed))
        for row, length in enumerate(lengths or []):
            made[row, length:] = 0
        return made

    return make
