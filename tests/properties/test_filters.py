"""Filters keep the sets their names say, whatever the distribution."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from clearhead.decode import filters

few = settings(max_examples=60, deadline=None)
V = 11
LOGITS = st.lists(
    st.floats(-8, 8, width=32).map(lambda x: round(x, 3)), min_size=2 * V, max_size=2 * V, unique=True
).map(lambda numbers: torch.log_softmax(torch.tensor(numbers, dtype=torch.float64).view(2, V), -1))


def kept(log_p: torch.Tensor) -> list[set[int]]:
    return [set((row > -torch.inf).nonzero()[:, 0].tolist()) for row in log_p]


def unchanged_where_kept(before: torch.Tensor, after: torch.Tensor) -> None:
    some = after > -torch.inf
    assert torch.equal(after[some], before[some])


@few
@given(log_p=LOGITS, k=st.integers(0, V + 3))
def test_top_k(log_p: torch.Tensor, k: int) -> None:
    after = filters.top_k(log_p, k)
    unchanged_where_kept(log_p, after)
    for row, found in zip(log_p.tolist(), kept(after), strict=True):
        likeliest = sorted(range(V), key=lambda i: -row[i])
        assert found == set(likeliest[:k] if k else likeliest)


@few
@given(log_p=LOGITS, p=st.floats(0.01, 1.0))
def test_top_p_is_the_smallest_set_with_the_mass(log_p: torch.Tensor, p: float) -> None:
    after = filters.top_p(log_p, p)
    unchanged_where_kept(log_p, after)
    for row, found in zip(log_p.tolist(), kept(after), strict=True):
        mass = sum(math.exp(row[i]) for i in found)
        smallest = min(found, key=lambda i: row[i])
        assert mass >= p - 1e-12
        assert mass - math.exp(row[smallest]) < p + 1e-12 or p == 1.0
        assert all(row[i] < row[smallest] for i in range(V) if i not in found)


@few
@given(log_p=LOGITS, p=st.floats(0.0, 0.99))
def test_min_p(log_p: torch.Tensor, p: float) -> None:
    after = filters.min_p(log_p, p)
    unchanged_where_kept(log_p, after)
    for row, found in zip(log_p.tolist(), kept(after), strict=True):
        ratio = [math.exp(x - max(row)) for x in row]
        assert {i for i in range(V) if ratio[i] > p * (1 + 1e-6)} <= found
        assert found <= {i for i in range(V) if ratio[i] >= p * (1 - 1e-6)}


@few
@given(log_p=LOGITS, t=st.floats(0.1, 10.0))
def test_temperature(log_p: torch.Tensor, t: float) -> None:
    after = filters.temperature(log_p, t)
    torch.testing.assert_close(after.exp().sum(-1), torch.ones(2, dtype=torch.float64))
    flat = after - after[:, :1]
    torch.testing.assert_close(flat, (log_p - log_p[:, :1]) / t, rtol=1e-9, atol=1e-9)


@few
@given(log_p=LOGITS, k=st.integers(1, V), p=st.floats(0.05, 0.99), m=st.floats(0.0, 0.5), t=st.floats(0.3, 3.0))
def test_one_after_the_other_something_is_always_left(
    log_p: torch.Tensor, k: int, p: float, m: float, t: float
) -> None:
    """And the likeliest token is among it."""
    after = filters.min_p(filters.top_p(filters.top_k(filters.temperature(log_p, t), k), p), m)
    for row, found in zip(log_p, kept(after), strict=True):
        assert row.argmax().item() in found
        assert len(found) <= k


@few
@given(
    log_p=LOGITS, n=st.integers(0, 4), history=st.lists(st.lists(st.integers(0, 3), max_size=9), min_size=2, max_size=2)
)
def test_no_repeat_forbids_exactly_what_would_repeat(log_p: torch.Tensor, n: int, history: list[list[int]]) -> None:
    before = log_p.clone()
    after = filters.no_repeat(log_p, history, n, keep=2)
    assert torch.equal(log_p, before)
    unchanged_where_kept(log_p, after)
    for tokens, found in zip(history, kept(after), strict=True):
        runs = {tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)} if n else set()
        repeating = {t for t in range(V) if n and tuple([*tokens, t][-n:]) in runs and len(tokens) + 1 >= n}
        assert found == set(range(V)) - (repeating - {2})


def test_no_repeat_by_hand() -> None:
    log_p = torch.zeros(1, 7)
    assert kept(filters.no_repeat(log_p, [[3, 4, 5, 3, 4]], 3)) == [{0, 1, 2, 3, 4, 6}]
    assert kept(filters.no_repeat(log_p, [[3, 4, 5]], 1, keep=5)) == [{0, 1, 2, 5, 6}]
    assert filters.no_repeat(log_p, [[3, 3]], 0) is log_p


def test_ties_at_the_edge_of_top_k_are_all_kept() -> None:
    log_p = torch.log_softmax(torch.tensor([[1.0, 2.0, 2.0, 0.0, 2.0]]), -1)
    assert kept(filters.top_k(log_p, 2)) == [{1, 2, 4}]


@pytest.mark.parametrize("p", [0.5, 0.9])
def test_top_p_after_top_k_counts_what_is_left(p: float) -> None:
    """Forbidden tokens have no mass; if all that is left has less than p, all of it stays."""
    log_p = torch.log(torch.tensor([[0.4, 0.3, 0.2, 0.1]]))
    after = filters.top_p(filters.top_k(log_p, 2), p)
    assert kept(after) == [{0, 1}]
