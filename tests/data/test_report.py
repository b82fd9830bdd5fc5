"""The data report: it counts right, agrees with the gate, and can be read by people and machines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from clearhead.config import DataSettings
from clearhead.data import duplicates
from clearhead.data.duplicates import Repeats
from clearhead.data.gate import Gate
from clearhead.data.lengths import LengthTally
from clearhead.data.readers import Pairs, open_pairs
from clearhead.data.report import Report, check, lines, show

GOOD = [(f"sentence number {i} here", f"Satz Nummer {i} hier") for i in range(100)]


@pytest.fixture
def corpus(tmp_path: Path):
    def opened(pairs: Sequence[tuple[str, str]], name: str = "pairs.jsonl") -> Pairs:
        path = tmp_path / name
        path.write_text("".join(json.dumps({"en": s, "de": t}) + "\n" for s, t in pairs), encoding="utf-8")
        return open_pairs([path], DataSettings())

    return opened


def named(report: Report) -> dict[str, int]:
    return {finding.name: finding.count for finding in report.findings}


def test_a_clean_corpus_has_nothing_to_remark(corpus) -> None:
    report = check(corpus(GOOD), DataSettings())
    assert (report.read, report.kept, report.dropped) == (100, 100, {})
    assert report.findings == ()
    assert lines(report)[-1] == "nothing to remark"
    assert (report.source.language, report.source.script) == ("en", "Latin")


def test_findings_have_counts_places_and_verdicts(corpus) -> None:
    bad = [("", "leer"), ("a\x00b", "ab"), ("x\x1b[31m %d", "y"), ("", ""), ("", "nichts"), ("", "noch")]
    report = check(corpus([*GOOD, *bad]), DataSettings())
    first = report.findings[0]
    assert (first.name, first.severity, first.verdict, first.count) == ("empty side", "serious", "drop", 4)
    assert first.share == 4 / 106
    assert [example.line for example in first.examples] == [101, 104, 105]
    control = next(finding for finding in report.findings if finding.name == "control characters")
    assert (control.count, control.verdict) == (2, "clean")
    assert control.examples[1].source == "x\\x1b[31m %d"
    assert report.dropped == {"empty side": 4} and report.kept == 102
    assert all("\x1b" not in line and "\x00" not in line for line in lines(report))


@pytest.mark.parametrize("gate", ["drop", "warn", "off"])
def test_the_report_keeps_what_the_gate_keeps(corpus, gate: str) -> None:
    settings = DataSettings(gate=gate)
    bad = [
        ("", "\x00"),
        ("\x00", "leer"),
        ("a b c d", "a b c d"),
        ("\n" * 40, "x"),
        ("x", "lang " * 20),
        ("", "lang " * 20),
        ("\u2028", "\t"),
    ]
    pairs = corpus([*GOOD, *bad, *GOOD[:5]])
    report = check(pairs, settings)
    through = Gate.learn(pairs, settings)
    assert report.kept == sum(1 for _ in through(pairs))
    assert report.dropped == (dict(through.dropped) if gate == "drop" else {})


def test_repeats_are_counted_and_kept(corpus) -> None:
    report = check(corpus([*GOOD, *GOOD[:7], *GOOD[:2], ("sentence number 3 here", "anders 3")]), DataSettings())
    assert named(report) == {"duplicate": 9, "several targets": 1}
    assert report.kept == 110
    examples = {finding.name: finding.examples for finding in report.findings}
    assert [example.line for example in examples["duplicate"]] == [101, 102, 103]
    assert examples["several targets"][0].target == "anders 3"


def test_leaks_from_the_held_out_set(corpus) -> None:
    held_out = corpus(
        [("Sentence number 5  here", "satz nummer 5 hier"), ("other 7", "Satz Nummer 7 hier")], "test.jsonl"
    )
    report = check(corpus(GOOD), DataSettings(), held_out=held_out)
    assert named(report) == {"held-out pair": 1, "held-out side": 2}
    assert report.kept == 100


def test_lengths_are_exact(corpus) -> None:
    report = check(corpus([("x " * i, "y") for i in range(1, 101)]), DataSettings(gate="off"))
    words = report.source.words
    assert words.percentiles == {5: 5, 25: 25, 50: 50, 75: 75, 95: 95, 99: 99}
    assert (words.mean, words.longest) == (50.5, 100)
    assert report.source.characters.longest == 200


def test_very_long_texts_do_not_break_the_counts() -> None:
    tally = LengthTally()
    tally.add(np.array([1, 1, 1, 5_000_000]))
    assert (tally.result().percentiles[50], tally.result().longest) == (1, 5_000_000)


def test_unknown_rates_come_from_a_sample(corpus) -> None:
    seen: list[int] = []

    def rate(sources: Sequence[str], targets: Sequence[str]) -> tuple[float, float]:
        seen.extend((len(sources), len(targets)))
        return 0.25, 0.0

    report = check(corpus(GOOD), DataSettings(), unknown_rate=rate)
    assert seen == [100, 100]
    assert (report.source.unknown, report.target.unknown) == (0.25, 0.0)
    assert "25.00% unknown" in "\n".join(lines(report))


def test_the_report_travels_as_json(corpus) -> None:
    report = check(corpus([*GOOD, ("a\u2028", "b")]), DataSettings())
    assert Report.model_validate_json(report.model_dump_json()) == report


def test_what_was_passed_over_is_said(corpus, tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("a\tb\n\n\nc\td\n")
    text = lines(check(open_pairs([path], DataSettings()), DataSettings()))
    assert text[0].endswith("TSV, columns 1 → 2")
    assert "2 × blank line, passed over while reading" in text
    assert "2 pairs read, 2 kept" in text


def test_examples_are_clipped_and_escaped() -> None:
    assert show("a\u202eb\n") == "a\\u202eb\\n"
    assert len(show("x" * 500)) == 80


def test_repeats_grow_past_their_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duplicates, "SLICE", 16)
    repeats = Repeats()
    for i in range(50):
        repeats.add([f"source {i}", f"source {i % 10}", "same"], [f"target {i}", f"target {i % 10}", f"other {i}"])
    # 50 + 50 + 50 pairs: of the second 50 all repeat one of the first ten, and "same" has 50 targets
    assert repeats.counts() == (50, 49)


def test_repeats_of_nothing() -> None:
    assert Repeats().counts() == (0, 0)
