"""Word by word with a cache = the whole target at once, for every kind of model; also when hypotheses move."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch

from clearhead.models.protocol import EncoderDecoder
from clearhead.nn.attention import KeyValue
from clearhead.nn.cache import Growing

POSITIONS = (
    "sinusoidal",
    "sinusoidal-halves",
    "learned",
    "relative-shaw",
    "relative-t5",
    "rotary",
    "alibi",
    "none",
)
PATTERNS: tuple[dict[str, int], ...] = (
    {},
    {"attention_window": 2},
    {"attention_window": 1, "attention_stride": 3},
)
"""Everything; a window; a window and every third token."""


def combinations() -> list[dict[str, Any]]:
    """Every kind of positions × pattern; norms, orders and shared heads take turns."""
    turns = itertools.cycle(itertools.product(("pre", "post"), ("layer", "rms", "batch"), (1, 2)))
    return [
        {"positions": p, **sparse, "norm_order": order, "norm": norm, "n_kv_heads": heads}
        for (p, sparse), (order, norm, heads) in zip(itertools.product(POSITIONS, PATTERNS), turns, strict=False)
    ]


def words(given: dict[str, Any]) -> str:
    return " ".join(str(value) for value in given.values())


def in_steps(model: EncoderDecoder, source: torch.Tensor, target: torch.Tensor, sizes: list[int]) -> torch.Tensor:
    state = model.start(model.encode(source))
    return torch.cat([model.step(tokens, state) for tokens in target.split(sizes, 1)], 1)


@pytest.mark.parametrize("given", combinations(), ids=words)
@torch.inference_mode()
def test_step_by_step_is_the_whole(given: dict[str, Any], tiny_model: Callable, ids: Callable) -> None:
    """In float64 to the last digits; in float32 within 1e-5, unless batch norm lets the untrained numbers grow."""
    model = tiny_model(decoder_layers=2, **given)
    source, target = ids(3, 7, lengths=[7, 2, 5]), ids(3, 19, seed=1)
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.float64, 1e-11)):
        whole = model.to(dtype)(source, target)
        if dtype == torch.float32 and given["norm"] == "batch":
            continue
        for sizes in ([1] * 19, [4, 1, 1, 11, 2]):
            assert (in_steps(model, source, target, sizes) - whole).abs().max() < tolerance * whole.abs().max()


@pytest.mark.parametrize("kind", ["seq2seq", "recurrent", "convolutional"])
@torch.inference_mode()
def test_hypotheses_move_and_sources_leave(kind: str, tiny_model: Callable, ids: Callable) -> None:
    """What beam search does to a state: widen, reorder, drop a source. Each row goes on as if it had stood alone."""
    model = tiny_model(kind=kind)
    source = ids(3, 7, lengths=[7, 2, 5])
    first, more, last = ids(3, 1, seed=1), ids(6, 1, seed=2), ids(4, 1, seed=3)
    state = model.start(model.encode(source))
    model.step(first, state)
    state.reorder(torch.tensor([0, 0, 1, 1, 2, 2]))  # two hypotheses each
    model.step(more, state)
    parents = torch.tensor([1, 0, 2, 2, 5, 4])
    state.reorder(parents)
    kept = torch.tensor([0, 1, 4, 5])
    state.keep(torch.tensor([0, 2]), kept)
    stepped = model.step(last, state)[:, 0]
    rows = parents[kept]
    target = torch.cat((first.repeat_interleave(2, 0)[rows], more[rows], last), 1)
    whole = model(source.repeat_interleave(2, 0)[rows], target)[:, -1]
    assert (stepped - whole).abs().max() < 1e-5


@torch.inference_mode()
def test_all_sources_may_leave(tiny_model: Callable, ids: Callable) -> None:
    model = tiny_model()
    state = model.start(model.encode(ids(3, 7, lengths=[7, 2, 5])))
    model.step(ids(3, 1), state)
    nobody = torch.empty(0, dtype=torch.long)
    state.keep(nobody, nobody)
    assert state.memory[0].key.shape[0] == 0


def test_room_is_kept_ahead() -> None:
    """Adding a word copies nothing old while there is room; what is handed out holds written words only."""
    past, words = Growing(), [KeyValue(torch.randn(2, 3, 1, 5), torch.randn(2, 3, 1, 7)) for _ in range(40)]
    places = set()
    for count, new in enumerate(words, 1):
        seen = past.append(new)
        places.add(past.key.data_ptr())
        assert seen.key.shape[2] == seen.value.shape[2] == past.length == count
    assert torch.equal(seen.key, torch.cat([w.key for w in words], 2))
    assert torch.equal(seen.value, torch.cat([w.value for w in words], 2))
    assert len(places) <= 3
