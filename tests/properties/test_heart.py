"""Smaller laws of the bricks: masks, positions, losses, schedules, products."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from clearhead.config import TrainSettings
from clearhead.nn import masks
from clearhead.nn.attention import attend_explicit, attend_fast
from clearhead.nn.positions import sinusoidal
from clearhead.train.loss import rdrop_cross_entropy, smoothed_cross_entropy
from clearhead.train.schedule import factor

few = settings(max_examples=30, deadline=None)
SEEDS = st.integers(0, 999)


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@few
@given(seed=SEEDS, rows=st.integers(1, 30))
def test_without_smoothing_it_is_cross_entropy(seed: int, rows: int) -> None:
    hidden, weight = draw(rows, 5, seed=seed), draw(17, 5, seed=seed + 1)
    targets = torch.randint(0, 17, (rows,), generator=torch.Generator().manual_seed(seed))
    expected = torch.nn.functional.cross_entropy(hidden @ weight.T, targets, reduction="sum").item()
    assert smoothed_cross_entropy(hidden, weight, targets, 0.0).item() == pytest.approx(expected, rel=1e-12)


@few
@given(seed=SEEDS, smoothing=st.floats(0.0, 0.99), alpha=st.floats(0.0, 10.0))
def test_rdrop_of_equal_passes_is_the_plain_loss_and_never_less(seed: int, smoothing: float, alpha: float) -> None:
    first, second, weight = draw(7, 5, seed=seed), draw(7, 5, seed=seed + 1), draw(17, 5, seed=seed + 2)
    targets = torch.randint(0, 17, (7,), generator=torch.Generator().manual_seed(seed))

    def plain(hidden: torch.Tensor) -> float:
        return smoothed_cross_entropy(hidden, weight, targets, smoothing).item()

    def rdrop(a: torch.Tensor, b: torch.Tensor) -> float:
        return rdrop_cross_entropy(torch.cat((a, b)), weight, targets, smoothing, alpha).item()

    assert rdrop(first, first) == pytest.approx(plain(first), rel=1e-10)
    assert rdrop(first, second) >= (plain(first) + plain(second)) / 2 - 1e-9
    assert rdrop(first, second) == pytest.approx(rdrop(second, first), rel=1e-10)


@few
@given(queries=st.integers(1, 12), past=st.integers(0, 12), reach=st.integers(1, 5), stride=st.integers(2, 5))
def test_masks_say_what_their_names_say(queries: int, past: int, reach: int, stride: int) -> None:
    keys = past + queries
    made = {
        "causal": masks.causal(queries, keys, past),
        "window": masks.window(queries, keys, reach, past),
        "strided": masks.strided(queries, keys, reach, stride, past),
    }
    for q in range(queries):
        for k in range(keys):
            away = k - (past + q)
            assert made["causal"][0, 0, q, k].item() == (away <= 0)
            assert made["window"][0, 0, q, k].item() == (abs(away) <= reach)
            assert made["strided"][0, 0, q, k].item() == (abs(away) <= reach or away % stride == 0)


@few
@given(lengths=st.lists(st.integers(0, 7), min_size=1, max_size=5))
def test_padding_masks_agree(lengths: list[int]) -> None:
    ids = torch.tensor([[9] * n + [0] * (7 - n) for n in lengths])
    assert torch.equal(masks.padding(ids, 0), masks.from_lengths(torch.tensor(lengths), 7))
    assert masks.padding(ids, 0).sum((1, 2, 3)).tolist() == lengths


@few
@given(seed=SEEDS)
def test_masks_are_joined_by_and(seed: int) -> None:
    one, two = draw(2, 1, 1, 7, seed=seed) > 0, draw(1, 1, 5, 7, seed=seed + 1) > 0
    assert torch.equal(masks.both(one, None, two), one & two)
    assert masks.both(None, one) is one
    assert masks.both(None, None) is None


@few
@given(seed=SEEDS, shift=st.floats(-50, 50))
def test_attention_does_not_care_for_a_constant_in_the_scores(seed: int, shift: float) -> None:
    q, k, v = (draw(2, 3, n, 5, seed=seed + n) for n in (5, 7, 7))
    allowed = draw(2, 1, 5, 7, seed=seed) > 0
    bias = torch.full((3, 5, 7), shift, dtype=torch.float64)
    for form in (attend_explicit, attend_fast):
        moved, still = form(q, k, v, allowed, bias, 0.5), form(q, k, v, allowed, None, 0.5)
        torch.testing.assert_close(moved, still, rtol=1e-9, atol=1e-10)


@few
@given(seed=SEEDS)
def test_what_is_masked_may_be_anything(seed: int) -> None:
    """Other keys and values at forbidden places change no bit."""
    q, k, v = (draw(2, 3, n, 5, seed=seed + n) for n in (5, 7, 7))
    allowed = masks.from_lengths(torch.tensor([3, 0]), 7)
    other_k, other_v = k.clone(), v.clone()
    other_k[0, :, 3:], other_v[0, :, 3:], other_k[1], other_v[1] = 1e9, -1e9, 1e9, 1e9
    for form in (attend_explicit, attend_fast):
        assert torch.equal(form(q, k, v, allowed, None, 1.0), form(q, other_k, other_v, allowed, None, 1.0))


@few
@given(k=st.integers(1, 40), halves=st.booleans())
def test_k_positions_on_is_one_linear_map(k: int, halves: bool) -> None:
    """PE(pos + k) = T_k PE(pos): each pair of channels is turned by its own angle, the same everywhere."""
    table = sinusoidal(101, 10, halves=halves).double()
    turn = torch.zeros(10, 10, dtype=torch.float64)
    for i in range(5):
        angle = k / 10000 ** (2 * i / 10)
        sine, cosine = (i, 5 + i) if halves else (2 * i, 2 * i + 1)
        turn[sine, [sine, cosine]] = torch.tensor([math.cos(angle), math.sin(angle)], dtype=torch.float64)
        turn[cosine, [sine, cosine]] = torch.tensor([-math.sin(angle), math.cos(angle)], dtype=torch.float64)
    torch.testing.assert_close(table[k:], table[:-k] @ turn.T, rtol=0, atol=1e-6)


@few
@given(
    schedule=st.sampled_from(["inverse-sqrt", "cosine", "wsd", "constant"]),
    warmup=st.integers(4, 50),
    steps=st.integers(100, 300),
)
def test_schedules_rise_to_1_and_make_no_leaps(schedule: str, warmup: int, steps: int) -> None:
    made = TrainSettings(schedule=schedule, warmup_steps=warmup, max_steps=steps)
    factors = [factor(step, made) for step in range(1, steps + 1)]
    assert max(factors) == factors[warmup - 1] == 1.0
    assert min(factors) >= 0.0
    assert all(a < b for a, b in pairwise(factors[:warmup]))
    assert all(a >= b for a, b in pairwise(factors[warmup - 1 :]))
    assert max(abs(a - b) for a, b in pairwise(factors)) <= 0.25
