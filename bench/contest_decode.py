"""Decoding, side by side: the same weights, the same chunks of 64 sources, greedy and beam 5, and sentence by sentence.

tiny: first everybody translates the test set (that is the warm-up, and the BLEU), then rounds of a few chunks.
base: outputs of 20 tokens: nobody may write more, and the weights never end one sooner. Beside the speed stands the
score error: how far the log-probability a contestant claims for its output is from the one computed in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from bench.children import Child, Failed
from bench.rounds import Series, play

BATCH = 64
FIXED = 20
MODES = {"greedy": 1, "beam 5": 5, "single": 1}
Say = Callable[[str], None]


@dataclass
class Contestant:
    """One program in one precision, running."""

    name: str
    child: Child
    never: bool
    """Does it count what is never written as impossible?"""
    results: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Work:
    """What a contest is about."""

    size: str
    chunks: list[list[list[int]]]
    singles: list[list[list[int]]]
    test: list[list[list[int]]]
    places: list[int]
    max_length: int
    rounds: int


def outputs_of(answer: dict[str, Any]) -> list[list[int]]:
    found: list[list[int]] = answer["outputs"]
    return found


def rate(answer: dict[str, Any]) -> float:
    """Output tokens per second, the ends not counted."""
    return sum(map(len, outputs_of(answer))) / sum(answer["seconds"])


def contest(work: Work, contestants: Sequence[Contestant], workshop: Child, say: Say) -> dict[str, Any]:
    """Everybody's figures, by name."""
    for contestant in contestants:
        try:
            warm_up(work, contestant, workshop)
        except Failed as error:
            contestant.results["failed"] = str(error)
    running = {c.name: c for c in contestants if "failed" not in c.results}
    agree(running)
    for mode in MODES:
        series = play(list(running), work.rounds, partial(turn, running, mode, work))
        for name, found in series.items():
            running[name].results[mode] |= described(found)
            shown = f"{found.median:,.0f} tokens/s" if found.median else found.failed
            say(f"decode {work.size} {mode:<7} {name:<28} {shown}")
    for contestant in running.values():
        contestant.results["peak_mb"] = contestant.child.peak_mb
    return {contestant.name: contestant.results for contestant in contestants}


def turn(running: Mapping[str, Contestant], mode: str, work: Work, name: str) -> float:
    contestant, sources = running[name], work.singles if mode == "single" else work.chunks
    answer = contestant.child.ask("decode", chunks=sources, beam=MODES[mode], max_length=work.max_length)
    if mode == "single":
        times = contestant.results[mode].setdefault("milliseconds", [])
        times += [1000 * seconds for seconds in answer["seconds"]]
    if work.size == "base" and any(len(tokens) != FIXED for tokens in outputs_of(answer)):
        raise Failed(f"not every output has {FIXED} tokens")
    return rate(answer)


def warm_up(work: Work, contestant: Contestant, workshop: Child) -> None:
    """Not timed: quality, and whatever a program does the first time."""
    for mode, beam in MODES.items():
        contestant.results[mode] = {}
        if mode == "single":
            contestant.child.ask("decode", chunks=work.singles[:1], beam=1, max_length=work.max_length)
        elif work.size == "tiny":
            answer = contestant.child.ask("decode", chunks=work.test, beam=beam, max_length=work.max_length)
            contestant.results[mode] |= workshop.ask("bleu", outputs=answer["outputs"], places=work.places)
            contestant.results[mode]["outputs"] = answer["outputs"]
        else:
            answer = contestant.child.ask(
                "decode", chunks=work.chunks, beam=beam, max_length=FIXED, raw_scores=beam == 1
            )
            contestant.results[mode]["outputs"] = answer["outputs"]
            if beam == 1:
                sources = [source for chunk in work.chunks for source in chunk]
                told = {"outputs": answer["outputs"], "scores": answer["scores"], "never": contestant.never}
                contestant.results[mode] |= workshop.ask("score_error", name="base", sources=sources, **told)


def agree(running: dict[str, Contestant]) -> None:
    """How many of each one's tokens are those of clearhead in float32; the outputs themselves are not kept."""
    reference = running.get("clearhead float32")
    for mode in MODES:
        wanted = reference.results[mode].get("outputs") if reference else None
        for contestant in running.values():
            if wanted is not None and "outputs" in contestant.results[mode]:
                contestant.results[mode]["agreement"] = agreement(contestant.results[mode]["outputs"], wanted)
    for contestant in running.values():
        for mode in MODES:
            contestant.results[mode].pop("outputs", None)


def agreement(found: list[list[int]], wanted: list[list[int]]) -> float:
    """The share of places where both wrote the same token; a missing token is another one."""
    places = sum(max(len(a), len(b)) for a, b in zip(found, wanted, strict=True))
    equal = sum(x == y for a, b in zip(found, wanted, strict=True) for x, y in zip(a, b, strict=False))
    return equal / places if places else 1.0


def described(series: Series) -> dict[str, Any]:
    if series.failed is not None:
        return {"failed": series.failed}
    return {"tokens_per_s": series.median, "rounds": series.values, "spread": series.spread}
