"""Decode, then one pass: the same output as without a trace, and the search as the search saw it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from clearhead.config import DecodeSettings
from clearhead.decode.beam import BeamStep
from clearhead.decode.decode import decode
from clearhead.decode.step import EOS
from clearhead.glass.decoded import trace
from clearhead.glass.trace import Trace, open_trace
from clearhead.glass.tracer import NEVER, trace_pass
from clearhead.glass.tree import Tree

LIMITS = {"max_extra": 6, "max_ratio": 0.01}
BEAM = DecodeSettings(method="beam", beam=3, length_penalty=0.7, **LIMITS)
GREEDY = DecodeSettings(method="greedy", **LIMITS)


@pytest.mark.parametrize("settings", [GREEDY, BEAM], ids=["greedy", "beam"])
def test_the_trace_shows_what_decoding_writes(
    settings: DecodeSettings, kind: dict, glass_model: Callable, source: list[int]
) -> None:
    model = glass_model(**kind)
    found, best = trace(model, source, settings, 61), decode(model, [source], settings)[0][0]
    assert found.ids("written") == [*best.tokens, *([EOS] if best.ended else [])]
    assert found.provenance.ended == best.ended
    assert found.provenance.output == ("beam 3" if settings is BEAM else "greedy")
    parity = found.provenance.parity
    assert parity.largest_difference < 1e-4
    assert settings is BEAM or parity.not_likeliest == ()
    assert found.log_probability == pytest.approx(best.log_probability, abs=1e-4)


def test_parity_would_show_another_output(glass_model: Callable, source: list[int]) -> None:
    """Sampled: what was written is not always the likeliest, and the trace says where."""
    model = glass_model()
    found = trace(model, source, DecodeSettings(method="sample", seed=3, **LIMITS), 61)
    logits = found["logits"].copy()
    logits[:, NEVER] = -np.inf
    other = [t for t, word in enumerate(found.ids("written")) if logits[t].argmax() != word]
    assert other and found.provenance.parity.not_likeliest == tuple(other)


def test_the_places_where_another_word_is_likelier(tmp_path: Path, glass_model: Callable, source: list[int]) -> None:
    """Of an output that was given: at every place that is not the likeliest both words, with their probabilities."""
    found = trace_pass(glass_model(), source, [9, 27, 9], target_text="t{}".format)
    places = {place.position: place for place in found.likelier()}
    assert places and len(places) < len(found.written) + 1
    for t, word in enumerate(found.ids("written")):
        row = found["probabilities"][t].copy()
        row[NEVER] = -1
        best = int(row.argmax())
        assert (t in places) == (best != word)
        if t in places:
            place = places[t]
            assert (place.written, place.likeliest, place.likeliest_id) == (f"t{word}", f"t{best}", best)
            assert (place.probability, place.likeliest_probability) == pytest.approx((row[word], row[best]))
            assert f"t{best} {row[best]:.1%}" in str(place) and str(place) in found._repr_html_()
    found.save(tmp_path / "t.safetensors")
    assert open_trace(tmp_path / "t.safetensors").likelier() == found.likelier()


def beginning(found: Trace, at: int) -> list[int]:
    """The tokens on the way to a node."""
    node = found.tree[at]
    return [*(beginning(found, node.parent) if node.parent >= 0 else []), node.token]


def test_the_tree_is_the_search(float64: None, glass_model: Callable, log_p: Callable, source: list[int]) -> None:
    """Every sum of every node by the other path; kept, pruned and finished as the rules of beam search have it."""
    model = glass_model(decoder_layers=2, seed=5)
    found = trace(model, source, BEAM, 61)
    assert {node.fate for node in found.tree} == {"kept", "pruned", "finished", "unfinished"}
    for at, node in enumerate(found.tree):
        tokens = beginning(found, at)
        rows = log_p(model, [*source, EOS], [1, *tokens[:-1]])
        total = sum(rows[t, token] for t, token in enumerate(tokens))
        assert node.log_probability == pytest.approx(total, abs=1e-5)  # the search adds up in float32
        assert node.length == len(tokens) and node.rank == pytest.approx(total / len(tokens) ** 0.7)
        assert node.text == str(node.token)
    for length in {node.length for node in found.tree}:
        step = [node for node in found.tree if node.length == length]
        on = sorted((n.log_probability for n in step if n.fate in ("kept", "unfinished")), reverse=True)
        lost = [n for n in step if n.fate == "pruned" and n.token != EOS]
        assert len(on) == 3 and all(n.log_probability <= on[-1] and n.needed == on[-1] for n in lost)
    parents = {node.parent for node in found.tree}
    assert all(found.tree[at].fate == "kept" for at in parents - {-1})


def test_the_marked_path_is_the_output(glass_model: Callable, source: list[int]) -> None:
    found = trace(glass_model(), source, BEAM, 61)
    ends = [at for at in range(len(found.tree)) if beginning(found, at) == found.ids("written")]
    assert len(ends) == 1
    best = found.tree[ends[0]]
    assert best.fate in ("finished", "unfinished")
    assert best.rank == max(node.rank for node in found.tree if node.fate == best.fate)


def test_printed_tokens_stand_along_the_axes(glass_model: Callable, source: list[int]) -> None:
    found = trace(glass_model(), source, GREEDY, 61, "s{}".format, "t{}".format)
    assert (
        found.source[0] == "s7" and found.target[0] == "t1" and found.written == found.target[1:] + (found.written[-1:])
    )


def test_an_end_below_the_beam_is_pruned() -> None:
    """Of two that may live on, the first two candidates count: an EOS among them is finished, a later one is lost."""
    tree = Tree(2, 1.0, str)
    tree(BeamStep(1, [0], [[0, 0, 0, 0]], [[EOS, 7, EOS, 9]], [[-1.0, -2.0, -3.0, -float("inf")]]))
    tree(BeamStep(2, [0], [[0, 0, 0, 0]], [[11, 12, 13, EOS]], [[-2.5, -2.6, -2.7, -4.0]]))
    assert [node.fate for node in tree.nodes] == ["finished", "kept", "pruned", "kept", "kept", "pruned", "pruned"]
    assert [node.needed for node in tree.nodes[2:]] == [-2.0, None, None, -2.6, -2.6]
    assert {node.parent for node in tree.nodes[3:]} == {1}
    assert [node.fate for node in tree.done()][3:5] == ["unfinished", "unfinished"]
