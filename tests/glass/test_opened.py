"""A number opens into what it was made of, and the sum is the number: from the trace alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from clearhead.errors import UsageError
from clearhead.glass.direct import direct_logits
from clearhead.glass.opened import check, open_number
from clearhead.glass.tracer import trace_pass
from clearhead.models.seq2seq import Seq2Seq
from clearhead.nn.linear import linear
from clearhead.nn.tap import tap

CROSS = "decoder.layers.0.cross_attention"


def test_everything_that_opens_adds_up(kind: dict, float64: None, glass_model: Callable, traced: Callable) -> None:
    gaps = check(traced(glass_model(**kind)))
    assert {"logits", "probabilities"} <= set(gaps)
    assert max(gaps.values()) < 1e-12, max(gaps, key=gaps.get)


def test_everything_adds_up_in_single_precision(kind: dict, glass_model: Callable, traced: Callable) -> None:
    gaps = check(traced(glass_model(**kind)))
    assert max(gaps.values()) < 1e-5, max(gaps, key=gaps.get)


def test_a_wrong_number_is_noticed(glass_model: Callable, traced: Callable) -> None:
    """Were a score wrong in the trace, its pattern would not open."""
    trace = traced(glass_model())
    values = trace[f"{CROSS}.scores"].copy()
    values[0, 0, 0] += 1.0
    trace._records[f"{CROSS}.scores"] = type(trace.record(f"{CROSS}.scores"))(
        f"{CROSS}.scores", ("head", "query", "key"), "score", values, ()
    )
    gaps = check(trace, most=1000)
    assert gaps[f"{CROSS}.pattern"] > 0.01 and gaps[f"{CROSS}.scores"] > 0.01


def test_a_score_opens_into_its_products(glass_model: Callable, traced: Callable) -> None:
    model = glass_model(n_kv_heads=2)
    trace = traced(model)
    opened = open_number(trace, f"{CROSS}.scores", 3, 2, 5)
    assert opened.address == f"{CROSS}.scores[3,2,5]" and len(opened.terms) == 6
    query, key = trace[f"{CROSS}.query"][3, 2], trace[f"{CROSS}.key"][1, 5]  # heads 2 and 3 share keys 1
    assert [term.value for term in opened.terms] == pytest.approx((query.astype(float) * key).tolist())
    assert opened.parts["scale"] == pytest.approx(6**-0.5) and abs(opened.gap) < 1e-5


def test_what_may_not_be_read_opens_as_nothing(glass_model: Callable, traced: Callable) -> None:
    opened = open_number(traced(glass_model()), "decoder.layers.0.self_attention.scores", 0, 1, 3)
    assert opened.value == opened.total == -np.inf and opened.gap == 0.0 and not opened.parts["allowed"]


def test_a_probability_opens_into_itself_and_the_rest(glass_model: Callable, traced: Callable) -> None:
    opened = open_number(traced(glass_model()), "probabilities", 2, 7)
    assert [term.what for term in opened.terms] == ["token 7", "the rest"] and abs(opened.gap) < 1e-6


def test_what_does_not_open_says_why(glass_model: Callable, traced: Callable) -> None:
    trace = traced(glass_model())
    with pytest.raises(UsageError, match=r"weights that a trace does not hold[\s\S]*decoder.layers.0.cross_residual"):
        open_number(trace, f"{CROSS}.query", 0, 0, 0)
    with pytest.raises(UsageError, match="there is none at"):
        open_number(trace, "logits", 0, 31)
    with pytest.raises(UsageError, match="token 30 is not what was written at position 0"):
        open_number(trace, "logits", 0, 30)


def test_a_logit_by_embedding_head_and_layer(
    kind: dict, float64: None, glass_model: Callable, traced: Callable
) -> None:
    model = glass_model(**kind)
    trace = traced(model)
    if kind.get("kind") == "recurrent":
        with pytest.raises(UsageError, match="no residual stream"):
            direct_logits(trace)
        return
    found = direct_logits(trace)
    logits = [trace["logits"][t, word] for t, word in enumerate(trace.ids("written"))]
    np.testing.assert_allclose(found.values.sum(0), logits, rtol=0, atol=1e-10)
    assert found.gap < 1e-10
    heads = [name for name in found.labels[0] if name.startswith(f"{CROSS}.heads[")]
    assert len(heads) == 4 and found.labels[0][0] == "target_embedding.tokens"


def test_why_this_word_rather_than_that(float64: None, glass_model: Callable, traced: Callable) -> None:
    model = glass_model(decoder_layers=2)
    trace = traced(model)
    table = model.output_weight.detach().numpy()
    rows = table[trace.ids("written")] - table[[4] * 6]
    found = direct_logits(trace, rows)
    difference = [trace["logits"][t, w] - trace["logits"][t, 4] for t, w in enumerate(trace.ids("written"))]
    np.testing.assert_allclose(found.values.sum(0), difference, rtol=0, atol=1e-10)


def test_several_words_of_each_place_at_once(float64: None, glass_model: Callable, traced: Callable) -> None:
    """As if each had been asked for by itself; the output's own bias for a word is one of its parts."""
    model = glass_model(decoder_layers=2)
    trace, table = traced(model), model.output_weight.detach().numpy()
    words = np.array([[4, 9, 27]] * len(trace.written)) + np.arange(len(trace.written))[:, None] % 3
    found = direct_logits(trace, table[words])
    assert found.axes == ("part", "position", "word") and found.values.shape[1:] == words.shape and found.gap < 1e-10
    for w in range(3):
        np.testing.assert_allclose(found.values[..., w], direct_logits(trace, table[words[:, w]]).values, atol=1e-12)
    np.testing.assert_allclose(found.values.sum(0), np.take_along_axis(trace["logits"], words, 1), atol=1e-10)
    biased_parts = direct_logits(trace, table[words], words / 10)
    np.testing.assert_allclose(biased_parts.values[-1], words / 10)


def test_a_word_s_own_bias_is_one_of_the_terms(
    monkeypatch: pytest.MonkeyPatch, float64: None, glass_model: Callable, traced: Callable
) -> None:
    model = glass_model()
    bias = torch.linspace(-1, 1, 31)
    monkeypatch.setattr(type(model), "output_bias", property(lambda self: bias))
    monkeypatch.setattr(type(model), "logits", lambda self, hidden: biased(self, hidden, bias))
    trace = trace_pass(model, [7, 11, 8], [9, 27])
    assert trace.record("written_bias").computed_from == ("written_ids",)
    assert max(check(trace).values()) < 1e-12
    word = trace.ids("written")[1]
    assert open_number(trace, "logits", 1, word).terms[-1].value == pytest.approx(bias[word].item())
    found = direct_logits(trace)
    np.testing.assert_allclose(found.values.sum(0), [trace["logits"][t, w] for t, w in enumerate(trace.ids("written"))])


def biased(model: Seq2Seq, hidden: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Some public models add a number to each word's logit; the tap says it with the number in it."""
    return tap(model, "logits", linear(tap(model, "hidden", hidden), model.output_weight) + bias)
