"""The results as one page of Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bench.goals import Goal

Results = dict[str, Any]


def report(results: Results, goals: Sequence[Goal]) -> str:
    parts = [head(results), goal_table(goals)]
    makers = (("limits", limit_lines), ("train", train_tables), ("decode", decode_tables), ("start", start_table))
    for name, make in (*makers, ("growth", growth_tables), ("text", text_lines)):
        if results.get(name):
            parts.append(make(results[name]))
    return "\n\n".join(parts) + "\n"


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Text to the left, figures to the right."""
    lines = [f"| {' | '.join(titles)} |", f"|{'---|' + '---:|' * (len(titles) - 1)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def number(value: float | None, form: str = ",.0f") -> str:
    return "–" if value is None else format(value, form)


def head(results: Results) -> str:
    about = results["about"]
    lines = [f"- {name}: {value}" for name, value in about.items() if value]
    lines += [f"- not there: {name} — {why}" for name, why in results.get("missing", {}).items()]
    return "\n".join(["# clearhead beside its peers", "", *lines])


def goal_table(goals: Sequence[Goal]) -> str:
    marks = {True: "yes", False: "no", None: "not measured"}
    rows = [(goal.what, goal.wanted, number(goal.reached, ".2f"), marks[goal.met]) for goal in goals]
    return "## Goals\n\n" + table(("what", "wanted", "reached", "met"), rows)


def limit_lines(found: Results) -> str:
    return (
        "## The machine\n\n"
        f"Large square products: float32 {number(found['float32'])} GFLOP/s, bf16 {number(found['bf16'])} GFLOP/s, "
        f"int8 {number(found['int8'])} GOP/s. Memory: {number(found['bandwidth'], ',.1f')} GB/s copied."
    )


def train_tables(sizes: Results) -> str:
    return "\n\n".join(train_table(size, found) for size, found in sizes.items())


def train_table(size: str, found: Results) -> str:
    own = found["own_shapes_gflops"]
    titles = ("contestant", "target tokens/s", "spread", "GFLOP/s", "of its products' rate", "peak MB")
    rows = [
        (name, f"failed: {r['failed']}", *["–"] * 4)
        if "failed" in r
        else (
            name,
            number(r["tokens_per_s"]),
            number(r["spread"], ".2f"),
            number(r.get("gflops")),
            number(r.get("fraction"), ".0%"),
            number(r["peak_mb"]),
        )
        for name, r in ordered(found["contestants"], lambda r: r.get("tokens_per_s"))
    ]
    limit = f"Products at its own shapes: float32 {number(own['float32'])}, bf16 {number(own['bf16'])} GFLOP/s."
    return f"## Training, {size}\n\n{table(titles, rows)}\n\n{limit}"


def decode_tables(sizes: Results) -> str:
    return "\n\n".join(decode_table(size, found) for size, found in sizes.items())


def decode_table(size: str, found: Results) -> str:
    quality = "BLEU" if size == "tiny" else "score error"
    titles = [f"{mode}{extra}" for mode in ("greedy", "beam 5") for extra in ("", f" {quality}", " same tokens")]
    rows = []
    for name, r in ordered(found, lambda r: r.get("greedy", {}).get("tokens_per_s")):
        if "failed" in r:
            rows.append((name, f"failed: {r['failed']}", *["–"] * 8))
            continue
        cells = [cell for mode in ("greedy", "beam 5") for cell in decode_cells(r[mode], size)]
        alone = r["single"]
        times = sorted(alone.get("milliseconds") or [])
        middle = times[len(times) // 2] if times else None
        single = [number(alone.get("tokens_per_s")), number(middle, ",.1f")]
        rows.append((name, *cells, *single, number(r.get("peak_mb"))))
    titles = ["contestant", *titles, "single", "single ms", "peak MB"]
    return f"## Decoding, {size} (output tokens/s)\n\n{table(titles, rows)}"


def decode_cells(found: Results, size: str) -> list[str]:
    quality = number(found.get("bleu"), ".1f") if size == "tiny" else number(found.get("score_error"), ".1e")
    return [number(found.get("tokens_per_s")), quality, number(found.get("agreement"), ".1%")]


def ordered(figures: Results, read: Any) -> Iterator[tuple[str, Any]]:
    """The fastest first, those that failed last."""
    yield from sorted(figures.items(), key=lambda item: -(read(item[1]) or 0.0))


def start_table(found: Results) -> str:
    rows = [
        (name, f"failed: {r['failed']}", "–")
        if "failed" in r
        else (name, number(r["seconds"], ".2f"), number(r["peak_mb"]))
        for name, r in found.items()
    ]
    return "## From cold to the first translation\n\n" + table(("program", "seconds", "peak MB"), rows)


def growth_tables(found: Results) -> str:
    parts = []
    for name, what in (("length", "tokens in and out"), ("batch", "sentences"), ("layers", "layers")):
        points = found.get(name) or {}
        if not points:
            continue
        contestants = list(next(iter(points.values())))
        rows = [(str(at), *(number(values.get(c), ",.3f") for c in contestants)) for at, values in points.items()]
        parts.append(f"Milliseconds per output token, by {what}:\n\n" + table((what, *contestants), rows))
    if found.get("pairs"):
        keys = ("build_pairs_per_s", "build_tokens_per_s", "read_tokens_per_s", "peak_rss_mb")
        rows = [(f"{int(at):,}", *(number(values[key]) for key in keys)) for at, values in found["pairs"].items()]
        titles = ("pairs", "pairs stored/s", "tokens stored/s", "tokens in batches/s", "peak MB")
        parts.append("A corpus of made-up pairs, stored and batched:\n\n" + table(titles, rows))
    return "## Growth\n\n" + "\n\n".join(parts)


def text_lines(found: Results) -> str:
    rates = found["tokens_per_s"]
    return (
        "## Text\n\n"
        f"Tokenised {number(found['tokens'])} tokens: {number(rates['first'])} tokens/s with nothing remembered, "
        f"{number(rates['again'])} when the words are known. Batches: {number(rates['batches'])} target tokens/s."
    )
