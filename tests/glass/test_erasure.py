"""Leave one out is exact: each number is the difference of two passes, made again by the other path."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from clearhead.decode.step import UNK
from clearhead.errors import UsageError
from clearhead.glass.lenses import ranks
from clearhead.glass.lenses.erasure import agreement, leave_one_out, source_share


def slow_erasure(model: object, trace: object, log_p: Callable, how: str) -> tuple[np.ndarray, np.ndarray]:
    """Token by token, each row a pass of its own. (position, source token), (position, target token)."""
    ids, read, written = (trace.ids(side) for side in ("source", "target", "written"))
    filler = [UNK] if how == "unknown" else []
    base = log_p(model, ids, read)
    own = [base[t, word] for t, word in enumerate(written)]
    source = np.zeros((len(written), len(ids)))
    for i in range(len(ids)):
        rows = log_p(model, [*ids[:i], *filler, *ids[i + 1 :]], read)
        source[:, i] = [own[t] - rows[t, word] for t, word in enumerate(written)]
    prefix = np.full((len(written), len(read)), np.nan)
    for j in range(1, len(read)):
        rows = log_p(model, ids, [*read[:j], *filler, *read[j + 1 :]])
        for t in range(j, len(written)):
            prefix[t, j] = own[t] - rows[t if filler else t - 1, written[t]]
    return source, prefix


@pytest.mark.parametrize("how", ["delete", "unknown"])
def test_every_deletion_is_exact(
    how: str, kind: dict, float64: None, glass_model: Callable, traced: Callable, log_p: Callable
) -> None:
    model = glass_model(**kind)
    trace = traced(model)
    found = leave_one_out(model, trace, how)
    source, prefix = slow_erasure(model, trace, log_p, how)
    np.testing.assert_allclose(found.values, source, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.prefix, prefix, rtol=0, atol=1e-10)
    assert found.control.value < 1e-12, "with nothing left out, nothing is lost"
    assert found.labels == (trace.written, trace.source) and found.cost.passes == 9 + 5
    assert np.abs(source).max() > 0.01


def test_an_output_of_one_word(glass_model: Callable, traced: Callable) -> None:
    model = glass_model()
    found = leave_one_out(model, traced(model, output=[]))
    assert found.values.shape == (1, 8) and np.isnan(found.prefix).all()


def test_another_way_to_leave_out_is_refused(glass_model: Callable, traced: Callable) -> None:
    model = glass_model()
    with pytest.raises(UsageError, match="by delete or unknown, not 'hide'"):
        leave_one_out(model, traced(model), "hide")


def test_the_source_s_share(glass_model: Callable, traced: Callable) -> None:
    model = glass_model()
    found = leave_one_out(model, traced(model))
    share = source_share(found)
    assert share.values[0] == 1.0, "before the first word there is nothing but the source"
    for t in range(1, 6):
        ours, own = np.abs(found.values[t]).sum(), np.abs(found.prefix[t, 1 : t + 1]).sum()
        assert share.values[t] == pytest.approx(ours / (ours + own))
    assert share.control.value == pytest.approx(np.mean([8 / (8 + t) for t in range(6)]))


def slow_rank(values: np.ndarray) -> list[float]:
    return [sum(v < x for v in values) + (sum(v == x for v in values) - 1) / 2 for x in values]


def slow_spearman(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.corrcoef(slow_rank(a), slow_rank(b))[0, 1])


def test_ranks_and_their_agreement() -> None:
    a, b = np.array([3.0, 1.0, 3.0, 2.0, 9.0]), np.array([1.0, 1.0, 5.0, 0.0, 7.0])
    assert ranks.ranks(a).tolist() == slow_rank(a) == [2.5, 0, 2.5, 1, 4]
    assert ranks.spearman(a, b) == pytest.approx(slow_spearman(a, b))
    assert ranks.spearman(a, -a) == pytest.approx(-1)
    assert np.isnan(ranks.spearman(a, np.ones(5)))
    rows = ranks.mean_spearman(np.stack((a, a)), np.stack((b, np.ones(5))))
    assert rows == pytest.approx(slow_spearman(a, b)), "a row that is all alike does not count"


def test_agreement_of_attention_and_effect(glass_model: Callable, traced: Callable) -> None:
    model = glass_model(decoder_layers=2)
    trace = traced(model)
    left_out = leave_one_out(model, trace)
    found = agreement(trace, left_out)
    assert found.labels[0] == tuple(f"decoder.layers.{i}.cross_attention" for i in (0, 1))
    effect = np.abs(left_out.values)
    for i, path in enumerate(found.labels[0]):
        for head in range(4):
            rows = [slow_spearman(trace[f"{path}.pattern"][head, t], effect[t]) for t in range(6)]
            assert found.values[i, head] == pytest.approx(np.mean(rows))
    everything = np.mean([trace[f"{path}.pattern"] for path in found.labels[0]], axis=(0, 1))
    assert found.overall == pytest.approx(np.mean([slow_spearman(everything[t], effect[t]) for t in range(6)]))
    assert 0 < found.control.value < 0.6
