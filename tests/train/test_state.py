"""Where a run stands, and which promise about its result holds."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from clearhead.config import Experiment
from clearhead.data.order import Cursor
from clearhead.train.machine import Machine, this_machine
from clearhead.train.state import RunState, Validation, difference

HERE = Machine(torch="2.10", processor="x86_64 AVX2", threads=2)
THERE = HERE.model_copy(update={"threads": 4})


def validation(loss: float, step: int = 0, **scores: float) -> Validation:
    return Validation(step=step, loss=loss, scores=scores)


def test_the_best_is_remembered_and_patience_counted() -> None:
    state = RunState()
    assert [state.judge(validation(loss), "loss") for loss in (3.0, 2.0, 2.0, 2.5, 1.0)] == [
        *(True, True, False, False, True)
    ]
    assert state.without_improvement == 0 and state.validations == 5
    assert state.best is not None and state.best.loss == 1.0


def test_higher_scores_are_better() -> None:
    state = RunState()
    assert state.judge(validation(1.0, chrf=20.0), "chrf")
    assert not state.judge(validation(0.5, chrf=19.0), "chrf")
    assert state.judge(validation(2.0, chrf=21.0), "chrf") and state.without_improvement == 0


def test_it_comes_back_from_its_json_as_it_was() -> None:
    state = RunState(step=7, skipped=[2, 3], pieces=4, machines=[HERE], best=validation(0.1 + 0.2, 5, bleu=1 / 3))
    state.move_to(Cursor(2, 9))
    assert RunState.model_validate_json(state.model_dump_json()) == state
    with pytest.raises(ValidationError):
        RunState.model_validate({"step": 1, "stepp": 2})


def test_which_promise_holds() -> None:
    state = RunState()
    state.runs_on(HERE)
    state.runs_on(HERE)
    assert state.exact and "bit-identical" in state.promise and str(HERE) in state.promise
    state.pieces = 2
    assert not state.exact and "2 pieces" in state.promise
    state.pieces = 1
    state.runs_on(THERE)
    state.runs_on(HERE)  # going back does not undo it
    assert not state.exact and "not bit for bit" in state.promise and "4 threads" in state.promise


def test_this_machine_is_the_same_twice() -> None:
    assert this_machine() == this_machine() and "torch" in str(this_machine())


@pytest.mark.parametrize(("skipped", "count"), [([], 0), ([9], 1), ([7, 8, 9], 3), ([7, 9], 1), ([8], 0)])
def test_left_out_in_a_row(skipped: list[int], count: int) -> None:
    assert RunState(skipped=skipped).left_out_in_a_row(10) == count


def test_what_may_not_change_between_two_calls() -> None:
    old = Experiment.model_validate({"train": {"lr": 0.1, "max_steps": 5, "on_nonfinite": "stop", "threads": 1}})
    new = Experiment.model_validate({"train": {"lr": 0.2, "max_steps": 9, "on_nonfinite": "skip", "threads": 2}})
    assert difference(old, new) == ["train.lr: 0.1 → 0.2"]
    other = Experiment.model_validate({"checkpoint": {"every_steps": 3}, "decode": {"beam": 2}, "files": ["x"]})
    assert difference(Experiment(), other) == []
    assert difference(Experiment(), Experiment.model_validate({"model": {"n_kv_heads": 2}})) == [
        "model.n_kv_heads: None → 2"
    ]
