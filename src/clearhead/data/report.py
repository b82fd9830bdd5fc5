"""The data report: what a corpus holds and what is wrong with it, before any training.

`check` looks at every pair once, after one look for a sample, in memory that does not grow but for 8 bytes per pair
(see `duplicates`). What it says is dropped is what the gate drops. Knows counts and examples. Refuses to judge meaning,
and to draw for a terminal: `lines` is plain text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pydantic import BaseModel, ConfigDict

from clearhead.config import DataSettings
from clearhead.data.block import HeldOut
from clearhead.data.findings import Severity, Verdict
from clearhead.data.gate import BLOCK, blocks, learn_standards, sample_pairs
from clearhead.data.lengths import Lengths
from clearhead.data.readers.pairs import Pairs, passed_over
from clearhead.data.tally import EXAMPLES, Tally

UnknownRate = Callable[[Sequence[str], Sequence[str]], tuple[float, float]]
"""Sources and targets of a sample → the share of unknown tokens on each side."""

MARK = {"serious": "‼", "warning": "!", "note": "·"}
ORDER = list(MARK)


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Example(Frozen):
    """One pair of a finding, its texts clipped and their unprintable characters escaped."""

    file: str
    line: int
    source: str
    target: str


class Finding(Frozen):
    name: str
    meaning: str
    severity: Severity
    verdict: Verdict
    """What the gate does, as it is set: drop the pair, clean it, or keep it."""
    count: int
    share: float
    """Of the pairs read."""
    examples: tuple[Example, ...]


class Side(Frozen):
    language: str | None
    script: str | None
    """That of nearly all texts; None where there is no such script."""
    characters: Lengths
    words: Lengths
    """Runs between white space."""
    unknown: float | None
    """Share of unknown tokens in a sample, when a tokenizer was given."""


class Report(Frozen):
    said: tuple[str, ...]
    """How each file was read, the held-out ones last."""
    read: int
    kept: int
    """What the gate lets through, as it is set."""
    dropped: dict[str, int]
    """By reason; a pair with several counts once, under the first."""
    skipped: dict[str, int]
    """What the readers passed over."""
    source: Side
    target: Side
    findings: tuple[Finding, ...]
    """Those that were found, the most serious first."""


def check(
    pairs: Pairs,
    settings: DataSettings,
    *,
    unknown_rate: UnknownRate | None = None,
    held_out: Pairs | None = None,
) -> Report:
    """The report on all pairs. `held_out` are pairs that must not be among them."""
    sample = sample_pairs(pairs)
    tally = Tally(learn_standards(sample, settings, None if held_out is None else remember(held_out)))
    for block in blocks(pairs, BLOCK):
        tally.add(block)
    sides = [list(texts) for texts in zip(*sample, strict=True)] or [[], []]
    unknown = unknown_rate(sides[0], sides[1]) if unknown_rate is not None else (None, None)
    dropped = dict(tally.dropped) if settings.gate == "drop" else {}
    other = () if held_out is None else (*held_out.said, *held_out.passed_over)
    return Report(
        said=(*pairs.said, *(f"held out: {line}" for line in other)),
        read=tally.read,
        kept=tally.read - sum(dropped.values()),
        dropped=dropped,
        skipped=dict(pairs.skipped),
        source=describe_side(tally, 0, pairs.source, unknown[0]),
        target=describe_side(tally, 1, pairs.target, unknown[1]),
        findings=tuple(gather_findings(tally, settings)),
    )


def remember(pairs: Pairs) -> HeldOut:
    held_out = HeldOut()
    for pair in pairs:
        held_out.add(pair.source, pair.target)
    return held_out


def describe_side(tally: Tally, side: int, language: str | None, unknown: float | None) -> Side:
    return Side(
        language=language,
        script=(tally.standards.source_script, tally.standards.target_script)[side],
        characters=tally.characters[side].result(),
        words=tally.words[side].result(),
        unknown=unknown,
    )


def gather_findings(tally: Tally, settings: DataSettings) -> list[Finding]:
    tally.count_repeats()
    findings = [
        Finding(
            name=kind.name,
            meaning=kind.meaning,
            severity=kind.severity,
            verdict=kind.verdict if settings.gate == "drop" else "keep",
            count=tally.counts[kind.name],
            share=tally.counts[kind.name] / tally.read,
            examples=tuple(
                Example(file=pair.file, line=pair.line, source=show(pair.source), target=show(pair.target))
                for pair in tally.examples[kind.name][:EXAMPLES]
            ),
        )
        for kind in tally.kinds
        if tally.counts[kind.name]
    ]
    return sorted(findings, key=lambda finding: (ORDER.index(finding.severity), -finding.count))


def show(text: str, limit: int = 80) -> str:
    """For reading: clipped, and with every unprintable character as its escape."""
    clipped = text if len(text) <= limit else f"{text[: limit - 1]}…"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in clipped)


def lines(report: Report) -> list[str]:
    """The report as plain text."""
    text = list(report.said)
    text += passed_over(report.skipped)
    text.append(f"{report.read:,} pairs read, {report.kept:,} kept")
    text += [side_line(name, side) for name, side in (("source", report.source), ("target", report.target))]
    for finding in report.findings:
        text += finding_lines(finding)
    return text if report.findings else [*text, "nothing to remark"]


def side_line(name: str, side: Side) -> str:
    parts = [f"{name}{f' ({side.language})' if side.language else ''}: {side.script or 'mixed'} script"]
    for unit, lengths in (("characters", side.characters), ("words", side.words)):
        low, middle, high = (lengths.percentiles[p] for p in (5, 50, 95))
        parts.append(f"{low:,}–{middle:,}–{high:,} {unit} (5 % – half – 95 %), at most {lengths.longest:,}")
    if side.unknown is not None:
        parts.append(f"{side.unknown:.2%} unknown")
    return "; ".join(parts)


def finding_lines(finding: Finding) -> list[str]:
    done = {"drop": " — dropped", "clean": " — cleaned", "keep": ""}[finding.verdict]
    head = f"{MARK[finding.severity]} {finding.count:,} ({finding.share:.2%}) {finding.name}: {finding.meaning}{done}"
    return [head, *(f"    {e.file}:{e.line}  “{e.source}” → “{e.target}”" for e in finding.examples)]
