"""Any text through training, translating and evaluating: one line out per line in, and no crash."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clearhead.cli.output import write_translations
from clearhead.data.readers import Pair
from clearhead.verbs.evaluate import evaluate_model
from clearhead.verbs.model import Model, load
from clearhead.verbs.translate import line_batches, translations

NASTY = [
    *("", " ", "\u3000", "\x00", "\x1b[31m", "\u200b", "\u202e", "\u2028", "\x85", "\x0c", "\r", "\ufeff", "\ufffe"),
    *(
        "e\u0301",
        "é",
        "ﬃ",
        "İ",
        "ß",
        "ǅ",
        "ℌ",
        "👩‍👩‍👧‍👦",
        "🏳️‍🌈",
        "\U0010ffff",
        "क्षि",
        "각",
        "אָ",
        "ا",
        "中",
        "𝕏",
        "½",
        "①",
    ),
    *(
        "-" * 50,
        "...",
        "?!",
        "1e400",
        "0x00",
        "<b>",
        "&amp;",
        "%d",
        "{0}",
        "${x}",
        "\\u0000",
        "NULL",
        "nan",
        "<eos>",
        "▁",
    ),
]
one_line = st.one_of(
    st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\n"), max_size=40),
    st.lists(st.sampled_from(NASTY), max_size=6).map(" ".join),
)
some_lines = st.lists(one_line, max_size=8)
greedy = {"method": "greedy", "beam": 1, "n_best": 1, "max_ratio": 1.0, "max_extra": 4}
quick = settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
long = settings(quick, max_examples=1500)


@pytest.fixture(scope="module")
def model(finished_run: Path) -> Model:
    return load(finished_run)


def one_line_each(lines: list[str], model: Model, capsys: pytest.CaptureFixture[str]) -> None:
    """As the command line does it: bytes in, lines out."""
    text = "\n".join(lines)
    written = [] if not text else lines
    for batch in line_batches(io.BytesIO(text.encode())):
        write_translations(translations(model, batch, **greedy), as_json=False)
    out = capsys.readouterr().out
    expected = len(written) - (1 if written and written[-1] == "" else 0)
    assert out.count("\n") == expected and (not out or out.endswith("\n"))


def evaluated(pairs: list[tuple[str, str]], model: Model) -> None:
    if not pairs:
        return
    placed = [Pair(source, target, "pairs.tsv", line) for line, (source, target) in enumerate(pairs, start=1)]
    found = evaluate_model(model, placed, range(len(pairs)), changes=greedy)
    assert found.n == len(pairs)


@quick
@given(lines=some_lines)
def test_translate(lines: list[str], model: Model, capsys: pytest.CaptureFixture[str]) -> None:
    one_line_each(lines, model, capsys)


@settings(quick, max_examples=8)
@given(pairs=st.lists(st.tuples(one_line, one_line), min_size=1, max_size=5))
def test_evaluate(pairs: list[tuple[str, str]], model: Model) -> None:
    evaluated(pairs, model)


def trained(lines: list[str], out: Path, train: Callable[..., Any]) -> Model | None:
    """A model learned from these lines, or None where training said why not."""
    from clearhead.errors import ClearheadError

    pairs = out.with_suffix(".jsonl")
    import json

    pairs.write_text("".join(json.dumps({"a": line, "b": line[::-1]}) + "\n" for line in lines), encoding="utf-8")
    try:
        train(out, files=[str(pairs)], data__gate="off", train__max_steps=1, data__columns="a,b", model__dropout=0.0)
    except ClearheadError as error:
        assert error.exit_code == 2
        return None
    return load(out)


def test_train_on_nasty_lines(
    train_here: Callable[..., Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = trained(
        [*NASTY, *(f"{a} {b}" for a, b in zip(NASTY, NASTY[7:], strict=False))], tmp_path / "run", train_here
    )
    assert model is not None
    one_line_each(NASTY, model, capsys)
    evaluated([(line, line) for line in NASTY], model)


@pytest.mark.slow
@long
@given(lines=some_lines)
def test_translate_much(lines: list[str], model: Model, capsys: pytest.CaptureFixture[str]) -> None:
    one_line_each(lines, model, capsys)


@pytest.mark.slow
@settings(long, max_examples=200)
@given(pairs=st.lists(st.tuples(one_line, one_line), min_size=1, max_size=12))
def test_evaluate_much(pairs: list[tuple[str, str]], model: Model) -> None:
    evaluated(pairs, model)


@pytest.mark.slow
@settings(long, max_examples=60)
@given(lines=st.lists(one_line, min_size=1, max_size=30))
def test_train_on_anything(
    lines: list[str],
    train_here: Callable[..., Any],
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = trained(lines, tmp_path_factory.mktemp("any") / "run", train_here)
    if model is not None:
        one_line_each(lines, model, capsys)
        evaluated([(line, line) for line in lines], model)
