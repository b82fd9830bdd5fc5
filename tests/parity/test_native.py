"""The compiled engine = the plain step, for every model it knows; and it is only taken where it may be."""

from __future__ import annotations

import gc
import os
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from clearhead.config import DecodeSettings
from clearhead.decode.decode import decode
from clearhead.decode.single import Single
from clearhead.decode.step import EOS, Eager, Native, Stepper, begin
from clearhead.native import build
from clearhead.native.engine import POSITIONS, engine
from clearhead.nn.linear import products_in
from clearhead.nn.tap import listen

Sources = tuple[list[int], ...]
SHAPES: tuple[dict[str, Any], ...] = (
    {"norm_order": "post", "decoder_layers": 2, "encoder_layers": 3},
    {"norm": "rms", "n_kv_heads": 1, "activation": "gelu"},
    {"bias": False, "scale_scores": False, "activation": "relu2", "tie": "target"},
    {"tie": "none", "embedding_scale": False, "d_head": 40, "d_value": 37, "d_ff": 71},
)
KNOWN = [{"positions": p, **SHAPES[(i + j) % len(SHAPES)]} for i, p in enumerate(POSITIONS) for j in range(2)]
UNKNOWN: tuple[dict[str, Any], ...] = (
    {"positions": "alibi"},
    {"positions": "relative-t5"},
    {"norm": "batch"},
    {"activation": "swiglu"},
    {"attention_window": 2},
    {"kind": "recurrent"},
    {"kind": "convolutional"},
)
SEARCHES = (
    DecodeSettings(method="greedy"),
    DecodeSettings(beam=4, n_best=3),
    DecodeSettings(beam=3, no_repeat=2),
    DecodeSettings(method="sample", seed=3),
)


def words(given: dict[str, Any]) -> str:
    return " ".join(str(value) for value in given.values())


def close(a: torch.Tensor, b: torch.Tensor, tolerance: float) -> None:
    real = b.isfinite()
    assert torch.equal(real, a.isfinite())
    torch.testing.assert_close(a[real], b[real], rtol=0, atol=tolerance * max(1.0, b[real].abs().max().item()))


@pytest.mark.parametrize("given", KNOWN, ids=words)
@torch.inference_mode()
def test_compiled_is_plain(
    given: dict[str, Any], tiny_model: Callable, walk: Callable, sources: Sources, compiled: Path
) -> None:
    model = tiny_model(**given)
    quick, slow = Stepper(model, sources), Stepper(model, sources, fast=False)
    assert isinstance(quick.batch, Native)
    for a, b in zip(walk(quick), walk(slow), strict=True):
        close(a, b, 1e-5)


@pytest.mark.parametrize("given", [KNOWN[0], KNOWN[3], KNOWN[7]], ids=words)
@torch.inference_mode()
def test_whole_numbers_are_those_of_the_fused_step(
    given: dict[str, Any], tiny_model: Callable, walk: Callable, sources: Sources, compiled: Path
) -> None:
    """int8 in both: the same rounding, but for a number that lies between two whole ones. Only the engine's encoder
    is in int8 too, so one model has its reading weights at zero."""
    model = tiny_model(**given)
    with products_in(torch.int8):
        if engine(model, torch.int8) is None:
            pytest.skip("this processor has no products of whole numbers")
        for layer in model.decoder.layers:
            layer.cross_attention.out.weight.zero_()
        quick, slow = Stepper(model, sources), Stepper(model, sources, compiled=False)
        assert isinstance(quick.batch, Native) and isinstance(slow.batch, Eager)
        for a, b in zip(walk(quick), walk(slow), strict=True):
            close(a, b, 0.02)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("settings", SEARCHES, ids=lambda s: f"{s.method} {s.no_repeat}")
def test_searches_agree(
    settings: DecodeSettings, threads: int, tiny_model: Callable, sources: Sources, compiled: Path
) -> None:
    model = tiny_model(positions="rotary", decoder_layers=2)
    slow = decode(model, sources, settings.model_copy(update={"fast": False}), max_len=61)
    torch.set_num_threads(threads)
    try:
        quick = decode(model, sources, settings, max_len=61)
    finally:
        torch.set_num_threads(1)
    for a, b in zip(quick, slow, strict=True):
        assert [h.tokens for h in a] == [h.tokens for h in b]
        assert [h.log_probability for h in a] == pytest.approx([h.log_probability for h in b], rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_alone_as_in_any_batch_to_the_bit(
    precision: str, tiny_model: Callable, sources: Sources, compiled: Path
) -> None:
    """And with more threads than one."""
    settings = DecodeSettings.model_validate({"precision": precision, "beam": 3})
    model = tiny_model(d_model=46, n_heads=1, d_ff=101)
    torch.set_num_threads(3)
    try:
        together = decode(model, [*sources, *sources[::-1]] * 5, settings, max_len=61)
    finally:
        torch.set_num_threads(1)
    for source, found in zip(sources, together, strict=False):
        alone = decode(model, [source], settings, max_len=61)[0]
        assert [(h.tokens, h.log_probability) for h in alone] == [(h.tokens, h.log_probability) for h in found]


@pytest.mark.parametrize("at_once", [1, 3, 64])
@torch.inference_mode()
def test_greedy_in_one_call_is_greedy_step_by_step(
    at_once: int, tiny_model: Callable, sources: Sources, compiled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the bit, however often Python has its turn in between; some sources end sooner, some at their limit."""
    monkeypatch.setattr("clearhead.native.engine.STEPS_AT_ONCE", at_once)
    model, many = (
        tiny_model(decoder_layers=2, tie="none"),
        [source[i:] for source in sources for i in range(len(source))],
    )
    limits = [1 + 7 * place % 40 for place in range(len(many))]
    model.output_weight[EOS] *= 3
    single = [Single(model, many, limits, range(len(many)), DecodeSettings(method="greedy")) for _ in range(2)]
    together = single[0].stepper.greedy(limits)
    assert together is not None and together == single[1].step_by_step()
    assert len(set(map(len, together[0]))) > 2 and len(set(together[2])) == 2


@pytest.mark.parametrize("given", UNKNOWN, ids=words)
def test_models_it_does_not_know(given: dict[str, Any], tiny_model: Callable, ids: Callable, compiled: Path) -> None:
    assert isinstance(begin(tiny_model(**given).eval(), ids(2, 3), True, True), Eager)


def test_who_gets_it(tiny_model: Callable, ids: Callable, compiled: Path) -> None:
    model, source = tiny_model(), ids(2, 3)
    assert isinstance(begin(model, source, True, True), Native)
    assert isinstance(begin(model, source, True, False), Eager)
    assert isinstance(begin(model, source, False, True), Eager)
    with listen(model, lambda name, tensor: tensor):
        assert isinstance(begin(model, source, True, True), Eager)
    with products_in(torch.bfloat16):
        assert isinstance(begin(model, source, True, True), Eager)
    assert isinstance(begin(model.double(), source, True, True), Eager)
    assert isinstance(begin(model.float().train(), source, True, True), Eager)


def test_a_changed_weight_is_noticed(tiny_model: Callable, sources: Sources, compiled: Path) -> None:
    model = tiny_model()
    first = engine(model, torch.float32)
    assert engine(model, torch.float32) is first is not None
    with torch.no_grad():
        model.encoder.layers[0].feedforward.up.weight += 0.5
    tokens = torch.ones(4, dtype=torch.long)
    with torch.inference_mode():
        close(Stepper(model, sources).next(tokens), Stepper(model, sources, fast=False).next(tokens), 1e-5)


def test_nothing_is_read_beyond_its_end(tiny_model: Callable, ids: Callable, compiled: Path) -> None:
    """Ids and places that are not there are refused before the engine sees them."""
    model = tiny_model(max_len=7)
    with pytest.raises(IndexError, match="vocabulary of 31"):
        Stepper(model, [[5, 31]])
    with pytest.raises(ValueError, match="position 8 is beyond max_len 7"):
        Stepper(model, [[5] * 7])
    stepper = Stepper(model, [[5, 6]])
    with pytest.raises(IndexError):
        stepper.next(torch.tensor([-1]))
    for _ in range(7):
        stepper.next(torch.tensor([5]))
    with pytest.raises(ValueError, match="position 8"):
        stepper.next(torch.tensor([5]))


def test_nothing_keeps_a_model_alive(tiny_model: Callable, sources: Sources, compiled: Path) -> None:
    model = tiny_model()
    decode(model, sources, DecodeSettings(), max_len=61)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_it_can_be_switched_off(tiny_model: Callable, ids: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(build.OFF, "0")
    assert build.build() is None and build.library() is None
    assert isinstance(begin(tiny_model(), ids(2, 3), True, True), Eager)


def test_others_libraries_are_not_loaded(compiled: Path) -> None:
    """One that somebody else could have written is left alone."""
    assert build.library() is not None
    for path, mode in ((compiled, 0o666), (compiled.parent, 0o777)):
        before = path.stat().st_mode
        os.chmod(path, mode)
        build.library.cache_clear()
        assert build.library() is None
        os.chmod(path, before)
    build.library.cache_clear()
    assert build.library() is not None


def test_a_compiler_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No engine, no error, nothing left behind; also where the cache cannot be."""
    fake = tmp_path / "bin" / "c++"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.delenv(build.OFF, raising=False)
    monkeypatch.setenv("PATH", f"{fake.parent}:/bin:/usr/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    said: list[str] = []
    assert build.build(said.append) is None and len(said) == 1
    assert list((tmp_path / "cache" / "clearhead" / "native").iterdir()) == []
    monkeypatch.setenv("XDG_CACHE_HOME", str(fake))
    assert build.build() is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert build.build() is None
