"""What holds for every Transformer here, whatever its kind and its numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from clearhead.models.build import build
from clearhead.models.encoder import Encoder
from clearhead.nn.masks import padding
from clearhead.nn.tap import listen
from clearhead.train.weights import copy_weights, put_weights

few = settings(max_examples=20, deadline=None)

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-13}
"""Of the largest number. In float64 nothing but a real leak is seen; in float32 it is what is promised: how many places
there are decides the order in which the library adds up."""

SHAPES = st.fixed_dictionaries(
    {
        "positions": st.sampled_from(
            ["sinusoidal", "sinusoidal-halves", "learned", "relative-shaw", "relative-t5", "rotary", "alibi", "none"]
        ),
        "norm": st.sampled_from(["layer", "rms"]),
        "norm_order": st.sampled_from(["pre", "post"]),
        "n_kv_heads": st.sampled_from([1, 2]),
        "activation": st.sampled_from(["relu", "gelu", "relu2", "swiglu", "geglu"]),
        "bias": st.booleans(),
        "attention_window": st.sampled_from([None, 1, 2]),
        "seed": st.integers(0, 5),
    }
)


@few
@given(shape=SHAPES, t=st.integers(1, 6), seed=st.integers(0, 99))
@torch.inference_mode()
def test_the_future_never_changes_the_past(
    shape: dict[str, Any], t: int, seed: int, tiny_model: Callable, ids: Callable
) -> None:
    """Bit for bit: other words from place t on, the same hidden states before it."""
    model, source = tiny_model(decoder_layers=2, **shape), ids(3, 5, lengths=[5, 2, 3])
    one, other = ids(3, 7, seed=seed), ids(3, 7, seed=seed + 1)
    other[:, :t] = one[:, :t]
    a, b = model(source, one), model(source, other)
    assert torch.equal(a[:, :t], b[:, :t])
    changed = (one != other).any(1)
    assert (a != b).flatten(1).any(1)[changed].all()


@few
@given(shape=SHAPES, more=st.integers(1, 30), longer=st.integers(1, 9), seed=st.integers(0, 99))
@torch.inference_mode()
def test_padding_changes_nothing(
    shape: dict[str, Any], more: int, longer: int, seed: int, tiny_model: Callable, ids: Callable
) -> None:
    """However much of it stands behind source and target."""
    source, target, pad = ids(3, 7, seed, [7, 2, 5]), ids(3, 5, seed + 1), torch.nn.functional.pad
    for dtype, tolerance in TOLERANCE.items():
        model = tiny_model(**shape).to(dtype)
        states = model(source, target)
        padded = model(pad(source, (0, more)), pad(target, (0, longer)))[:, :5]
        assert (states - padded).abs().max() <= tolerance * max(1.0, states.abs().max().item())


@few
@given(shape=SHAPES, seed=st.integers(0, 99))
@torch.inference_mode()
def test_the_neighbours_in_a_batch_change_nothing(
    shape: dict[str, Any], seed: int, tiny_model: Callable, ids: Callable
) -> None:
    source, target, order = ids(5, 7, seed, [7, 2, 5, 1, 7]), ids(5, 5, seed + 1), torch.tensor([3, 0, 4])
    for dtype, tolerance in TOLERANCE.items():
        model = tiny_model(**shape).to(dtype)
        states = model(source, target)
        found = model(source[order], target[order])
        assert (states[order] - found).abs().max() <= tolerance * max(1.0, states.abs().max().item())


@few
@given(shape=SHAPES, lengths=st.lists(st.integers(0, 7), min_size=3, max_size=3))
@torch.inference_mode()
def test_rows_of_the_pattern_sum_to_1_and_masked_weights_are_0(
    shape: dict[str, Any], lengths: list[int], tiny_model: Callable, ids: Callable
) -> None:
    """Exactly 0; and a row with nothing to attend to is all 0."""
    model, heard = tiny_model(**shape), {}
    source = ids(3, 7, lengths=lengths)
    with listen(model, lambda name, t: heard.setdefault(name, t), lambda name: name.endswith(("scores", "pattern"))):
        model(source, ids(3, 5))
    assert len(heard) == 6
    for name, pattern in heard.items():
        if not name.endswith("pattern"):
            continue
        forbidden = heard[name.replace("pattern", "scores")] == -torch.inf
        assert (pattern[forbidden] == 0).all()
        full = (~forbidden).any(-1)
        assert (pattern.sum(-1)[full] - 1).abs().max().item() < 1e-6 if full.any() else True
        if "cross" in name:
            assert torch.equal(full[:, 0, 0], torch.tensor(lengths) > 0)


@few
@given(shape=SHAPES, order=st.permutations(range(7)), seed=st.integers(0, 99))
@torch.inference_mode()
def test_without_positions_the_encoder_knows_no_order(
    shape: dict[str, Any], order: list[int], seed: int, tiny_model: Callable, ids: Callable
) -> None:
    """Permuted words give permuted states."""
    free = {**shape, "positions": "none", "attention_window": None}
    model, source, places = tiny_model(encoder_layers=2, **free).double(), ids(2, 7, seed), torch.tensor(order)
    states = model.encode(source).states
    found = model.encode(source[:, places]).states
    torch.testing.assert_close(found, states[:, places], rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    "positions",
    ["sinusoidal", "sinusoidal-halves", "learned", "relative-shaw", "relative-t5", "rotary", "alibi"],
)
@torch.inference_mode()
def test_with_positions_it_does(positions: str, tiny_model: Callable, ids: Callable) -> None:
    model, source, places = tiny_model(positions=positions), ids(2, 7), torch.tensor([3, 1, 0, 2, 6, 5, 4])
    states, found = model.encode(source).states, model.encode(source[:, places]).states
    assert (found - states[:, places]).abs().max() > 1e-2


@few
@given(
    tie=st.sampled_from(["all", "target", "none"]),
    positions=st.sampled_from(["sinusoidal", "learned", "rotary"]),
    seed=st.integers(0, 9),
)
def test_tied_weights_share_storage_also_after_loading(
    tie: str, positions: str, seed: int, tiny_model: Callable
) -> None:
    model, other = (
        tiny_model(tie=tie, positions=positions, seed=seed),
        tiny_model(tie=tie, positions=positions, seed=99),
    )
    put_weights(other, copy_weights(model))
    for one in (model, other):
        source, target = one.source_embedding.table.weight, one.target_embedding.table.weight
        output = one.output_weight
        assert (source.data_ptr() == target.data_ptr()) == (tie == "all")
        assert (target.data_ptr() == output.data_ptr()) == (tie != "none")
        assert len({p.data_ptr() for p in one.parameters()}) == len(list(one.parameters()))
    for name, tensor in other.state_dict().items():
        assert torch.equal(tensor, model.state_dict()[name]), name


@few
@given(seed=st.integers(0, 2**62))
def test_first_weights_follow_from_the_seed_alone(seed: int, tiny_settings: Callable) -> None:
    torch.manual_seed(11)
    before = torch.random.get_rng_state()
    one = build(tiny_settings(), 31, 31, seed)
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.manual_seed(12)
    two, three = build(tiny_settings(), 31, 31, seed), build(tiny_settings(), 31, 31, seed + 1)
    assert torch.equal(one.output_weight, two.output_weight)
    assert not torch.equal(one.output_weight, three.output_weight)


@few
@given(shape=SHAPES, seed=st.integers(0, 99))
@torch.inference_mode()
def test_an_encoder_can_be_used_alone(shape: dict[str, Any], seed: int, tiny_settings: Callable, ids: Callable) -> None:
    """Only its own input decides: no state is left behind by a pass."""
    shape = {name: value for name, value in shape.items() if name != "seed"}
    encoder, x = Encoder(tiny_settings(**shape)), torch.randn(3, 7, 22)
    allowed = padding(ids(3, 7, lengths=[7, 2, 5]), 0)
    first = encoder(x, allowed)
    encoder(torch.randn(2, 3, 22), None)
    assert torch.equal(encoder(x, allowed), first)
