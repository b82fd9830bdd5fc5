"""The compiled training pass = the bricks in bf16, as near to float32 as they are; and taken only where it may be."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from clearhead.config import TrainSettings
from clearhead.data.batching import Batch, assemble, ragged
from clearhead.data.synthetic import reverse
from clearhead.models.build import build
from clearhead.models.seq2seq import Seq2Seq
from clearhead.native import learning, loops, rows
from clearhead.native.build import OFF, library
from clearhead.nn.linear import products_in
from clearhead.nn.tap import listen
from clearhead.train.blame import first_bad_module
from clearhead.train.gradients import Gradients, compute_gradients, piece_loss
from clearhead.train.machine import this_machine
from clearhead.verbs.quiet import Quiet
from clearhead.verbs.train import train

LOOPS: dict[str, Any] = {"d_model": 32, "d_ff": 48}
"""Widths the loops take; the other sizes are odd, as everywhere."""
SHAPES: tuple[dict[str, Any], ...] = (
    {"norm_order": "post", "decoder_layers": 2, "encoder_layers": 3, "activation": "relu"},
    {"norm": "rms", "n_heads": 4, "n_kv_heads": 2, "activation": "relu2", "tie": "all"},
    {"bias": False, "scale_scores": False, "activation": "relu2", "tie": "target", "encoder_layers": 2},
    {"tie": "none", "embedding_scale": False, "d_head": 40, "d_value": 37, "d_ff": 80, "activation": "relu"},
    {"norm": "rms", "norm_order": "post", "n_heads": 3, "n_kv_heads": 1, "bias": False, "d_head": 16, "d_value": 24},
)
KNOWN = [
    {"positions": p, "dropout": rate, **SHAPES[(2 * i + j) % len(SHAPES)]}
    for i, p in enumerate(learning.POSITIONS)
    for j, rate in enumerate((0.0, 0.2))
]
UNKNOWN: tuple[dict[str, Any], ...] = (
    *({name: 0.1} for name in ("attention_dropout", "activation_dropout", "word_dropout")),
    *({"activation": name} for name in ("gelu", "swiglu", "geglu")),
    *({"positions": name} for name in ("alibi", "relative-t5", "relative-shaw")),
    {"norm": "batch"},
    {"attention_window": 2},
    {"attention_window": 2, "attention_stride": 3},
    {"d_model": 24},
    {"d_ff": 40},
    {"kind": "recurrent"},
    {"kind": "convolutional"},
)
BF16, FLOAT32 = TrainSettings(precision="bf16"), TrainSettings(precision="float32")


def words(given: dict[str, Any]) -> str:
    return " ".join(str(value) for value in given.values())


def batch(rows: int = 7, seed: int = 0, width: int = 34) -> Batch:
    """Rows of different lengths, one of each kind as long as allowed and one of a single word."""
    generator = np.random.default_rng(seed)

    def side() -> list[np.ndarray]:
        return [generator.integers(5, 31, n) for n in (width, 0, *generator.integers(1, width + 1, rows - 2))]

    return assemble(ragged(side()), ragged(side()), np.arange(rows))


@pytest.fixture
def trained(tiny_settings: Callable) -> Callable[..., Seq2Seq]:
    """A model as it begins, but for biases and norms, whose zeros and ones would hide mistakes."""

    def make(**given: Any) -> Any:
        model, generator = build(tiny_settings(**{**LOOPS, **given}), 31, 31, 3), torch.Generator().manual_seed(5)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() == 1:
                    parameter += 0.1 * torch.randn(parameter.shape, generator=generator)
        return model.train()

    return make


@contextlib.contextmanager
def bricks_alone() -> Iterator[None]:
    """As where nothing has been compiled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loops, "library", lambda: None)
        yield


@contextlib.contextmanager
def switched_off() -> Iterator[None]:
    """By whoever starts the program."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(OFF, "0")
        library.cache_clear()
        yield
    library.cache_clear()


@contextlib.contextmanager
def on_threads(count: int) -> Iterator[None]:
    """However few numbers there are."""
    torch.set_num_threads(count)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(loops, "SHARE", 1)
            yield
    finally:
        torch.set_num_threads(1)


def taken(
    model: Seq2Seq, settings: TrainSettings = BF16, batches: tuple[Batch, ...] = (batch(),), **given: Any
) -> tuple[Gradients, dict[str, Tensor]]:
    found = compute_gradients(model, batches, settings, 3, **given)
    return found, {name: p.grad.clone() for name, p in model.named_parameters()}


def knows(model: Any, dtype: torch.dtype = torch.bfloat16) -> bool:
    with products_in(dtype):
        return learning.knows(model)


def error(found: Tensor, exact: Tensor) -> float:
    """Relative."""
    return ((found - exact).norm() / exact.norm()).item()


def as_near_as_the_bricks(model: Seq2Seq, one: Batch, threads: int = 1, **settings: Any) -> None:
    """Loss and gradients in bf16 are off from float32 no more than those of the bricks in bf16, with the same masks.

    A gradient alone may be luckier or unluckier than the bricks', all together hardly. Those of key biases are nearly
    zero in exact arithmetic, where nothing turns: a softmax does not see what is added to all scores.
    """
    bf16, float32 = BF16.model_copy(update=settings), FLOAT32.model_copy(update=settings)
    with bricks_alone():
        assert not knows(model)
        exact, expected = taken(model, float32, (one,))
        bricks, theirs = taken(model, bf16, (one,))
    assert knows(model)
    with on_threads(threads):
        found, ours = taken(model, bf16, (one,))
    assert abs(found.loss - exact.loss) <= 1.3 * abs(bricks.loss - exact.loss) + 2e-3 * exact.loss
    assert found.norm == pytest.approx(exact.norm, rel=0.02)
    errors = []
    for name, gradient in expected.items():
        beside = expected[name.replace("key.bias", "query.bias")].norm()
        if gradient.norm() < 1e-4 * beside:
            assert ours[name].norm() <= 0.05 * beside and theirs[name].norm() <= 0.05 * beside, name
            continue
        errors.append((error(ours[name], gradient), error(theirs[name], gradient)))
        assert errors[-1][0] <= 3 * errors[-1][1] + 0.005, (name, *errors[-1])
    all_ours, all_theirs = (sum(e**2 for e in side) ** 0.5 for side in zip(*errors, strict=True))
    assert all_ours <= 1.5 * all_theirs, (all_ours, all_theirs)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("given", KNOWN, ids=words)
def test_the_whole_pass_is_that_of_the_bricks(
    given: dict[str, Any], threads: int, trained: Callable, compiled: Path
) -> None:
    as_near_as_the_bricks(trained(**given), batch(), threads)


@pytest.mark.parametrize("given", KNOWN[1:4], ids=words)
def test_rdrop_is_that_of_the_bricks(given: dict[str, Any], trained: Callable, compiled: Path) -> None:
    as_near_as_the_bricks(trained(**given), batch(), rdrop=1.0)


@pytest.mark.parametrize("given", KNOWN[:3], ids=words)
def test_a_source_without_a_token(given: dict[str, Any], trained: Callable, compiled: Path) -> None:
    one = batch()
    one.source[2] = 0
    as_near_as_the_bricks(trained(**given), one)


def test_two_tokens_and_more_threads_than_rows(trained: Callable, compiled: Path) -> None:
    one = assemble(ragged([np.array([7])]), ragged([np.array([8])]), np.arange(1))
    as_near_as_the_bricks(trained(dropout=0.1), one, threads=7)


def test_no_token_at_all(trained: Callable, compiled: Path) -> None:
    """Nothing to learn from, and nothing that goes wrong."""
    model, one = trained(dropout=0.1), batch(3)
    for ids in (one.target_in, one.target_out):
        ids[:] = 0
    found, ours = taken(model, batches=(one,))
    assert found.loss == 0 and not any(g.any() for g in ours.values())
    one.source[:] = 0
    assert taken(model, batches=(one,))[0].loss == 0


def test_room_weighs_nothing(trained: Callable, compiled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in the hidden rows nor in any gradient, nor in those of the word and the place it begins as."""
    model = trained(positions="learned", tie="none", dropout=0.2)
    found, ours = taken(model)
    assert not ours["source_embedding.table.weight"][0].any() and not ours["target_embedding.table.weight"][0].any()
    assert not ours["source_embedding.positions.table"][35:].any()
    monkeypatch.setattr(rows, "ROOM", 1024)
    more, theirs = taken(model)
    assert more.loss == pytest.approx(found.loss, rel=1e-5)
    assert all(error(theirs[name], ours[name]) < 0.01 for name in ours if not name.endswith("key.bias"))


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("given", [SHAPES[0] | {"dropout": 0.2}, SHAPES[1] | {"positions": "learned"}], ids=words)
def test_a_number_that_is_not_finite_is_never_lost(
    given: dict[str, Any], value: float, trained: Callable, compiled: Path
) -> None:
    """Whichever parameter it stands in."""
    model, one = trained(**given), batch(3)
    assert taken(model, batches=(one,))[0].finite
    for name, parameter in model.named_parameters():
        first = int(one.source[0, 0]) if "table.weight" in name else 0  # a word that occurs
        place = (first, 0)[: parameter.dim()]
        with torch.no_grad():
            before = parameter[place].item()
            parameter[place] = value
        found = taken(model, batches=(one,))[0]
        with torch.no_grad():
            parameter[place] = before
        assert not found.finite, name


def test_where_it_began_is_named(trained: Callable, compiled: Path) -> None:
    """The report listens to the bricks."""
    model, one = trained(), batch(3)
    with torch.no_grad():
        model.decoder.layers[0].feedforward.up.weight[0, 0] = math.nan
    assert first_bad_module(model, [one], BF16, 3) == "decoder.layers.0.feedforward.up"


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("given", [KNOWN[1], KNOWN[5]], ids=words)
@pytest.mark.parametrize("rdrop", [0.0, 1.0])
def test_the_same_twice_to_the_bit(
    rdrop: float, given: dict[str, Any], threads: int, trained: Callable, compiled: Path
) -> None:
    settings = BF16.model_copy(update={"rdrop": rdrop})
    with on_threads(threads):
        (one, first), (again, second) = (taken(trained(**given), settings) for _ in range(2))
    assert one == again and all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("rdrop", [0.0, 1.0])
@pytest.mark.parametrize("pieces", [3, 7])
def test_pieces_are_the_whole(pieces: int, rdrop: float, trained: Callable, compiled: Path) -> None:
    """The masks of another step would be noticed."""
    model, settings = trained(dropout=0.3, decoder_layers=2), BF16.model_copy(update={"rdrop": rdrop})
    whole, expected = taken(model, settings)
    parts, found = taken(model, settings, pieces=pieces)
    other = compute_gradients(model, [batch()], settings, 4)
    assert parts.pieces == pieces and parts.loss == pytest.approx(whole.loss, rel=1e-4)
    assert abs(other.loss - whole.loss) > 1e-3 * whole.loss
    assert all(error(found[name], expected[name]) < 0.03 for name in expected if not name.endswith("key.bias"))


def test_threads_may_change_between_the_ways(trained: Callable, compiled: Path) -> None:
    model, one = trained(dropout=0.2), batch()
    _, expected = taken(model)
    with on_threads(3):
        loss = piece_loss(model, one, slice(None), BF16, 3, 0)
    model.zero_grad()
    (loss / one.n_target_tokens).backward()
    assert all(
        error(p.grad, expected[name]) < 0.01 for name, p in model.named_parameters() if not name.endswith("key.bias")
    )


def test_there_is_no_second_derivative(trained: Callable, compiled: Path) -> None:
    """Asked for, it is refused, not wrong."""
    model = trained()
    loss = piece_loss(model, batch(), slice(None), BF16, 3, 0)
    weight = model.encoder.layers[0].feedforward.up.weight
    (slope,) = torch.autograd.grad(loss, [weight], create_graph=True)
    with pytest.raises(RuntimeError):
        torch.autograd.grad(slope.sum(), [weight])


@pytest.mark.parametrize("loop", ["join", "attend", "attend_back", "activate_back", "surprise"])
def test_out_of_memory_is_answered_by_smaller_pieces(
    loop: str, trained: Callable, compiled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when it runs out on the way back."""
    model, run, failed = trained(dropout=0.2), loops.run, []
    whole, expected = taken(model)

    def short_of_memory(name: str, numbers: int, *given: Any) -> None:
        if name == loop and not failed:
            failed.append(name)
            raise MemoryError("no memory for a step of training")
        run(name, numbers, *given)

    monkeypatch.setattr(loops, "run", short_of_memory)
    found, ours = taken(model)
    assert failed and found.pieces == 2 and found.loss == pytest.approx(whole.loss, rel=1e-4)
    assert all(error(ours[name], expected[name]) < 0.03 for name in expected if not name.endswith("key.bias"))


# ------------------------------------------------------------------------------------------------ who is let in


@pytest.mark.parametrize("given", UNKNOWN, ids=lambda given: " ".join(given))
def test_models_they_do_not_know(
    given: dict[str, Any], trained: Callable, compiled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bricks are trained."""
    model = trained(**given)
    assert not isinstance(model, Seq2Seq) or not knows(model)
    monkeypatch.setattr(learning, "hidden_rows", refuse)
    assert taken(model)[0].finite


def refuse(*given: Any) -> Tensor:
    raise AssertionError("the loops were taken")


def test_who_gets_them(trained: Callable, compiled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = trained()
    assert knows(model) and not knows(model, torch.float32)
    with listen(model, lambda name, tensor: tensor, lambda name: False):
        assert not knows(model)
    for hook in ("register_forward_hook", "register_forward_pre_hook"):
        handle = getattr(model.encoder.layers[0], hook)(lambda *given: None)
        assert not knows(model)
        handle.remove()
    assert knows(model)
    with bricks_alone():
        assert not knows(model)
    monkeypatch.setattr(learning, "hidden_rows", refuse)
    with pytest.raises(AssertionError, match="the loops were taken"):
        taken(model)
    assert taken(model, FLOAT32)[0].finite
    assert not knows(model.double()) and taken(model)[0].finite


def test_switched_off(trained: Callable, compiled: Path) -> None:
    with switched_off():
        assert not knows(trained()) and this_machine(precision="bf16").loops is None
    assert knows(trained()) and this_machine(precision="bf16").loops and this_machine().loops is None


# ------------------------------------------------------------------------------------------------ a run


RECIPE: dict[str, Any] = {
    "model": {"d_model": 16, "d_ff": 32, "n_heads": 2, "encoder_layers": 1, "decoder_layers": 1, "max_len": 64}
    | {"dropout": 0.1, "activation": "relu"},
    "text": {"vocab_size": 300},
    "data": {"valid_pairs": 6},
    "train": {"max_steps": 8, "batch_tokens": 200, "warmup_steps": 4, "threads": 1, "precision": "bf16"}
    | {"rdrop": 1.0, "accumulate": 2},
    "validation": {"every_steps": 4, "metric": "loss", "decode_pairs": 0},
    "checkpoint": {"every_steps": 4},
}


@pytest.fixture
def run_to(tmp_path: Path) -> Callable[[str, int], tuple[str, dict[str, Any], list[str]]]:
    """Trains the run of this name to that step: its weights' hash, its state, and what was said."""
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(f"{a}\t{b}\n" for a, b in reverse(60, 1, length=5, symbols=8)), encoding="utf-8")

    def run(name: str, steps: int) -> tuple[str, dict[str, Any], list[str]]:
        said: list[str] = []
        folder = tmp_path / name
        recipe = {**RECIPE, "files": [str(pairs)], "train": {**RECIPE["train"], "max_steps": steps}}
        train(recipe, folder, Quiet(said.append))
        state = json.loads((folder / "checkpoints" / f"step-{steps}" / "state.json").read_text())
        return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest(), state, said

    return run


def test_continued_is_the_same_to_the_bit(run_to: Callable, compiled: Path) -> None:
    whole, state, said = run_to("whole", 8)
    assert [machine["loops"] for machine in state["machines"]] == [compiled.stem.removeprefix("engine-")[:8]]
    assert any("bit-identical" in text and "compiled loops" in text for text in said)
    first, _, _ = run_to("parted", 4)
    second, state, said = run_to("parted", 8)
    assert first != whole == second and len(state["machines"]) == 1
    assert any("bit-identical" in text for text in said)


def test_continued_without_them_says_so(run_to: Callable, compiled: Path) -> None:
    whole, _, _ = run_to("whole", 8)
    run_to("parted", 4)
    with switched_off():
        other, state, said = run_to("parted", 8)
    assert other != whole and [bool(machine["loops"]) for machine in state["machines"]] == [True, False]
    assert any("not bit for bit" in text for text in said)
