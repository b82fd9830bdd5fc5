"""The verb `show` as the command line has it: lists, JSON, files, exit codes; and its figures."""

from __future__ import annotations

import json
import math
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from clearhead.cli.main import app
from clearhead.errors import ClearheadError
from clearhead.truths import page, show
from clearhead.truths.figure import Bars, Curves, Figure, Heat, Listing, Table, number
from clearhead.truths.plot import characters
from clearhead.truths.registry import TRUTHS
from clearhead.truths.svg import element, in_cells, sheet
from clearhead.truths.truth import Given, Result, Truth
from clearhead.verbs import model as models

RUN = CliRunner()
FIGURES: list[Figure] = [
    Curves("two <curves>", "x", "y", {"a & b": [(0, 1.0), (1, 4.0), (2, 2.0)], "c": [(0, 3.0), (2, 3.0)]}),
    Curves("log", "x", "y", {"a": [(1, 1e-6), (10, 0.0), (100, 1.0)]}, log_x=True, log_y=True),
    Curves("round", "x", "y", {"a": [(0, 1), (1, 0), (0, -1)]}, joined=False, square=True),
    Heat("heat", ["<eos>", "b"], ["c", "d", "e"], [[0.0, 0.5, 1.0], [-1.0, 0.25, 0.0]]),
    Bars("bars", {"one": 1.0, "none": 0.0, "less": -0.5}),
    Table("table", ["what", "n"], [["<i>", "1"], ["b", "20"]]),
    Listing("listing", ["  as it stands", "</pre>"]),
]


def made(holds: bool | None) -> Truth:
    result = Result(
        {"measured": 0.125, "many": 12345678.0},
        {"it is <so>": bool(holds)},
        FIGURES,
        ["a note"],
        "" if holds is not None else "no model\n  → get one",
    )
    return Truth("made", "Z9", "It is “so” & so.", "it is not", "the <ingredient>", lambda given: result)


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> object:
    """One made-up truth in place of all."""
    monkeypatch.chdir(tmp_path)
    return lambda holds: monkeypatch.setattr(show, "TRUTHS", (made(holds),))


def test_the_list() -> None:
    told = RUN.invoke(app, ["show"])
    assert told.exit_code == 0 and len(told.stdout.splitlines()) == len(TRUTHS)
    listed = json.loads(RUN.invoke(app, ["show", "--json"]).stdout)
    assert listed == [{"name": t.name, "row": t.row, "claim": t.claim} for t in TRUTHS]


def test_one_truth_in_the_terminal_and_as_a_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    told = RUN.invoke(app, ["show", "database"])
    assert told.exit_code == 0
    assert "It holds." in told.stdout and "What would refute it:" in told.stdout and "✓" in told.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["database.html"]


def test_one_truth_as_json_writes_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    told = RUN.invoke(app, ["show", "database", "--json"])
    table = json.loads(told.stdout)
    assert set(table) == {"name", "claim", "measured", "holds"}
    assert table["holds"] is True and told.exit_code == 0 and list(tmp_path.iterdir()) == []
    told = RUN.invoke(app, ["show", "database", "--json", "--control"])
    assert json.loads(told.stdout)["holds"] is False and told.exit_code == 1


def test_a_control_leaves_the_proof_s_files_alone(
    only: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """And its picture says that it is one, and what came out."""
    only(False)
    drawn: list[str] = []

    class Renderer:
        def svg_to_bytes(self, svg_string: str, zoom: float) -> list[int]:
            drawn.append(svg_string)
            return [137]

    monkeypatch.setattr(show, "renderer", Renderer)
    for more in ([], ["--control"]):
        assert RUN.invoke(app, ["show", "made", "--png", *more]).exit_code == 1
    names = ["made-control.html", "made-control.png", "made.html", "made.png"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    plain, control = (" ".join(ElementTree.fromstring(svg).itertext()) for svg in drawn)
    assert "It does not hold." in plain and "Control" not in plain
    assert "It does not hold. (Control: without the <ingredient>.)" in control


@pytest.mark.parametrize(("holds", "code"), [(True, 0), (False, 1), (None, 3)])
def test_exit_codes(holds: bool | None, code: int, only: object, tmp_path: Path) -> None:
    only(holds)
    told = RUN.invoke(app, ["show", "made", "--json"])
    assert told.exit_code == code and json.loads(told.stdout)["holds"] is holds
    assert RUN.invoke(app, ["show", "--all"]).exit_code == code
    assert RUN.invoke(app, ["show", "made"]).exit_code == code
    assert (tmp_path / "made.html").exists() == (holds is not None), "nothing to show, nothing written"


def test_without_a_model_it_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(models, "PACKAGED", tmp_path / "nothing")
    told = RUN.invoke(app, ["show", "walk", "--json"])
    assert told.exit_code == 3 and json.loads(told.stdout)["holds"] is None
    assert "--model RUN" in told.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["wave"], "did you mean 'waves'?"),
        (["zzzzzz"], "`clearhead show` lists them"),
        (["waves", "--all"], "--all and 'waves' together"),
        (["waves", "--json", "--png"], "say where with -o FOLDER"),
        (["walk", "--model", "no/such/run"], "no/such/run"),
    ],
)
def test_wrong_words(words: list[str], said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    told = RUN.invoke(app, ["show", *words])
    assert isinstance(told.exception, ClearheadError) and told.exception.exit_code == 2
    assert said in str(told.exception) and list(tmp_path.rglob("*.html")) == []


def test_a_png_needs_resvg_and_says_so_before_the_experiment(only: object, monkeypatch: pytest.MonkeyPatch) -> None:
    only(True)
    monkeypatch.setattr(show, "import_module", lambda name: (_ for _ in ()).throw(ImportError(name)))
    told = RUN.invoke(app, ["show", "made", "--png"])
    assert told.exception.exit_code == 3 and "clearhead[png]" in str(told.exception)
    assert list(Path().iterdir()) == []


class Reader(HTMLParser):
    """What a browser would make of it: elements that are open, and text."""

    VOID = ("meta", "br", "link")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.seen.add(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attrs:
            assert not name.startswith("on") and "http:" not in (value or "").replace("http://www.w3.org", "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_is_whole_and_nothing_in_it_is_markup() -> None:
    truth = made(True)
    reader = Reader()
    reader.feed(page.page(truth, Given(), truth.prove(Given())))
    assert reader.open == [] and "script" not in reader.seen and "i" not in reader.seen
    for said in ("It is “so” & so.", "it is <so>", "<eos>", "two <curves>", "a & b", "</pre>", "a note", "0.125"):
        assert said in reader.text
    control = page.page(truth, Given(control=True), truth.prove(Given()))
    assert "(Control: without the &lt;ingredient&gt;.)" in control


def test_a_long_table_of_numbers_is_cut_and_says_so() -> None:
    figure = Curves("long", "x", "y", {"a": [(float(i), 0.5) for i in range(1000)]})
    shown = page.figure_part(figure)
    assert 'class="wide" role="region" tabindex="0" aria-label="long: the numbers"' in shown, "moves on a telephone"
    assert shown.count("<tr>") == page.MOST_ROWS + 1 and "The first 400 of 1000 rows." in shown


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.title)
def test_figures_in_characters_and_as_drawings(figure: Figure) -> None:
    lines = characters(figure)
    assert lines[0] == figure.title and len(lines) > 2 and max(map(len, lines)) < 100
    drawn = ElementTree.fromstring(element(figure))
    assert drawn.tag.endswith("svg") and drawn.attrib["aria-label"] == figure.title
    ElementTree.fromstring(sheet("title & more", [figure]))


def test_a_curve_does_not_run_through_its_axis_name() -> None:
    drawn = ElementTree.fromstring(element(Curves("c", "x", "named", {"a": [(0, 1.0), (1, 1.0), (2, 0.0)]})))
    texts = {text.text: text for text in drawn.iter("{http://www.w3.org/2000/svg}text")}
    line = next(drawn.iter("{http://www.w3.org/2000/svg}polyline")).attrib["points"]
    assert float(texts["named"].attrib["y"]) < min(float(point.split(",")[1]) for point in line.split())


def test_the_numbers_of_a_matrix_have_equally_many_decimals() -> None:
    """A number that rounds to nothing has no sign; whole numbers stay whole; wide ones still fit their cells."""
    assert in_cells([[0.74598, -0.0004], [0.083, 1.0]], 44) == [["0.75", "0.00"], ["0.08", "1.00"]]
    assert in_cells([[9.912, -0.018]], 37) == [["9.91", "-0.02"]]
    assert in_cells([[2, 0], [-1, 12]], 40) == [["2", "0"], ["-1", "12"]]
    assert in_cells([[1234.5, -0.25]], 30) == [["1234", "0"]]
    assert in_cells([[-math.inf, 0.5]], 60)[0][0] == "-inf"


def test_the_key_of_points_is_a_point() -> None:
    drawn = element(Curves("c", "x", "y", {"a": [(0.0, 0.0), (1.0, 1.0)]}, joined=False))
    assert drawn.count("<circle") == 3 and "<polyline" not in drawn


def test_a_drawing_stays_as_large_as_its_words_on_a_telephone() -> None:
    truth = made(True)
    drawn = page.page(truth, Given(), truth.prove(Given()))
    assert "svg{width:100%;min-width:32rem" in drawn and '<figure><div class="wide" role="region" tabindex="0"' in drawn


def test_bars_and_heat_in_characters_are_read_off() -> None:
    bars = characters(Bars("b", {"half": 0.5, "whole": 1.0}))
    assert bars[1].count("█") * 2 == bars[2].count("█") == 40 and bars[1].endswith(" 0.5")
    heat = characters(Heat("h", ["r"], ["a", "b"], [[0.0, 1.0]], 0.0, 1.0))
    assert heat[2].endswith("│  ██")
    signed = characters(Heat("h", ["r"], ["a", "b", "c"], [[-1.0, 0.0, 1.0]]))
    assert signed[2].endswith("▼▼··▲▲")
    assert characters(Heat("h", ["r"], ["▁a", "▁", "b"], [[0.0, 1.0, 0.0]]))[1].endswith("│a ▁ b")


@pytest.mark.parametrize(
    ("value", "said"), [(3, "3"), (1234567.0, "1,234,567"), (0.5, "0.5"), (1 / 3, "0.3333"), (0.00001, "1.0e-05")]
)
def test_numbers_as_they_are_printed(value: float, said: str) -> None:
    assert number(value) == said
