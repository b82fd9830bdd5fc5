"""Every number of a trace, recomputed from raw weights by another path; and tracing changes nothing, leaves nothing."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from clearhead.errors import UsageError
from clearhead.glass.tracer import trace_pass
from clearhead.nn import tap

DERIVED = {"ids", "weight", "constant"}


def gaps(traced: Callable, recompute: Callable, same: Callable, model: torch.nn.Module, tolerance: float) -> None:
    trace, expected = traced(model), recompute(model)
    assert {name for name in trace if trace.record(name).kind not in DERIVED} == set(expected)
    for name, numbers in expected.items():
        same(trace[name], numbers, tolerance)


def test_every_number_is_what_the_raw_weights_give(
    kind: dict, float64: None, glass_model: Callable, traced: Callable, recompute: Callable, same: Callable
) -> None:
    gaps(traced, recompute, same, glass_model(**kind), 1e-12)


def test_every_number_in_single_precision(
    kind: dict, glass_model: Callable, traced: Callable, recompute: Callable, same: Callable
) -> None:
    gaps(traced, recompute, same, glass_model(**kind), 1e-5)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
def test_traced_is_untraced(
    kind: dict, dtype: torch.dtype, tolerance: float, glass_model: Callable, traced: Callable, same: Callable
) -> None:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        model = glass_model(**kind)
        trace = traced(model)
        with torch.no_grad():
            ids = [torch.tensor([trace.ids(side)]) for side in ("source", "target")]
            plain = model.logits(model(*ids))[0].numpy()
    finally:
        torch.set_default_dtype(before)
    same(trace["logits"], plain, tolerance)


def test_weights_in_the_trace_are_copies(glass_model: Callable, traced: Callable) -> None:
    model = glass_model(norm="rms", positions="learned")
    trace = traced(model)
    before = {name: trace[name].copy() for name in trace}
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    assert all(np.array_equal(trace[name], values) for name, values in before.items())


def test_numbers_cannot_be_written_on(glass_model: Callable, traced: Callable) -> None:
    with pytest.raises(ValueError, match="read-only"):
        traced(glass_model())["logits"][0, 0] = 1.0


def test_an_output_that_did_not_end(glass_model: Callable, source: list[int], output: list[int]) -> None:
    model = glass_model()
    whole = trace_pass(model, source, output)
    cut = trace_pass(model, source, output, ended=False)
    assert cut.ids("target") == whole.ids("target")[:-1] and cut.ids("written") == output
    np.testing.assert_allclose(cut["logits"], whole["logits"][:-1], rtol=0, atol=1e-5)
    assert not cut.provenance.ended


def test_taps_are_gone_after_an_error(glass_model: Callable, traced: Callable) -> None:
    model = glass_model()
    with pytest.raises(IndexError):
        trace_pass(model, [999], [5])
    assert tap._open == 0 and tap._listeners.get() == ()
    traced(model)
    assert tap._open == 0


def test_a_network_in_training_is_refused(glass_model: Callable, traced: Callable) -> None:
    with pytest.raises(UsageError, match="training mode"):
        traced(glass_model().train())


PROGRAM = """
import torch
from torch import nn
from clearhead.config import ModelSettings
from clearhead.glass.tracer import trace_pass
from clearhead.models.build import build
from clearhead.nn.tap import heard, listen, tap


class Tapped(nn.Module):
    def forward(self, x):
        x = tap(self, "before", x) * 2
        return tap(self, "after", x + 1 if heard(self, "before") else x - 1)


made, x = Tapped(), torch.ones(3)
whole = torch.compile(made, backend="eager", fullgraph=True)  # a break would be an error
print(whole(x).tolist())
with listen(made, lambda name, t: t * 10):
    print(torch.compile(made, backend="eager")(x).tolist())
print(whole(x).tolist())

sizes = dict(d_model=8, d_ff=8, n_heads=2, encoder_layers=1, decoder_layers=1, max_len=16, dropout=0.0)
model = build(ModelSettings(**sizes), 31, 31).eval()
ids = torch.tensor([[7, 11, 2]]), torch.tensor([[1, 9]])
torch.compiler.reset()
frames = [frame.filename for reason in torch._dynamo.explain(model)(*ids).break_reasons for frame in reason.user_stack]
print([name for name in frames if name.endswith("nn/tap.py")])
print(len(trace_pass(model, [7, 11], [9])) > 50)
"""


def test_taps_break_no_compiled_graph() -> None:
    """A listener is heard in a compiled module, and whatever else may break the model's graph, no tap does.

    In a process of its own: this one checks every shape as it runs, and a graph cannot hold those checks.
    """
    told = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert told.returncode == 0, told.stderr[-2000:]
    silent = str([1.0] * 3)
    assert told.stdout.splitlines() == [silent, str([210.0] * 3), silent, "[]", "True"]


def test_a_tap_nobody_listens_to_costs_one_call() -> None:
    """Counted, not timed: the tap itself is called, reads one number, calls nothing else, and makes nothing."""
    silent, module, x = inspect.unwrap(tap.tap), torch.nn.Linear(3, 3), torch.ones(3)
    calls: list[str] = []
    sys.setprofile(lambda frame, event, _: calls.append(event))
    try:
        back = silent(module, "pattern", x)
    finally:
        sys.setprofile(None)
    assert back is x
    assert calls[:2] == ["call", "return"] and not {"call", "return"} & set(calls[2:]), calls
    assert "c_call" not in calls[:2]


def test_taps_nobody_listens_to_add_no_operation(
    monkeypatch: pytest.MonkeyPatch, glass_model: Callable, source: list[int], output: list[int]
) -> None:
    """A training step and a decoding step run the same operations as they do with every tap taken out."""
    model = glass_model(dropout=0.1)

    def step() -> tuple[list[str], list[str]]:
        with Operations() as training:
            model.logits(model(torch.tensor([source]), torch.tensor([output]))).logsumexp(-1).sum().backward()
        with Operations() as decoding, torch.inference_mode():
            state = model.start(model.encode(torch.tensor([source])))
            model.logits(model.step(torch.tensor([[9]]), state))
        return training.names, decoding.names

    step()  # tables that are kept for the next time are made
    with_taps = step()
    tapped = [
        module for name, module in sys.modules.items() if name.startswith("clearhead.") and hasattr(module, "tap")
    ]
    places = [module for module in tapped if callable(module.tap)]
    assert len(places) >= 6
    for module in places:
        monkeypatch.setattr(module, "tap", lambda module, name, tensor: tensor)
        if hasattr(module, "heard"):
            monkeypatch.setattr(module, "heard", lambda module, *names: False)
    assert step() == with_taps
    assert len(with_taps[0]) > 100 and len(with_taps[1]) > 30


class Operations(TorchDispatchMode):
    """The operations that run while it is on, by name."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(("settings", "taps"), [({}, 66), ({"encoder_layers": 6, "decoder_layers": 6}, 331)])
def test_there_are_few_taps(settings: dict, taps: int, glass_model: Callable) -> None:
    """Some twenty or thirty to a layer; the cost of silence is this many calls. A tap in a loop would show here."""
    model, names = glass_model(**settings), []
    with tap.listen(model, lambda name, t: (names.append(name), t)[1]):
        model.logits(model(torch.tensor([[7, 2]]), torch.tensor([[1, 9]])))
    assert len(names) == len(set(names)) == taps
