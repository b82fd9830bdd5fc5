"""The verb and its command line: what is written, and what is said when nothing can be."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from typer.testing import CliRunner

from clearhead.cli.main import app
from clearhead.errors import ClearheadError, DataError
from clearhead.explore import page
from clearhead.explore.picture import picture
from clearhead.glass.trace import open_trace
from clearhead.text.tokenizer import train_tokenizer
from clearhead.truths import show
from clearhead.verbs import translate as verb
from clearhead.verbs.explain import Explained, explain, facts
from clearhead.verbs.folder import Opened
from clearhead.verbs.model import Model
from clearhead.verbs.tokenizers import Tokenizers

RUN = CliRunner()
LEARNED = ["the woman ate the raccoon", "die Frau aß den Waschbären"] * 3
CROSS = "decoder.layers.0.cross_attention"


@pytest.fixture
def at_hand(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, make_model: Callable[..., Model]) -> Model:
    """The command line opens this model, whatever it is asked for, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(verb, "open_model", lambda path, threads: make_model())
    return make_model()


def explained(*words: str) -> object:
    return RUN.invoke(app, ["explain", "run", *words])


@pytest.mark.parametrize("name", ["a.html", "a.json", "a.safetensors", "a.svg"])
def test_each_form_is_written(name: str, at_hand: Model, tmp_path: Path) -> None:
    told = explained("the raccoon ate a fish", "-o", name)
    assert told.exit_code == 0, told.exception
    assert f"{name}: " in told.stderr and f"({(tmp_path / name).stat().st_size:,} bytes)" in told.stderr
    assert [path.name for path in tmp_path.iterdir()] == [name] and told.stdout == ""


def test_the_forms_tell_the_same(at_hand: Model, tmp_path: Path) -> None:
    for name in ("a.json", "a.safetensors"):
        assert explained("the raccoon ate a fish", "-o", name).exit_code == 0
    data, trace = json.loads((tmp_path / "a.json").read_text()), open_trace(tmp_path / "a.safetensors")
    assert data["tokens"]["written"] == list(trace.written)
    assert data["translation"] == at_hand.translate("the raccoon ate a fish")
    assert len(trace) > len(data["records"]), "the file has everything"


def test_a_png_where_resvg_is(at_hand: Model, tmp_path: Path) -> None:
    pytest.importorskip("resvg_py", reason="PNG is drawn by the extra package resvg-py")
    assert explained("the raccoon", "-o", "a.png", "--view", CROSS, "--head", "1").exit_code == 0
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


WRONG = {
    "no such form": (["fish", "-o", "a.pdf"], 2, "written as .html, .json, .safetensors, .svg, .png"),
    "no such folder": (["fish", "-o", "no/a.html"], 2, "mkdir -p no"),
    "a view of a page": (["fish", "-o", "a.html", "--view", CROSS], 2, "--view and --head choose a picture"),
    "no such view": (["fish", "-o", "a.svg", "--view", f"{CROSS}s"], 2, f"did you mean {CROSS}?"),
    "a head of no attention": (["fish", "-o", "a.svg", "--head", "0"], 2, "leave-one-out has no heads"),
    "no such head": (["fish", "-o", "a.svg", "--view", CROSS, "--head", "2"], 2, "heads 0 to 1, not 2"),
    "no text": (["  ", "-o", "a.html"], 2, "there is no text to look into"),
    "a long text": (["fish " * 40, "-o", "a.html"], 2, "has 40 tokens, the model reads 31 at once"),
    "no such setting": (["fish", "-o", "a.html", "--set", "bean=3"], 2, "bean"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_explained_is_said_and_nothing_is_written(name: str, at_hand: Model, tmp_path: Path) -> None:
    words, code, said = WRONG[name]
    told = explained(*words)
    assert isinstance(told.exception, ClearheadError), told.exception
    assert told.exception.exit_code == code and said in str(told.exception)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_is_no_file_is_said_at_once(at_hand: Model, tmp_path: Path) -> None:
    (tmp_path / "a.html").mkdir()
    (tmp_path / "file").touch()
    for name, said in (("a.html", "is a folder"), ("file/a.html", "is a file, not a folder")):
        told = explained("fish", "-o", name)
        assert told.exception.exit_code == 2 and said in str(told.exception)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.html", "file"]


def test_wrong_options_say_so_before_the_model_is_opened(at_hand: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(path: Path, threads: int | None) -> Model:
        raise AssertionError("the model was opened")

    monkeypatch.setattr(verb, "open_model", slow)
    for name in ("no such form", "no such folder", "a view of a page"):
        assert isinstance(explained(*WRONG[name][0]).exception, ClearheadError)


def test_a_png_without_resvg_exits_with_3(at_hand: Model, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(show, "import_module", lambda name: (_ for _ in ()).throw(ImportError(name)))
    told = explained("fish", "-o", "a.png")
    assert told.exception.exit_code == 3 and list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_the_old_page(at_hand: Model, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("the old page")

    def full(path: Path, data: bytes) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(page, "write_atomic", full)
    assert isinstance(explained("fish", "-o", "a.html").exception, OSError)
    assert (tmp_path / "a.html").read_text() == "the old page"


def test_a_folder_that_is_no_model(tmp_path: Path) -> None:
    """As a person meets it: one message, no traceback, exit code 2."""
    program = "from clearhead.cli.main import main; main()"
    words = [sys.executable, "-c", program, "explain", "no/run", "fish", "-o", str(tmp_path / "a.html")]
    told = subprocess.run(words, capture_output=True, text=True)
    assert told.returncode == 2 and told.stdout == ""
    assert told.stderr.startswith("error: no/run") and "Traceback" not in told.stderr
    assert list(tmp_path.iterdir()) == []


def test_what_is_written_is_what_translate_writes(make_model: Callable[..., Model]) -> None:
    for shape in ({}, {"kind": "recurrent"}, {"norm_order": "post", "positions": "learned"}):
        model = make_model(**shape)
        for changes in ({"beam": 3}, {"method": "greedy"}):
            found = explain(model, "the woman ate a fish", **changes)
            assert found.translation == model.translate("the woman ate a fish", **changes)


def test_neighbours_are_the_nearest_rows(make_model: Callable[..., Model]) -> None:
    model = make_model()
    found = explain(model, "the fish")
    table = model.network.get_parameter("source_embedding.table.weight").detach().double().numpy()
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    for token, near in zip(found.trace.ids("source"), found.neighbours, strict=True):
        cosines = unit @ unit[token]
        cosines[token] = -np.inf
        best = np.argsort(-cosines)[: len(near)]
        assert [text for text, _ in near] == [model.tokenizers.source.token(int(i)) for i in best]
        np.testing.assert_allclose([value for _, value in near], cosines[best], atol=1e-5)


def test_the_error_names_the_limit(make_model: Callable[..., Model]) -> None:
    with pytest.raises(DataError, match="translate cuts long texts"):
        explain(make_model(), "fish " * 99)


@pytest.mark.parametrize("view", ["leave-one-out", CROSS, f"{CROSS}.pattern", "encoder.layers.1.self_attention"])
def test_a_picture_shows_every_number(view: str, make_explained: Callable[..., Explained]) -> None:
    found = make_explained()
    drawn = ElementTree.fromstring(picture(found, view))
    titles = [e.text for e in drawn.iter("{http://www.w3.org/2000/svg}title")]
    path = view.removesuffix(".pattern")
    grid = found.left_out.values if view == "leave-one-out" else found.trace[f"{path}.pattern"].mean(0)
    assert len(titles) == grid.size
    words = " ".join(e.text or "" for e in drawn.iter("{http://www.w3.org/2000/svg}text"))
    assert "</script>" in words and (view == "leave-one-out" or "read from" in words)


def test_facts_are_of_the_model_that_was_built(make_explained: Callable[..., Explained]) -> None:
    """Settings that a kind does not use say nothing about it."""
    plain, recurrent = make_explained().facts, make_explained(kind="recurrent").facts
    assert (plain["n_heads"], plain["positions"], plain["norm"]) == (2, "sinusoidal", "layer")
    assert recurrent["n_heads"] == 1 and not {"positions", "norm", "norm_order"} & set(recurrent)
    assert "begun" not in plain


def test_the_list_of_pieces_is_the_source_s(make_model: Callable[..., Model]) -> None:
    both = make_model()
    larger = train_tokenizer([*LEARNED, *["one more word"] * 3], both.experiment.text)
    tokenizers = Tokenizers(both.tokenizers.source, larger)
    unequal = Model(Opened(both.path, both.experiment, tokenizers, both.network, both.about))
    assert facts(unequal)["vocabulary"] == both.tokenizers.source.vocab_size != larger.vocab_size
