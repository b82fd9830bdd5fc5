"""The names of all taps, pinned: renaming one is a decision. And what a tap can do."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from clearhead.nn.attention import Attention
from clearhead.nn.positions import ScorePositions
from clearhead.nn.tap import heard, listen, tap

ATTENTION = ("key", "mixed", "out", "pattern", "products", "query", "scores", "value")
RESIDUAL = ("added", "after", "before", "norm.in", "norm.out")
EMBEDDING = ("positions", "sum", "tokens")
PINNED = {
    *(f"source_embedding.{name}" for name in EMBEDDING),
    *(f"target_embedding.{name}" for name in EMBEDDING),
    *(f"encoder.layers.0.self_attention.{name}" for name in ATTENTION),
    *(f"encoder.layers.0.attention_residual.{name}" for name in RESIDUAL),
    *(f"encoder.layers.0.feedforward.{name}" for name in ("hidden", "out")),
    *(f"encoder.layers.0.feedforward_residual.{name}" for name in RESIDUAL),
    *(f"encoder.norm.{name}" for name in ("in", "out")),
    *(f"decoder.layers.0.self_attention.{name}" for name in ATTENTION),
    *(f"decoder.layers.0.self_residual.{name}" for name in RESIDUAL),
    *(f"decoder.layers.0.cross_attention.{name}" for name in ATTENTION),
    *(f"decoder.layers.0.cross_residual.{name}" for name in RESIDUAL),
    *(f"decoder.layers.0.feedforward.{name}" for name in ("hidden", "out")),
    *(f"decoder.layers.0.feedforward_residual.{name}" for name in RESIDUAL),
    *(f"decoder.norm.{name}" for name in ("in", "out")),
    "memory",
    "hidden",
    "logits",
}
Heard = list[tuple[str, torch.Tensor]]


def run(model: torch.nn.Module, ids: Callable) -> torch.Tensor:
    return model.logits(model(ids(3, 7), ids(3, 5, seed=1)))


def all_taps(model: torch.nn.Module, ids: Callable) -> Heard:
    found: Heard = []

    def hear(name: str, t: torch.Tensor) -> torch.Tensor:
        found.append((name, t))
        return t

    with listen(model, hear):
        run(model, ids)
    return found


def test_the_list_is_complete_and_each_is_heard_once(tiny_model: Callable, ids: Callable) -> None:
    names = [name for name, _ in all_taps(tiny_model(), ids)]
    assert sorted(names) == sorted(PINNED)


def test_without_absolute_positions_or_last_norms_their_taps_are_gone(tiny_model: Callable, ids: Callable) -> None:
    names = {name for name, _ in all_taps(tiny_model(positions="rotary", norm_order="post"), ids)}
    gone = {"source_embedding.positions", "target_embedding.positions"}
    gone |= {f"{side}.norm.{end}" for side in ("encoder", "decoder") for end in ("in", "out")}
    assert names == PINNED - gone


@pytest.mark.parametrize("positions", ["alibi", "relative-t5", "relative-shaw"])
def test_positions_inside_the_scores_are_heard_as_their_bias(
    tiny_model: Callable, ids: Callable, positions: str
) -> None:
    names = {name for name, _ in all_taps(tiny_model(positions=positions), ids)}
    tables = {"source_embedding.positions", "target_embedding.positions"}
    assert names == PINNED - tables | {f"{side}.layers.0.self_attention.bias" for side in ("encoder", "decoder")}


def test_shapes_of_what_is_heard(tiny_model: Callable, ids: Callable) -> None:
    """B 3, S 7, T 5, D 22, N 2 heads (G 1 of keys and values), H 10, U 11, F 17, V 31."""
    shapes = {name: tuple(t.shape) for name, t in all_taps(tiny_model(n_kv_heads=1), ids)}
    where = "decoder.layers.0.cross_attention"
    assert {name.rpartition(".")[2]: shape for name, shape in shapes.items() if name.startswith(where)} == {
        "query": (3, 2, 5, 10),
        "key": (3, 1, 7, 10),
        "value": (3, 1, 7, 11),
        "products": (3, 2, 5, 7),
        "scores": (3, 2, 5, 7),
        "pattern": (3, 2, 5, 7),
        "mixed": (3, 2, 5, 11),
        "out": (3, 5, 22),
    }
    assert shapes["source_embedding.positions"] == (7, 22)
    assert shapes["decoder.layers.0.feedforward.hidden"] == (3, 5, 17)
    assert shapes["logits"] == (3, 5, 31)


@pytest.mark.parametrize("name", sorted(PINNED))
def test_what_a_tap_returns_goes_on(name: str, tiny_model: Callable, ids: Callable) -> None:
    """Another tensor in its place changes the answer, at every tap: nothing is only for show."""
    model = tiny_model()
    silent = run(model, ids)

    def change(heard_name: str, t: torch.Tensor) -> torch.Tensor:
        assert heard_name == name
        return t.where(t == -torch.inf, 3 * t + torch.linspace(0, 1, t.shape[-1]))

    with listen(model, change, lambda wanted: wanted == name):
        changed = run(model, ids)
    assert (changed - silent).abs().max() > 1e-3
    assert torch.equal(run(model, ids), silent)


def test_a_pattern_can_be_dictated(tiny_model: Callable, ids: Callable) -> None:
    """Everybody reads from the first word alone: `mixed` is that word's value."""
    model, found = tiny_model(), {}

    def first_only(name: str, t: torch.Tensor) -> torch.Tensor:
        if name.endswith("pattern"):
            return torch.nn.functional.one_hot(torch.zeros(t.shape[:-1], dtype=torch.long), t.shape[-1]).to(t.dtype)
        return found.setdefault(name.rpartition(".")[2], t)

    with listen(model, first_only, lambda name: name.startswith("encoder.layers.0.self_attention")):
        run(model, ids)
    torch.testing.assert_close(found["mixed"], found["value"][:, :, :1].expand_as(found["mixed"]))


def test_only_what_is_wanted_is_heard(tiny_model: Callable, ids: Callable) -> None:
    model, names = tiny_model(), []
    with listen(model, lambda name, t: (names.append(name), t)[1], lambda name: "encoder.norm" in name):
        run(model, ids)
    assert names == ["encoder.norm.in", "encoder.norm.out"]


def test_listening_ends_with_its_block_and_after_errors(tiny_model: Callable, ids: Callable) -> None:
    model, names = tiny_model(), []

    def hear(name: str, t: torch.Tensor) -> torch.Tensor:
        names.append(name)
        raise KeyError(name)

    with pytest.raises(KeyError, match=r"source_embedding\.tokens"), listen(model, hear):
        run(model, ids)
    assert names == ["source_embedding.tokens"]
    run(model, ids)
    assert names == ["source_embedding.tokens"]
    assert not heard(model, "logits")


def test_listeners_within_one_another_all_hear_the_outermost_first(tiny_model: Callable) -> None:
    """What an outer one puts in is what an inner one sees: an intervention outside, a tracer inside."""
    model, names = tiny_model(), []

    def ear(label: str) -> Callable[[str, torch.Tensor], torch.Tensor]:
        return lambda name, t: (names.append(f"{label} {name} {t.item():g}"), t + 1)[1]

    with listen(model, ear("outer")):
        with listen(model, ear("inner")):
            assert tap(model, "x", torch.zeros(1)).item() == 2
        assert tap(model, "x", torch.zeros(1)).item() == 1
    assert names == ["outer x 0", "inner x 1", "outer x 0"]


def test_a_brick_alone_has_short_names() -> None:
    made, names = Attention(23, 2, 5, 7, 1, ScorePositions()), []
    with listen(made, lambda name, t: (names.append(name), t)[1]):
        made(torch.zeros(3, 5, 23))
    assert sorted(names) == sorted(ATTENTION)


def test_nothing_is_left_on_the_modules(tiny_model: Callable, ids: Callable) -> None:
    model = tiny_model()
    before = {path: set(vars(module)) for path, module in model.named_modules()}
    all_taps(model, ids)
    assert {path: set(vars(module)) for path, module in model.named_modules()} == before
