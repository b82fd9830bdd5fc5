"""Ranking finished hypotheses.

rank = log P(output) / length^α          length counts EOS; α = 0 prefers short outputs, α = 1 the mean
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Hypothesis:
    """One output: its ids without EOS, its log-probability (EOS included), and whether it ended by itself."""

    tokens: tuple[int, ...]
    log_probability: float
    ended: bool
    rank: float

    @property
    def finish_reason(self) -> str:
        return "stop" if self.ended else "length"


def ranked(tokens: list[int], log_probability: float, ended: bool, alpha: float) -> Hypothesis:
    return Hypothesis(tuple(tokens), log_probability, ended, log_probability / (len(tokens) + ended) ** alpha)


def best(hypotheses: list[Hypothesis], n: int) -> list[Hypothesis]:
    """The n best, those that ended by themselves first; equal ranks keep their order."""
    return sorted(hypotheses, key=lambda h: (not h.ended, -h.rank))[:n]
