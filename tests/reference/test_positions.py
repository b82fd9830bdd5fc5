"""Every kind of positions against its formula, number by number."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest
import torch

from clearhead.nn.positions import (
    AbsolutePositions,
    Alibi,
    RelativeShaw,
    RelativeT5,
    Rotary,
    build_absolute,
    sinusoidal,
    t5_bucket,
)

pytestmark = pytest.mark.usefixtures("float64")


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("halves", [False, True])
def test_the_two_layouts_of_waves(halves: bool, oracle: ModuleType, same: Callable) -> None:
    same(sinusoidal(101, 26, halves=halves), oracle.sinusoidal(101, 26, halves), 1e-12)
    torch.set_default_dtype(torch.float32)
    same(sinusoidal(101, 26, halves=halves), oracle.sinusoidal(101, 26, halves), 1e-7)


def test_the_waves_far_out_are_as_exact_as_float32_can_say(oracle: ModuleType) -> None:
    """The angle is worked out in float64: at position 5,003 a float32 angle would be off by 1e-4."""
    torch.set_default_dtype(torch.float32)
    far = AbsolutePositions("sinusoidal", 5004, 2)(1, 5003).double().numpy()[0]
    assert np.abs(far - [np.sin(5003.0), np.cos(5003.0)]).max() < 1e-7


def test_by_hand() -> None:
    """d = 4: sin t, cos t, sin t/100, cos t/100 — and in halves: sin t, sin t/100, cos t, cos t/100."""
    t = 3.0
    a, b, c, d = np.sin(t), np.cos(t), np.sin(t / 100), np.cos(t / 100)
    np.testing.assert_allclose(sinusoidal(4, 4)[3], [a, b, c, d], rtol=1e-14)
    np.testing.assert_allclose(sinusoidal(4, 4, halves=True)[3], [a, c, b, d], rtol=1e-14)


@pytest.mark.parametrize("kind", ["sinusoidal", "sinusoidal-halves", "learned"])
def test_an_offset_goes_on_where_the_cache_ended(kind: str) -> None:
    table = build_absolute(kind, 17, 6)
    assert torch.equal(table(11)[4:], table(7, 4))
    with pytest.raises(ValueError, match="18 is beyond max_len 17"):
        table(7, 11)


def test_learned_positions_learn_and_waves_do_not() -> None:
    assert [p.shape for p in build_absolute("learned", 17, 6).parameters()] == [(17, 6)]
    assert not list(build_absolute("sinusoidal", 17, 6).parameters())
    assert build_absolute("rotary", 17, 6) is None


def test_rotary_turns_pairs(oracle: ModuleType, same: Callable) -> None:
    x = draw(2, 3, 7, 10)
    same(Rotary(10).rotate(x, 5), oracle.rotate(x.numpy(), 5), 1e-12)
    same(Rotary(10).rotate(x.float(), 5), oracle.rotate(x.numpy(), 5), 1e-6)


def test_rotary_keeps_lengths_and_knows_only_distances() -> None:
    rotary, q, k = Rotary(10), draw(1, 1, 1, 10, seed=1), draw(1, 1, 1, 10, seed=2)
    assert rotary.rotate(q, 40).norm().item() == pytest.approx(q.norm().item(), rel=1e-12)
    products = [(rotary.rotate(q, at) * rotary.rotate(k, at + 3)).sum().item() for at in (0, 11, 500)]
    assert products == pytest.approx([products[0]] * 3, rel=1e-10)
    assert abs(products[0] - (rotary.rotate(q, 0) * rotary.rotate(k, 4)).sum().item()) > 1e-3


def test_alibi(oracle: ModuleType, same: Callable) -> None:
    query = draw(2, 7, 3, 5)
    expected = np.zeros((7, 3, 11))
    for n, q, k in np.ndindex(expected.shape):
        expected[n, q, k] = -(2.0 ** (-8 * (n + 1) / 7)) * abs(k - (q + 4))
    same(Alibi(7).bias(query, 11, 4), expected, 1e-12)


def test_alibi_by_hand() -> None:
    """Eight heads: slopes 1/2, 1/4 … 1/256, as in the paper."""
    assert Alibi(8).slopes.tolist() == [2.0**-i for i in range(1, 9)]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("buckets", "reach"), [(32, 128), (16, 64), (8, 20)])
def test_t5_buckets(buckets: int, reach: int, dtype: torch.dtype, causal: bool, oracle: ModuleType) -> None:
    """Distances −300 … 300 against whole-number arithmetic, edges of the logarithmic buckets included."""
    torch.set_default_dtype(dtype)
    away = torch.arange(-300, 301)
    ours = t5_bucket(away[None], buckets, reach, causal)[0].tolist()
    assert ours == [oracle.t5_bucket(d, buckets, reach, causal) for d in away.tolist()]


@pytest.mark.parametrize("causal", [False, True])
def test_t5_bias_is_looked_up_by_head(causal: bool, oracle: ModuleType, same: Callable, shake: Callable) -> None:
    made = RelativeT5(3, causal=causal)
    shake(made)
    expected = np.zeros((3, 5, 151))
    for n, q, k in np.ndindex(expected.shape):
        expected[n, q, k] = made.table.detach()[oracle.t5_bucket(k - q - 70, causal=causal), n]
    same(made.bias(draw(2, 3, 5, 7), 151, 70), expected, 1e-12)


def test_shaw_clips_far_distances(same: Callable) -> None:
    made, query = RelativeShaw(7, scale=0.3, reach=4), draw(2, 3, 5, 7)
    expected = np.zeros((2, 3, 5, 19))
    for b, n, q, k in np.ndindex(expected.shape):
        row = made.table.detach()[max(-4, min(4, k - (q + 6))) + 4]
        expected[b, n, q, k] = 0.3 * sum(query[b, n, q, h] * row[h] for h in range(7))
    same(made.bias(query, 19, 6), expected, 1e-12)
