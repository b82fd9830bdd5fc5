"""A trace as data: names, axes, labels; saved and opened, with torch out of the house."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from clearhead.config import DecodeSettings
from clearhead.errors import ModelFileError, UsageError
from clearhead.glass.decoded import trace as decoded_trace
from clearhead.glass.trace import open_trace


def test_a_pattern_has_its_axes_and_tokens(glass_model: Callable, traced: Callable) -> None:
    trace = traced(glass_model(decoder_layers=2))
    name = "decoder.layers.1.cross_attention.pattern"
    assert name in trace and name in trace.names() and name in trace.names("pattern")
    assert trace.axes(name) == ("head", "query", "key")
    assert trace[name].shape == (4, 6, 8)
    heads, queries, keys = trace.labels(name)
    assert heads is None and queries == trace.target and keys == trace.source
    assert trace.source == ("7", "11", "8", "23", "11", "19", "30", "2")
    assert trace.target == ("1", "9", "27", "9", "14", "5") and trace.written == (*trace.target[1:], "2")


def test_every_axis_of_places_has_as_many_tokens(kind: dict, glass_model: Callable, traced: Callable) -> None:
    """8 places of the source, 6 of the target: a label of the wrong side would not fit."""
    trace = traced(glass_model(**kind))
    for name in trace:
        assert len(trace.axes(name)) == trace[name].ndim
        for axis, tokens, size in zip(trace.axes(name), trace.labels(name), trace[name].shape, strict=True):
            assert (tokens is not None) == (axis in ("query", "key", "position"))
            assert tokens is None or len(tokens) == size, name


def test_an_unknown_name_names_the_nearest(glass_model: Callable, traced: Callable) -> None:
    with pytest.raises(UsageError, match=r"did you mean decoder\.layers\.0\.cross_attention\.pattern"):
        traced(glass_model())["decoder.layer.0.cross_attention.patern"]


def test_a_number_s_address_is_its_key(glass_model: Callable, traced: Callable) -> None:
    trace = traced(glass_model())
    name = "decoder.layers.0.cross_attention.pattern"
    assert trace[f"{name}[3,5,7]"] == trace[name][3, 5, 7] and np.array_equal(trace["memory[2]"], trace["memory"][2])
    for address, said in (
        (f"{name}[3,5,8]", r"4 × 6 × 8 numbers"),
        ("memory[0,0,0]", "none at"),
        (f"{name}[x]", "called"),
    ):
        with pytest.raises(UsageError, match=said):
            trace[address]


def test_probabilities_and_their_sum(glass_model: Callable, traced: Callable) -> None:
    trace = traced(glass_model())
    np.testing.assert_allclose(trace["probabilities"].sum(1), 1, rtol=1e-5)
    picked = [trace["probabilities"][t, token] for t, token in enumerate(trace.ids("written"))]
    assert trace.log_probability == pytest.approx(float(np.log(picked).sum()), rel=1e-5)


def test_computed_from_leads_back_to_the_ids(kind: dict, glass_model: Callable, traced: Callable) -> None:
    """No record hangs in the air, and none comes of itself."""
    trace = traced(glass_model(**kind))

    def roots(name: str, above: tuple[str, ...] = ()) -> set[str]:
        assert name not in above, f"{name} is computed from itself"
        made_of = trace.record(name).computed_from
        return {name} if not made_of else set().union(*(roots(part, (*above, name)) for part in made_of))

    ends = roots("written_log_probabilities")
    assert {"source_ids", "target_ids", "written_ids"} <= ends
    assert {trace.record(name).kind for name in ends} <= {"ids", "weight", "constant", "embedding", "score"}
    leads_on = {part for name in trace for part in trace.record(name).computed_from}
    assert set(trace) - leads_on == {"written_log_probabilities", "written_rows", "likeliest_ids"}


def test_saved_and_opened_is_the_same(kind: dict, tmp_path: Path, glass_model: Callable, source: list[int]) -> None:
    trace = decoded_trace(
        glass_model(**kind), source, DecodeSettings(beam=3, max_extra=3), 61, "s{}".format, "t‘{}".format
    )
    trace.save(tmp_path / "a.safetensors")
    opened = open_trace(tmp_path / "a.safetensors")
    assert opened.names() == trace.names() and opened.tree == trace.tree and opened.provenance == trace.provenance
    assert (opened.source, opened.target, opened.written) == (trace.source, trace.target, trace.written)
    for name in trace:
        ours, theirs = trace.record(name), opened.record(name)
        assert (ours.axes, ours.kind, ours.computed_from) == (theirs.axes, theirs.kind, theirs.computed_from)
        assert ours.values.dtype == theirs.values.dtype and np.array_equal(ours.values, theirs.values)


def test_other_programs_read_the_numbers(tmp_path: Path, glass_model: Callable, traced: Callable) -> None:
    from safetensors.numpy import load_file

    trace = traced(glass_model())
    trace.save(tmp_path / "a.safetensors")
    found = load_file(tmp_path / "a.safetensors")
    assert set(found) == set(trace)
    assert all(np.array_equal(found[name], trace[name]) for name in trace)


def test_a_saved_trace_opens_without_torch(tmp_path: Path, glass_model: Callable, traced: Callable) -> None:
    trace = traced(glass_model())
    trace.save(tmp_path / "a.safetensors")
    program = (
        "import sys; from clearhead.glass.trace import open_trace; from clearhead.glass.opened import check;"
        "from clearhead.glass.direct import direct_logits;"
        f"t = open_trace({str(tmp_path / 'a.safetensors')!r});"
        "print(t.log_probability, max(check(t).values()) < 1e-5, direct_logits(t).gap < 1e-4, 'torch' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert float(said[0]) == pytest.approx(trace.log_probability)
    assert said[1:] == ["True", "True", "False"]


def test_only_what_is_looked_at_is_read(tmp_path: Path, glass_model: Callable, traced: Callable) -> None:
    traced(glass_model()).save(tmp_path / "a.safetensors")
    assert isinstance(open_trace(tmp_path / "a.safetensors")["logits"], np.memmap)


@pytest.mark.parametrize("damage", ["cut", "not ours", "axes", "header"])
def test_damage_is_said(damage: str, tmp_path: Path, glass_model: Callable, traced: Callable) -> None:
    path = tmp_path / "a.safetensors"
    traced(glass_model()).save(path)
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    if damage == "cut":
        path.write_bytes(data[:-5])
    elif damage == "header":
        path.write_bytes(data[:8] + b"{" * length + data[8 + length :])
    else:
        if damage == "not ours":
            del header["__metadata__"]["format"]
        else:
            header["__metadata__"]["axes"] = json.dumps({"logits": ["position"]})
        changed = json.dumps(header).encode()
        path.write_bytes(len(changed).to_bytes(8, "little") + changed + data[8 + length :])
    with pytest.raises(ModelFileError, match=str(path.name)):
        open_trace(path)
