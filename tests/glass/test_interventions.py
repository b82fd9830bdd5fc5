"""Every edit of the running model gives what the other path gives with the same number changed; then it is gone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import numpy as np
import pytest
import torch

from clearhead.config import DecodeSettings
from clearhead.decode.decode import decode
from clearhead.errors import UsageError
from clearhead.glass import decoded
from clearhead.glass import interventions as edit
from clearhead.nn import tap

SELF, CROSS, OWN = (
    "encoder.layers.0.self_attention",
    "decoder.layers.0.cross_attention",
    "decoder.layers.0.self_attention",
)
OTHER = [7, 11, 29, 23, 8, 19, 30]
"""Another source of the same length."""

Change = Callable[[str, np.ndarray], np.ndarray]


def at(wanted: str, change: Callable[[np.ndarray], None]) -> Change:
    def go(name: str, numbers: np.ndarray) -> np.ndarray:
        if name == wanted:
            numbers = numbers.copy()
            change(numbers)
        return numbers

    return go


def reweigh(key: int, weight: float, query: int | None, head: int | None, renormalise: bool) -> Callable:
    """The pattern's row by row, in plain loops."""

    def change(pattern: np.ndarray) -> None:
        for h in range(len(pattern)) if head is None else [head]:
            for q in range(pattern.shape[1]) if query is None else [query]:
                row = pattern[h, q]
                if not row.sum():
                    continue
                others = row.sum() - row[key]
                if renormalise and others:
                    row *= (1 - weight) / others
                row[key] = weight

    return change


EDGES = [
    (SELF, 2, 0.0, None, None, True),
    (SELF, 2, 0.0, 4, 1, False),
    (CROSS, 3, 0.0, 2, None, True),
    (CROSS, 0, 0.7, None, 3, True),
    (OWN, 1, 0.0, 3, 2, True),
    (OWN, 0, 0.25, 4, None, False),
]


@pytest.mark.parametrize("edge", EDGES, ids=str)
def test_a_weight_of_the_pattern(
    edge: tuple,
    transformer: dict,
    float64: None,
    glass_model: Callable,
    traced: Callable,
    recompute: Callable,
    same: Callable,
) -> None:
    attention, key, weight, query, head, renormalise = edge
    model = glass_model(**transformer)
    with edit.set_weight(model, attention, key, weight, query, head, renormalise=renormalise):
        trace = traced(model)
    change = at(f"{attention}.pattern", reweigh(key, weight, query, head, renormalise))
    same(trace["logits"], recompute(model, change)["logits"], 1e-12)
    assert len(trace.provenance.edits) == 1 and attention in trace.provenance.edits[0]


def test_cutting_an_edge_is_its_weight_at_zero(
    transformer: dict, float64: None, glass_model: Callable, traced: Callable, recompute: Callable, same: Callable
) -> None:
    """As if the score had been −∞: the softmax of the others, from their scores."""
    model = glass_model(**transformer)
    with edit.cut_edge(model, CROSS, 3, 2, 1):
        trace = traced(model)

    def unread(scores: np.ndarray) -> None:
        scores[1, 2, 3] = -np.inf

    same(trace["logits"], recompute(model, at(f"{CROSS}.scores", unread))["logits"], 1e-12)
    plain = traced(model)
    lost = plain[f"{CROSS}.pattern"][1, 2, 3] * plain[f"{CROSS}.value"][1 * len(plain[f"{CROSS}.value"]) // 4, 3]
    with edit.cut_edge(model, CROSS, 3, 2, 1, renormalise=False):
        same(traced(model)[f"{CROSS}.mixed"][1, 2], plain[f"{CROSS}.mixed"][1, 2] - lost, 1e-12)


@pytest.mark.parametrize("instead", [None, [0.5, -1.0, 2.0, 0.0, 3.0]], ids=["zero", "a vector"])
@pytest.mark.parametrize("attention", [SELF, CROSS, OWN])
def test_a_head_is_cut(
    attention: str,
    instead: list[float] | None,
    transformer: dict,
    float64: None,
    glass_model: Callable,
    traced: Callable,
    recompute: Callable,
    same: Callable,
) -> None:
    model = glass_model(**transformer)
    with edit.cut_head(model, attention, 2, None if instead is None else torch.tensor(instead)):
        trace = traced(model)

    def cut(mixed: np.ndarray) -> None:
        mixed[2] = 0.0 if instead is None else instead

    same(trace["logits"], recompute(model, at(f"{attention}.mixed", cut))["logits"], 1e-12)
    assert not np.allclose(trace["logits"], traced(model)["logits"])


def test_an_activation_comes_from_another_sentence(
    transformer: dict, float64: None, glass_model: Callable, traced: Callable, recompute: Callable, same: Callable
) -> None:
    model = glass_model(**transformer)
    donor, other = traced(model, OTHER), recompute(model, source=OTHER)
    name = "encoder.layers.0.feedforward_residual.after"

    def moved(numbers: np.ndarray) -> None:
        numbers[3], numbers[0] = other[name][2], other[name][5]

    with edit.patch(model, name, donor, {3: 2, 0: 5}):
        same(traced(model)["logits"], recompute(model, at(name, moved))["logits"], 1e-12)

    def one_head(numbers: np.ndarray) -> None:
        numbers[1] = other[f"{OWN}.mixed"][1]

    with edit.patch(model, f"{OWN}.mixed", donor, head=1):
        same(traced(model)["logits"], recompute(model, at(f"{OWN}.mixed", one_head))["logits"], 1e-12)


def test_patching_a_sentence_with_itself_changes_nothing(
    kind: dict, float64: None, glass_model: Callable, traced: Callable
) -> None:
    """At every tap there is, in every kind of network."""
    model = glass_model(**kind)
    trace = traced(model)
    derived = {"ids", "weight", "constant", "probability", "log-probability"}
    names = [n for n in trace if trace.record(n).kind not in derived and not n.endswith((".heads", ".positions"))]
    assert len(names) > 10
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(edit.patch(model, name, trace))
        patched = traced(model)
    assert len(patched.provenance.edits) == len(names)
    assert all(np.array_equal(patched[name], trace[name]) for name in trace)


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_token_is_swapped(
    side: str, float64: None, glass_model: Callable, traced: Callable, same: Callable, source: list, output: list
) -> None:
    model = glass_model(decoder_layers=2)
    ids = {"source": source, "target": output}[side]
    place = 2 if side == "source" else 3  # the target begins with the start token
    with edit.swap_token(model, side, place, 14):
        trace = traced(model)
    changed = list(ids)
    changed[2] = 14
    other = traced(model, changed, output) if side == "source" else traced(model, source, changed)
    same(trace["logits"], other["logits"], 1e-12)
    assert trace.ids("written") == traced(model).ids("written")


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_token_is_not_there(
    side: str,
    transformer: dict,
    float64: None,
    glass_model: Callable,
    traced: Callable,
    recompute: Callable,
    same: Callable,
) -> None:
    model, place = glass_model(**transformer), 2
    with edit.drop_token(model, side, place):
        trace = traced(model)

    def gone(name: str, numbers: np.ndarray) -> np.ndarray:
        numbers = numbers.copy()
        reads = "self_attention" in name and name.startswith("encoder" if side == "source" else "decoder")
        if name == f"{side}_embedding.sum":
            numbers[place] = 0.0
        elif name.endswith(".pattern") and (reads or (side == "source" and "cross_attention" in name)):
            reweigh(place, 0.0, None, None, True)(numbers)
        return numbers

    same(trace["logits"], recompute(model, gone)["logits"], 1e-12)


def test_edits_nest_and_are_said_and_are_gone(glass_model: Callable, traced: Callable) -> None:
    model = glass_model()
    plain = traced(model)
    with edit.cut_head(model, SELF, 0), edit.cut_edge(model, CROSS, 1):
        both = traced(model)
    assert [said.split(" of ")[0].split(",")[0] for said in both.provenance.edits] == ["head 0", CROSS]
    assert edit.edits() == () and not edit.positional()
    again = traced(model)
    assert again.provenance.edits == () and np.array_equal(again["logits"], plain["logits"])
    assert not np.array_equal(both["logits"], plain["logits"])


def test_edits_are_gone_after_an_error(glass_model: Callable, traced: Callable) -> None:
    model = glass_model()
    before = traced(model)["logits"]
    with pytest.raises(RuntimeError, match="ours"), edit.cut_head(model, SELF, 0), edit.drop_token(model, "target", 1):
        raise RuntimeError("ours")
    assert tap._open == 0 and tap._listeners.get() == () and edit.edits() == ()
    assert np.array_equal(traced(model)["logits"], before)


def test_an_edit_at_a_position_holds_while_decoding(glass_model: Callable, source: list[int]) -> None:
    """Decoded by whole passes inside the block: the pass over the output agrees with the decoder at every step."""
    model, settings = glass_model(decoder_layers=2), DecodeSettings(method="greedy", max_extra=6, max_ratio=0.01)
    with edit.cut_edge(model, CROSS, 1, query=2):
        trace = decoded.trace(model, source, settings, max_len=61)
        with pytest.raises(UsageError, match="a decoder with a cache cannot follow"):
            decode(model, [source], settings)
    assert trace.provenance.parity.largest_difference < 1e-4 and not trace.provenance.parity.not_likeliest
    assert (trace[f"{CROSS}.pattern"][:, 2, 1] == 0).all() and (trace[f"{CROSS}.pattern"][:, 1, 1] > 0).all()


def test_an_edit_everywhere_holds_with_a_cache_too(glass_model: Callable, source: list[int]) -> None:
    model, settings = glass_model(), DecodeSettings(method="greedy", max_extra=6, max_ratio=0.01)
    with edit.cut_head(model, CROSS, 1), edit.cut_edge(model, CROSS, 1):
        plain = decode(model, [source], settings)[0][0]
        trace = decoded.trace(model, source, settings, max_len=61)
    assert tuple(trace.ids("written"))[: len(plain.tokens)] == plain.tokens
    assert trace.provenance.parity.largest_difference < 1e-4


WRONG: dict[str, tuple[Callable, str]] = {
    "attention": (lambda m, t: edit.cut_head(m, "decoder.layers.0.crossattention", 0), f"did you mean {CROSS}"),
    "head": (lambda m, t: edit.cut_head(m, SELF, 4), "heads 0 to 3, not 4"),
    "weight": (lambda m, t: edit.set_weight(m, SELF, 1, 1.5), "between 0 and 1, not at 1.5"),
    "side": (lambda m, t: edit.drop_token(m, "left", 1), "source or target, not 'left'"),
    "token": (lambda m, t: edit.swap_token(m, "source", 1, 99), "token 99 does not exist: there are 31"),
    "key": (lambda m, t: edit.cut_edge(m, SELF, 8), "key 8 does not exist: there are 8"),
    "query": (lambda m, t: edit.cut_edge(m, SELF, 1, query=-2), "query -2 does not exist"),
    "place": (lambda m, t: edit.drop_token(m, "source", 50), "place 50 does not exist"),
    "theirs": (lambda m, t: edit.patch(m, "memory", t, {0: 9}), "the other sentence's place 9 does not exist"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_not_there_is_said(name: str, glass_model: Callable, traced: Callable) -> None:
    make, said = WRONG[name]
    model = glass_model()
    trace = traced(model)
    with pytest.raises(UsageError) as error, ExitStack() as stack:
        stack.enter_context(make(model, trace))
        traced(model)
    assert said in str(error.value)
    assert tap._open == 0


def test_sentences_of_unequal_length_need_places(glass_model: Callable, traced: Callable) -> None:
    model = glass_model()
    donor = traced(model, OTHER[:4])
    with pytest.raises(UsageError, match="8 places here and 5 in the other"), edit.patch(model, "memory", donor):
        traced(model)
    with edit.patch(model, "memory", donor, {0: 0}):
        assert len(traced(model)) > 0


def test_a_row_that_may_read_nothing_stays_zeros() -> None:
    pattern = torch.tensor([[[[0.0, 0.0], [0.25, 0.75]]]])
    changed = edit.weight_change("encoder.x", 1, 0.5)(pattern)
    assert changed.tolist() == [[[[0.0, 0.0], [0.5, 0.5]]]]
    assert pattern.tolist() == [[[[0.0, 0.0], [0.25, 0.75]]]]
