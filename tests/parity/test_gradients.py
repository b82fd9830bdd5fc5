"""A step's gradients: in pieces = whole, several batches = one, with the same dropout masks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from clearhead.config import TrainSettings
from clearhead.data.batching import Batch, assemble, ragged
from clearhead.errors import UsageError
from clearhead.models.protocol import EncoderDecoder
from clearhead.train.gradients import compute_gradients, cut

DROPOUTS = {"dropout": 0.3, "attention_dropout": 0.2, "activation_dropout": 0.1, "word_dropout": 0.1}


def batch(rows: int, seed: int = 0, width: int = 7) -> Batch:
    """Rows of different lengths, the first one of each kind as long as allowed."""
    generator = np.random.default_rng(seed)

    def side() -> list[np.ndarray]:
        lengths = [width, *generator.integers(1, width + 1, rows - 1)]
        return [generator.integers(5, 31, n) for n in lengths]

    return assemble(ragged(side()), ragged(side()), np.arange(rows))


def taken(model: EncoderDecoder, batches: list[Batch], settings: TrainSettings, step: int = 3, pieces: int = 1):
    found = compute_gradients(model, batches, settings, step, pieces)
    return found, {name: p.grad.clone() for name, p in model.named_parameters()}


def assert_close(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor], tolerance: float) -> None:
    for name in a:
        assert (a[name] - b[name]).abs().max() <= tolerance * max(a[name].abs().max().item(), 1e-3), name


@pytest.mark.parametrize("rdrop", [0.0, 1.0])
@pytest.mark.parametrize("pieces", [2, 3, 11, 40])
def test_pieces_are_the_whole(pieces: int, rdrop: float, tiny_model: Callable) -> None:
    settings = TrainSettings(rdrop=rdrop, precision="float32")
    model, batches = tiny_model(**DROPOUTS).double(), [batch(11), batch(3, seed=1)]
    whole, expected = taken(model, batches, settings)
    parts, found = taken(model, batches, settings, pieces=pieces)
    assert (whole.pieces, parts.pieces) == (1, pieces)
    assert parts.loss == pytest.approx(whole.loss, rel=1e-12)
    assert parts.norm == pytest.approx(whole.norm, rel=1e-10)
    assert parts.target_tokens == whole.target_tokens == sum(b.n_target_tokens for b in batches)
    assert_close(expected, found, 1e-10)
    single = tiny_model(**DROPOUTS)
    _, expected = taken(single, batches, settings)
    _, found = taken(single, batches, settings, pieces=pieces)
    assert_close(expected, found, 1e-4)


def test_the_masks_really_are_the_same(tiny_model: Callable) -> None:
    """Another step's masks would be noticed."""
    settings, model = TrainSettings(precision="float32"), tiny_model(**DROPOUTS).double()
    one, first = taken(model, [batch(5)], settings, step=3)
    again, same = taken(model, [batch(5)], settings, step=3)
    other, _ = taken(model, [batch(5)], settings, step=4)
    assert one == again
    assert all(torch.equal(first[name], same[name]) for name in first)
    assert abs(other.loss - one.loss) > 1e-4


def test_several_batches_are_one_step(tiny_model: Callable) -> None:
    """Six rows at once, or three and three: per target token over all of them, places counted on."""
    whole = batch(6)
    halves = [
        Batch(*(a[rows] for a in (whole.source, whole.target_in, whole.target_out, whole.rows)), 0, 0, tokens)
        for rows in (slice(0, 3), slice(3, 6))
        for tokens in [int((whole.target_out[rows] != 0).sum())]
    ]
    settings, model = TrainSettings(precision="float32"), tiny_model(**DROPOUTS).double()
    one, expected = taken(model, [whole], settings)
    two, found = taken(model, halves, settings)
    assert two.loss == pytest.approx(one.loss, rel=1e-12)
    assert_close(expected, found, 1e-10)


def test_the_loss_is_the_mean_over_real_tokens(tiny_model: Callable) -> None:
    """By torch's own cross-entropy over the padded batch, dropout off."""
    model, one = tiny_model().double(), batch(5)
    source, target_in, target_out = map(torch.from_numpy, (one.source, one.target_in, one.target_out))
    logits = model.logits(model(source, target_in))
    expected = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), target_out.flatten(), ignore_index=0, label_smoothing=0.1
    )
    found, ours = taken(model, [one], TrainSettings(precision="float32", label_smoothing=0.1))
    assert found.loss == pytest.approx(expected.item(), rel=1e-12)
    theirs = torch.autograd.grad(expected, list(model.parameters()))
    assert_close({n: g for (n, _), g in zip(model.named_parameters(), theirs, strict=True)}, ours, 1e-10)
    assert found.norm == pytest.approx(sum((g**2).sum() for g in theirs).item() ** 0.5, rel=1e-10)


def test_rdrops_two_passes_draw_differently(tiny_model: Callable) -> None:
    """Without dropout both passes agree and R-Drop adds nothing; with it, it adds."""
    losses = {}
    for rate in (0.0, 0.3):
        for rdrop in (1e-9, 5.0):
            settings = TrainSettings(rdrop=rdrop, precision="float32")
            losses[rate, rdrop] = taken(tiny_model(dropout=rate).double(), [batch(5)], settings)[0].loss
    assert losses[0.0, 5.0] == pytest.approx(losses[0.0, 1e-9], rel=1e-9)
    assert losses[0.3, 5.0] > losses[0.3, 1e-9] + 1e-3
    plain = taken(tiny_model().double(), [batch(5)], TrainSettings(precision="float32"))[0].loss
    assert losses[0.0, 1e-9] == pytest.approx(plain, rel=1e-9)


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("[enforce fail] can't allocate memory: you tried")])
def test_out_of_memory_is_answered_by_smaller_pieces(
    error: Exception, tiny_model: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, model = TrainSettings(precision="float32"), tiny_model(**DROPOUTS).double()
    _, expected = taken(model, [batch(11)], settings)
    encode = model.encode

    def small_only(source: torch.Tensor) -> object:
        if len(source) > 3:
            raise error
        return encode(source)

    monkeypatch.setattr(model, "encode", small_only)
    found, ours = taken(model, [batch(11)], settings)
    assert found.pieces == 4
    assert_close(expected, ours, 1e-10)


def test_other_errors_are_not_swallowed(tiny_model: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another error comes out as it is, at once; memory that is never enough is said in words, once pieces are rows."""
    model = tiny_model()
    for error, told, tries in (
        (RuntimeError("shapes do not fit"), RuntimeError("shapes do not fit"), 1),
        (MemoryError("still"), UsageError("does not fit in memory, even in 4 pieces"), 3),
    ):
        calls = []

        def fail(source: torch.Tensor, error: Exception = error, calls: list[int] = calls) -> object:
            calls.append(len(source))
            raise error

        monkeypatch.setattr(model, "encode", fail)
        with pytest.raises(type(told), match=str(told)):
            compute_gradients(model, [batch(3)], TrainSettings(precision="float32"), 1)
        assert len(calls) == tries


def test_numbers_that_went_wrong_are_told(tiny_model: Callable) -> None:
    model = tiny_model()
    assert compute_gradients(model, [batch(3)], TrainSettings(precision="float32"), 1).finite
    with torch.no_grad():
        next(model.parameters())[7] = torch.nan
    assert not compute_gradients(model, [batch(3)], TrainSettings(precision="float32"), 1).finite


@pytest.mark.parametrize(("rows", "pieces"), [(11, 1), (11, 3), (3, 7), (1, 1), (7, 7)])
def test_cutting_covers_every_row_once(rows: int, pieces: int) -> None:
    slices = cut(rows, pieces)
    assert [row for s in slices for row in range(rows)[s]] == list(range(rows))
    sizes = [len(range(rows)[s]) for s in slices]
    assert max(sizes) - min(sizes) <= 1
    assert len(slices) == min(rows, pieces)
