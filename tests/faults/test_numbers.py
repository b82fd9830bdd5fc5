"""Numbers that go wrong: infinite losses and gradients, and memory that runs out."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from clearhead.errors import NumbersError, UsageError
from clearhead.models.protocol import EncoderDecoder
from clearhead.train import gradients, loop
from clearhead.train.gradients import piece_loss

Train = Callable[..., Any]
Outcome = Callable[[Path], dict[str, str]]


@pytest.fixture
def poisoned(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[int]]:
    """The loss of these steps is infinite; the steps whose loss was asked for."""

    def poison(*steps: int, value: float = math.inf) -> list[int]:
        asked: list[int] = []

        def bad_loss(model: Any, batch: Any, rows: Any, settings: Any, step: int, place: int) -> torch.Tensor:
            asked.append(step)
            return piece_loss(model, batch, rows, settings, step, place) * (value if step in steps else 1.0)

        monkeypatch.setattr(gradients, "piece_loss", bad_loss)
        return asked

    return poison


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_stop_keeps_the_weights_clean(
    value: float,
    poisoned: Any,
    train_here: Train,
    tmp_path: Path,
    outcome: Outcome,
    undisturbed: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    poisoned(6, value=value)
    seen: list[EncoderDecoder] = []
    monkeypatch.setattr(loop.Training, "run", watched(loop.Training.run, seen))
    with pytest.raises(NumbersError, match=r"step 6: loss (inf|nan)") as caught:
        train_here(tmp_path / "run")
    assert caught.value.exit_code == 5 and "crash-step-6.json" in str(caught.value)
    assert all(parameter.isfinite().all() for parameter in seen[0].parameters())
    monkeypatch.undo()
    train_here(tmp_path / "run")  # whatever it was has passed: the same command ends as ever
    assert outcome(tmp_path / "run") == undisturbed


def watched(run: Any, seen: list[EncoderDecoder]) -> Any:
    def running(self: loop.Training) -> Any:
        seen.append(self.model)
        return run(self)

    return running


def test_the_crash_report_names_the_pairs(poisoned: Any, train_here: Train, tmp_path: Path) -> None:
    poisoned(6)
    with pytest.raises(NumbersError):
        train_here(tmp_path / "run")
    report = json.loads((tmp_path / "run" / "crash-step-6.json").read_text())
    assert report["step"] == 6 and report["loss"] == "inf" and len(report["batches"]) == 2
    rows = [row for batch in report["batches"] for row in batch["rows"]]
    assert rows and all(0 <= row < 54 for row in rows)
    assert report["first_bad_module"] is None  # the loss was made infinite behind the last module
    assert report["bad_gradients"] and report["bad_weights"] == []


def test_the_first_bad_module_is_named(train_here: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    advance = loop.Training.advance

    def break_a_weight(self: loop.Training) -> bool:
        if self.state.step == 2:
            with torch.no_grad():
                self.model.get_parameter("decoder.layers.0.feedforward.up.weight")[0, 0] = math.inf
        return advance(self)

    monkeypatch.setattr(loop.Training, "advance", break_a_weight)
    with pytest.raises(NumbersError, match=r"first bad module: decoder\.layers\.0\.feedforward"):
        train_here(tmp_path / "run")
    report = json.loads((tmp_path / "run" / "crash-step-3.json").read_text())
    assert report["bad_weights"] == ["decoder.layers.0.feedforward.up.weight"]


def test_skip_leaves_the_batch_out(poisoned: Any, train_here: Train, tmp_path: Path) -> None:
    poisoned(6)
    said: list[str] = []
    found = train_here(tmp_path / "run", say=said.append, train__on_nonfinite="skip")
    assert found.steps == 12
    assert sum("batch left out, number 1 in this run" in text for text in said) == 1
    assert state_of(tmp_path / "run")["skipped"] == [6]
    for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=pytest.fail)


def test_skip_then_killed_is_the_same(
    poisoned: Any, train_here: Train, tmp_path: Path, outcome: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step that was left out is left out again, even when its numbers are good the second time."""
    poisoned(6)
    train_here(tmp_path / "whole", train__on_nonfinite="skip")
    with monkeypatch.context() as patch:
        patch.setattr(loop.Training, "save", fails_at(8, loop.Training.save))
        with pytest.raises(RuntimeError):
            train_here(tmp_path / "cut", train__on_nonfinite="skip")
    train_here(tmp_path / "cut", train__on_nonfinite="skip")
    assert outcome(tmp_path / "cut") == outcome(tmp_path / "whole")


def fails_at(step: int, save: Any) -> Any:
    def saving(self: loop.Training, final: bool = False) -> None:
        if self.state.step == step:
            raise RuntimeError("killed")
        save(self, final)

    return saving


def test_rewind_goes_back_to_the_checkpoint(
    poisoned: Any, train_here: Train, tmp_path: Path, outcome: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps 5 and 6 are done again from step 4, without 6; the result is that of leaving 6 out, to the bit."""
    asked = poisoned(6)
    said: list[str] = []
    found = train_here(tmp_path / "run", say=said.append, train__on_nonfinite="rewind")
    assert found.steps == 12 and any("back to step 4, batch left out" in text for text in said)
    assert [step for step, after in zip(asked, [*asked[1:], 0], strict=True) if step > after > 0] == [6]
    train_here(tmp_path / "skipping", train__on_nonfinite="skip")
    ours, theirs = outcome(tmp_path / "run"), outcome(tmp_path / "skipping")
    assert ours == theirs


def test_going_wrong_for_ever_ends(poisoned: Any, train_here: Train, tmp_path: Path) -> None:
    poisoned(*range(2, 100))
    with pytest.raises(NumbersError, match="10 batches before it were left out too"):
        train_here(tmp_path / "run", train__on_nonfinite="rewind", train__max_steps=30)


def test_a_divergence_of_its_own_making(train_here: Train, tmp_path: Path) -> None:
    """No injection: a learning rate that no weights survive. Nothing that is not finite is ever saved."""
    with pytest.raises(NumbersError):
        train_here(tmp_path / "run", train__lr=1e38, train__muon_lr=1e38, train__ema=0.0, train__average=0)
    assert not list((tmp_path / "run").glob("checkpoints/step-*"))


def state_of(run: Path) -> dict[str, Any]:
    steps = sorted(run.glob("checkpoints/step-*"), key=lambda p: int(p.name.removeprefix("step-")))
    found: dict[str, Any] = json.loads((steps[-1] / "state.json").read_text())
    return found


# --- memory -----------------------------------------------------------------------------------------------------


@pytest.fixture
def small_memory(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[int]]:
    """More rows than this at a time run out of memory; the sizes that were tried."""

    def limit(rows: int) -> list[int]:
        tried: list[int] = []

        def losing(model: Any, batch: Any, part: slice, settings: Any, step: int, place: int) -> torch.Tensor:
            tried.append(size := len(batch.rows[part]))
            if size > rows:
                raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to …")
            return piece_loss(model, batch, part, settings, step, place)

        monkeypatch.setattr(gradients, "piece_loss", losing)
        return tried

    return limit


def test_out_of_memory_cuts_the_batches(
    small_memory: Any, train_here: Train, tmp_path: Path, finished_run: Path
) -> None:
    """Smaller pieces, the same masks: the same losses within rounding; said once."""
    tried = small_memory(12)
    said: list[str] = []
    train_here(tmp_path / "run", say=said.append)
    assert max(tried) > 12
    assert sum("out of memory" in text for text in said) == 1
    assert any("bit-exactness with an uncut run ends here" in text for text in said)
    assert state_of(tmp_path / "run")["pieces"] > 1
    for ours, theirs in zip(losses(tmp_path / "run"), losses(finished_run), strict=True):
        assert ours == pytest.approx(theirs, rel=2e-3)


def losses(run: Path) -> list[float]:
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    return [line[name] for line in lines for name in ("loss", "valid_loss") if name in line]


def test_the_promise_is_withdrawn_when_batches_are_cut(small_memory: Any, train_here: Train, tmp_path: Path) -> None:
    small_memory(12)
    train_here(tmp_path / "run")
    said: list[str] = []
    train_here(tmp_path / "run", say=said.append, train__max_steps=13)
    assert any("not bit for bit" in text and "pieces" in text for text in said)


def test_no_piece_is_small_enough(small_memory: Any, train_here: Train, tmp_path: Path) -> None:
    small_memory(0)
    with pytest.raises(UsageError, match=r"step 1 does not fit in memory, even in \d+ pieces"):
        train_here(tmp_path / "run")


def test_cut_batches_have_the_same_gradients_in_float64(float64: None, tiny_model: Any) -> None:
    """The masks do not move when a batch is cut: in float64 only the last bits of the sums differ."""
    import numpy as np

    from clearhead.config import TrainSettings
    from clearhead.data.batching import Batch

    model = tiny_model(dropout=0.3, attention_dropout=0.2)
    ids = np.random.default_rng(0).integers(5, 31, size=(9, 7))
    batch = Batch(ids, ids, ids, np.arange(9), 0, ids.size, ids.size)
    settings = TrainSettings(precision="float32", rdrop=0.5)
    found = []
    for pieces in (1, 4):
        gradients.compute_gradients(model, [batch, batch], settings, step=3, pieces=pieces)
        found.append([parameter.grad.clone() for parameter in model.parameters()])
    for whole, cut in zip(*found, strict=True):
        torch.testing.assert_close(cut, whole, rtol=1e-9, atol=1e-12)
