"""The page in a real browser: web/tests/page.mjs opens it in headless Chromium with the network blocked."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from clearhead.explore.document import document
from clearhead.explore.page import static, write_page
from clearhead.verbs.explain import Explained, explain
from clearhead.verbs.model import Model

WEB = Path(__file__).parents[2] / "web"
NODE = shutil.which("node")
BROWSERS = (os.environ.get("CHROMIUM", ""), "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome")
TOOLLESS = (NODE is None and "Node is not installed") or (
    not (WEB / "node_modules" / "playwright-core").is_dir() and "web/node_modules is not there: cd web && npm ci"
)
LACKING = TOOLLESS or (
    not any(map(os.path.exists, filter(None, BROWSERS))) and "Chromium is not installed (CHROMIUM=path names one)"
)
in_chromium = pytest.mark.skipif(bool(LACKING), reason=str(LACKING))


def said(found: Explained, folder: Path) -> str:
    """The words of every stop and view."""
    write_page(document(found), folder / "a.html")
    words = [str(NODE), "tests/said.mjs", str(folder / "a.html")]
    return subprocess.run(words, cwd=WEB, check=True, capture_output=True, text=True, timeout=300).stdout


def opened(page: Path) -> None:
    words = [str(NODE), "tests/page.mjs", str(page)]
    told = subprocess.run(words, cwd=WEB, capture_output=True, text=True, timeout=300)
    assert told.returncode == 0, told.stdout + told.stderr
    assert told.stdout == "the page is in order\n"


@pytest.mark.skipif(bool(TOOLLESS), reason=str(TOOLLESS))
def test_the_built_page_is_what_the_sources_make(tmp_path: Path) -> None:
    words = [str(NODE), "node_modules/vite/bin/vite.js", "build", "--outDir", str(tmp_path), "--emptyOutDir"]
    subprocess.run(words, cwd=WEB, check=True, capture_output=True, timeout=300)
    for file in sorted(tmp_path.iterdir()):
        assert file.read_text() == static(file.name), f"{file.name} is older than web/: make web"


@in_chromium
def test_every_view_in_chromium(tmp_path: Path, make_explained: Callable[..., Explained]) -> None:
    """Dark and light, by keyboard, on a telephone; no message, no request, no violation; `</script>` is a word."""
    found = make_explained()
    assert "</script>" in found.trace.source
    write_page(document(found), tmp_path / "a.html")
    opened(tmp_path / "a.html")


@in_chromium
@pytest.mark.slow
@pytest.mark.parametrize(
    "shape",
    [
        {"kind": "recurrent"},
        {"kind": "convolutional"},
        {"positions": "rotary", "n_kv_heads": 1, "encoder_layers": 1, "decoder_layers": 4},
        {"positions": "alibi", "norm_order": "post", "norm": "rms"},
    ],
    ids=str,
)
def test_every_kind_of_model_in_chromium(shape: dict, tmp_path: Path, make_explained: Callable[..., Explained]) -> None:
    write_page(document(make_explained(beam=1, **shape)), tmp_path / "a.html")
    opened(tmp_path / "a.html")


SAID: list[tuple[dict, list[str], list[str]]] = [
    (
        {"kind": "recurrent"},
        [
            "recurrent, 2 + 1 layers, 1 head,",
            "goes through the pieces one after the other",
            "The stream: a recurrent model",
        ],
        ["limit of size", "act inside attention"],
    ),
    (
        {"positions": "none", "scale_scores": False},
        ["told no places", "score=q·k"],
        ["act inside attention", "add up, scale"],
    ),
    (
        {"positions": "alibi", "norm": "rms"},
        ["mean square 1, then a learned factor.", "a bias for the distance"],
        ["x−μ"],
    ),
    ({"norm": "batch", "bias": False}, ["batches of training", "factor and shift"], ["mean 0 and variance 1"]),
    ({"embedding_scale": False}, ["mean 0 and variance 1", "x=E[piece]", "score=q·kdk"], ["x=D"]),
]
"""What a page says of a model, and what would be another's."""


@in_chromium
@pytest.mark.parametrize(("shape", "true", "false"), SAID, ids=lambda part: str(part) if isinstance(part, dict) else "")
def test_what_is_said_is_said_of_this_model(
    shape: dict, true: list[str], false: list[str], tmp_path: Path, make_explained: Callable[..., Explained]
) -> None:
    text = said(make_explained(beam=1, **shape), tmp_path)
    assert [words for words in true if words not in text] == []
    assert [words for words in false if words in text] == []


@in_chromium
def test_how_the_output_began_and_ended(tmp_path: Path, make_model: Callable[..., Model]) -> None:
    model = make_model()
    cut = said(explain(model, "the raccoon", prefix="der Fisch", max_extra=1, max_ratio=0.01), tmp_path)
    assert "begun with “der Fisch”" in cut and "this is the longest that was allowed" in cut


@in_chromium
def test_places_where_another_word_was_likelier_are_named(tmp_path: Path, make_model: Callable[..., Model]) -> None:
    """What it was made to begin with is seldom the likeliest: the page names both words and their chances."""
    found = explain(make_model(), "the raccoon", prefix="der Fisch")
    place = found.trace.likelier()[0]
    page = said(found, tmp_path)
    assert f"At {len(found.trace.likelier())} of {len(found.trace.written)} places another word was likelier" in page
    for probability in (place.probability, place.likeliest_probability):
        assert probability < 0.0005 or f"{100 * probability:.1f} %" in page
    assert place.likeliest in page and "made to begin with given words" in page
    assert "every word written was the likeliest" not in page


@in_chromium
@pytest.mark.slow
def test_a_page_without_room_for_all_says_so(tmp_path: Path, make_explained: Callable[..., Explained]) -> None:
    write_page(document(make_explained(), 6_000), tmp_path / "a.html")
    opened(tmp_path / "a.html")
