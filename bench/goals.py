"""What is to be reached, as ratios within one run; and whether it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from bench.rounds import ratio

Results = dict[str, Any]


@dataclass(frozen=True)
class Goal:
    what: str
    wanted: str
    reached: float | None
    """None when a part was not run, or a contestant is missing."""
    met: bool | None

    def as_table(self) -> dict[str, Any]:
        return asdict(self)


def at_least(what: str, wanted: float, reached: float | None, unit: str = "×") -> Goal:
    return Goal(what, f"≥ {wanted:g} {unit}".rstrip(), reached, None if reached is None else reached >= wanted)


def at_most(what: str, wanted: float, reached: float | None, unit: str = "×") -> Goal:
    return Goal(what, f"≤ {wanted:g} {unit}".rstrip(), reached, None if reached is None else reached <= wanted)


def goals(results: Results) -> list[Goal]:
    return [*training(results), *decoding(results), *single(results), *memory(results), *data(results)]


def best(figures: Results, beginning: str, read: Callable[[Any], float | None]) -> float | None:
    """The largest figure among contestants whose names begin so."""
    found = [value for name, result in figures.items() if name.startswith(beginning) and (value := read(result))]
    return max(found) if found else None


def training(results: Results) -> Iterator[Goal]:
    for size, over_joey, over_hf in (("tiny", 7.0, 3.5), ("base", 5.0, 1.7)):
        part = results.get("train", {}).get(size, {})
        figures = part.get("contestants", {})

        def rate(result: Any) -> float | None:
            return result.get("tokens_per_s")

        ours = best(figures, "clearhead", rate)
        yield at_least(f"train {size}: over JoeyNMT", over_joey, ratio(ours, best(figures, "JoeyNMT", rate)))
        yield at_least(f"train {size}: over Hugging Face's best", over_hf, ratio(ours, best(figures, "Hugging", rate)))
    fraction = results.get("train", {}).get("base", {}).get("contestants", {}).get("clearhead bf16", {}).get("fraction")
    yield at_least("train base: fraction of the bf16 products' rate at its own shapes", 0.75, fraction, "")


def figure(figures: Results, name: str, mode: str) -> float | None:
    return figures.get(name, {}).get(mode, {}).get("tokens_per_s")


def decoding(results: Results) -> Iterator[Goal]:
    for size, eight in (("tiny", 1.3), ("base", 1.6)):
        figures = results.get("decode", {}).get(size, {})
        for mode in ("greedy", "beam 5"):
            theirs = figure(figures, "CTranslate2 float32", mode)
            reached = ratio(figure(figures, "clearhead float32", mode), theirs)
            yield at_least(f"decode {size}, {mode}: float32 over CTranslate2's float32", 1.3, reached)
            theirs = best(figures, "CTranslate2", lambda result, mode=mode: result.get(mode, {}).get("tokens_per_s"))
            reached = ratio(figure(figures, "clearhead int8", mode), theirs)
            yield at_least(f"decode {size}, {mode}: int8 over CTranslate2's best type", eight, reached)
    figures = results.get("decode", {}).get("tiny", {})
    for mode in ("greedy", "beam 5"):
        exact, whole = (figures.get(f"clearhead {p}", {}).get(mode, {}).get("bleu") for p in ("float32", "int8"))
        lost = None if exact is None or whole is None else exact - whole
        yield at_most(f"decode tiny, {mode}: BLEU lost by int8", 0.2, lost, "BLEU")


def single(results: Results) -> Iterator[Goal]:
    for size, ours, wanted in (("tiny", "float32", 1.3), ("base", "int8", 2.0)):
        figures = results.get("decode", {}).get(size, {})
        theirs = best(figures, "CTranslate2", lambda result: result.get("single", {}).get("tokens_per_s"))
        reached = ratio(figure(figures, f"clearhead {ours}", "single"), theirs)
        yield at_least(f"decode {size}, single sentence: {ours} over CTranslate2's best type", wanted, reached)


def memory(results: Results) -> Iterator[Goal]:
    torch_mb = results.get("start", {}).get("import torch", {}).get("peak_mb")
    for size in ("tiny", "base"):
        figures = results.get("decode", {}).get(size, {})
        for kind in ("float32", "int8"):
            ours, theirs = (figures.get(f"{name} {kind}", {}).get("peak_mb") for name in ("clearhead", "CTranslate2"))
            reached = None
            if ours and theirs and torch_mb:
                reached = (ours - torch_mb) / theirs
            what = f"memory {size}, {kind}: above `import torch`, over CTranslate2's"
            yield at_most(what, 1.5, reached)


def data(results: Results) -> Iterator[Goal]:
    rates = results.get("text", {}).get("tokens_per_s", {})
    first = rates.get("first")
    yield at_least("tokenise, nothing remembered", 1.0, first and first / 1e6, "M tokens/s")
    learned = results.get("train", {}).get("tiny", {}).get("contestants", {}).get("clearhead bf16", {})
    reached = ratio(rates.get("batches"), learned.get("tokens_per_s"))
    yield at_least("batches made, over tokens trained (tiny)", 20.0, reached)
