"""docs/tour.md tells the truth: its lines run in order, and give what stands below them.

Numbers may differ by one in the last digit shown, white space may differ; nothing else.
"""

from __future__ import annotations

import doctest
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

TOUR = Path(__file__).parents[2] / "docs" / "tour.md"
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
INSIDE_BRACKETS = re.compile(r"(?<=[\[(])\s+|\s+(?=[\])])")


class Numbers(doctest.OutputChecker):
    """Compares what was shown with what came out, as numbers where there are numbers."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        if words(want) != words(got):
            return False
        return all(map(close, NUMBER.findall(want), NUMBER.findall(got)))


def words(shown: str) -> list[str]:
    """What was shown, with every number alike and white space of no account."""
    return INSIDE_BRACKETS.sub("", NUMBER.sub("#", shown)).split()


def close(want: str, got: str) -> bool:
    decimals = len(want.partition(".")[2])
    unit = 10.0**-decimals if decimals else 0.0
    return abs(float(want) - float(got)) <= 1.01 * unit


def code_alone(text: str) -> str:
    """Every line outside of Python blocks is blank; line numbers stay."""
    inside, lines = False, []
    for line in text.splitlines():
        if line.startswith("```"):
            inside = line == "```python"
            lines.append("")
        else:
            lines.append(line if inside else "")
    return "\n".join(lines) + "\n"


def run(text: str, name: str) -> tuple[int, str]:
    """How many examples were run, and what was wrong with them."""
    test = doctest.DocTestParser().get_doctest(code_alone(text), {"__name__": "tour"}, name, name, 0)
    told: list[str] = []
    doctest.DocTestRunner(checker=Numbers(), verbose=False).run(test, out=told.append)
    return len(test.examples), "".join(told)


@pytest.fixture
def nothing_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The tour writes into its folder and changes torch's habits; both end with the test."""
    monkeypatch.chdir(tmp_path)
    before = torch.get_default_dtype()
    yield
    torch.set_default_dtype(before)
    torch.set_printoptions(profile="default")


@pytest.mark.usefixtures("nothing_left_behind")
def test_the_tour_runs_and_shows_what_comes_out() -> None:
    examples, wrong = run(TOUR.read_text(encoding="utf-8"), "docs/tour.md")
    assert examples > 100
    assert not wrong, wrong


@pytest.mark.parametrize(
    ("want", "got", "same"),
    [
        ("0.12 [ 3]", "0.13  [3]", True),
        ("0.12", "0.14", False),
        ("3", "4", False),
        ("-0.00", "0.00", True),
        ("die Frau 0.9", "die Frau sah 0.9", False),
        ("True", "False", False),
    ],
)
def test_outputs_are_compared_as_numbers(want: str, got: str, same: bool) -> None:
    assert Numbers().check_output(want + "\n", got + "\n", 0) is same


def test_a_wrong_output_is_noticed() -> None:
    assert "Expected" in run("```python\n>>> 1 + 1\n3\n```\n", "wrong")[1]
