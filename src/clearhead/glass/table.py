"""What each record is, by the name of its tap: kind, axes, and the records it is computed from.

    encoder.layers.0.attention_residual.before   the stream as it comes
                                       .norm.in, .norm.out
    encoder.layers.0.self_attention.query, .key, .value, .products, .bias, .scores, .pattern, .mixed, .heads, .out
    encoder.layers.0.attention_residual.added, .after

One table for every network: a name says what a number is, whichever class it comes from. `heads`, `probabilities`
and the constants below are derived by the tracer; all else is a tap in a brick.

Knows names. Refuses to know tensors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

STREAM = ("position", "channel")
HEADS = ("head", "position", "channel")
GRID = ("head", "query", "key")

SHAPES: dict[str, tuple[str, tuple[str, ...]]] = {
    "tokens": ("embedding", STREAM),
    "positions": ("embedding", STREAM),
    "sum": ("embedding", STREAM),
    "query": ("vector", HEADS),
    "key": ("vector", HEADS),
    "value": ("vector", HEADS),
    "mixed": ("vector", HEADS),
    "heads": ("vector", HEADS),
    "products": ("score", GRID),
    "bias": ("score", GRID),
    "scores": ("score", GRID),
    "pattern": ("pattern", GRID),
    "gate": ("gate", STREAM),
    "logits": ("logit", ("position", "vocabulary")),
    "probabilities": ("probability", ("position", "vocabulary")),
}
"""By the last part of the name; everything else is the stream, or what is added to it: (position, channel)."""

RESIDUALS = {
    "encoder.self_attention": "attention_residual",
    "decoder.self_attention": "self_residual",
    "decoder.cross_attention": "cross_residual",
    "encoder.feedforward": "feedforward_residual",
    "decoder.feedforward": "feedforward_residual",
    "encoder.convolution": "residual",
}
PARTS = {f"{key.split('.')[0]}.{residual}": key.split(".")[1] for key, residual in RESIDUALS.items()}


def shape_of(name: str) -> tuple[str, tuple[str, ...]]:
    """Kind and axes of a tap."""
    last = name.rsplit(".", 1)[-1]
    if name.endswith("feedforward.hidden"):
        return "activation", ("position", "unit")
    return SHAPES.get(last, ("stream", STREAM))


class Lineage:
    """Who is computed from whom, among the names that were heard."""

    def __init__(self, names: Sequence[str], shared: Sequence[str] = ()) -> None:
        """`shared` are those that no sentence changes: they follow from places and weights alone."""
        self.names = list(names)
        self.known = set(names)
        self.shared = set(shared)

    def of(self, name: str) -> tuple[str, ...]:
        """The records this one is computed from."""
        if name in self.shared:
            return ()
        for pattern, rule in RULES:
            if match := re.fullmatch(pattern, name):
                found = rule(self, *match.groups())
                return tuple(n for n in found if n in self.known and n != name)
        return ()

    def pre(self, half: str) -> bool:
        """Is the stream of this half normalised before its parts? Then there is one more norm at its end."""
        return f"{half}.norm.out" in self.known

    def ends(self, half: str) -> list[str]:
        """What a half's layers leave on the stream, in order: its residuals, or a recurrence's outputs."""
        stream = [n for n in self.names if re.fullmatch(rf"{half}\.layers\.\d+\.\w*residual\.after", n)]
        return stream or [n for n in self.names if re.fullmatch(rf"{half}\.layers\.\d+\.out", n)]

    def result(self, half: str) -> list[str]:
        """What the half hands on."""
        if self.pre(half):
            return [f"{half}.norm.out"]
        ends = self.ends(half)
        return ends[-1:] if ends and ends[-1].endswith(".after") else ends

    def before(self, residual: str) -> list[str]:
        """The stream as it comes to this residual."""
        half = residual.split(".")[0]
        ends = self.ends(half)
        place = ends.index(f"{residual}.after") if f"{residual}.after" in ends else 0
        return [ends[place - 1]] if place else [f"{embedding(half)}.sum"]

    def entering(self, part: str) -> list[str]:
        """What a part of a layer reads from the stream."""
        half, last = part.split(".")[0], part.rsplit(".", 1)[-1]
        residual = RESIDUALS.get(f"{half}.{last}")
        if residual is None:
            return self.ends(half)
        path = f"{part.rsplit('.', 1)[0]}.{residual}"
        return [f"{path}.norm.out"] if self.pre(half) else [f"{path}.before"]

    def below(self, half: str, depth: str) -> list[str]:
        """What a recurrent layer reads: the outputs of those below it, added up."""
        lower = [f"{half}.layers.{i}.out" for i in range(int(depth))] or [f"{embedding(half)}.sum"]
        return [*lower, "memory"] if half == "decoder" else lower


def embedding(half: str) -> str:
    return "source_embedding" if half == "encoder" else "target_embedding"


def added(residual: str) -> str:
    """The output of the part whose residual this is."""
    layer, last = residual.rsplit(".", 1)
    return f"{layer}.{PARTS[layer.split('.')[0] + '.' + last]}.out"


def normed(lineage: Lineage, half: str, residual: str | None) -> list[str]:
    """What comes into a norm."""
    if residual is None:
        return lineage.ends(half)[-1:]
    path = f"{half}.{residual}"
    return [f"{path}.before"] if lineage.pre(half) else [f"{path}.before", f"{path}.added"]


def summed(lineage: Lineage, half: str, residual: str) -> list[str]:
    path = f"{half}.{residual}"
    return [f"{path}.before", f"{path}.added"] if lineage.pre(half) else [f"{path}.norm.out"]


def read(lineage: Lineage, path: str) -> list[str]:
    """Where keys and values come from."""
    return lineage.entering(path) if path.endswith("self_attention") else ["memory"]


def norm_parts(path: str) -> list[str]:
    names = ("weight", "bias", "eps", "centred", "running_mean", "running_variance")
    return [f"{path}.in", *(f"{path}.{name}" for name in names)]


Rule = Callable[..., Sequence[str]]
ATTENTION = r"(.+\.(?:self_attention|cross_attention|attention))"
RESIDUAL = r"(encoder|decoder)\.(layers\.\d+\.\w*residual)"
RULES: list[tuple[str, Rule]] = [
    (r"(source|target)_embedding\.tokens", lambda t, side: [f"{side}_ids"]),
    (r"(\w+_embedding)\.sum", lambda t, path: [f"{path}.tokens", f"{path}.positions"]),
    (rf"{RESIDUAL}\.before", lambda t, half, path: t.before(f"{half}.{path}")),
    (rf"{RESIDUAL}\.added", lambda t, half, path: [added(f"{half}.{path}")]),
    (rf"{RESIDUAL}\.after", summed),
    (rf"{RESIDUAL}\.norm\.in", normed),
    (r"(encoder|decoder)\.norm\.in", lambda t, half: normed(t, half, None)),
    (r"(.*norm)\.out", lambda t, path: norm_parts(path)),
    (rf"{ATTENTION}\.query", lambda t, path: t.entering(path)),
    (rf"{ATTENTION}\.(?:key|value)", read),
    (rf"{ATTENTION}\.products", lambda t, path: [f"{path}.query", f"{path}.key"]),
    (rf"{ATTENTION}\.bias", lambda t, path: [f"{path}.query"]),
    (rf"{ATTENTION}\.scores", lambda t, path: [f"{path}.products", f"{path}.scale", f"{path}.bias"]),
    (rf"{ATTENTION}\.pattern", lambda t, path: [f"{path}.scores"]),
    (rf"{ATTENTION}\.mixed", lambda t, path: [f"{path}.pattern", f"{path}.value"]),
    (rf"{ATTENTION}\.heads", lambda t, path: [f"{path}.mixed"]),
    (rf"{ATTENTION}\.out", lambda t, path: [f"{path}.heads", f"{path}.out_bias"]),
    (r"(.+\.feedforward)\.hidden", lambda t, path: t.entering(path)),
    (r"(.+\.feedforward)\.out", lambda t, path: [f"{path}.hidden"]),
    (r"(.+\.convolution)\.gate", lambda t, path: t.entering(path)),
    (r"(.+\.convolution)\.out", lambda t, path: [*t.entering(path), f"{path}.gate"]),
    (r"(encoder|decoder)\.layers\.(\d+)\.out", lambda t, half, depth: t.below(half, depth)),
    (r"decoder\.hidden", lambda t: [*t.ends("decoder"), "decoder.attention.out"]),
    (r"memory", lambda t: t.result("encoder")),
    (r"hidden", lambda t: ["decoder.hidden"] if "decoder.hidden" in t.known else t.result("decoder")),
    (r"logits", lambda t: ["hidden"]),
    (r"probabilities", lambda t: ["logits"]),
    (r"likeliest_ids", lambda t: ["logits"]),
    (r"written_log_probabilities", lambda t: ["probabilities", "written_ids"]),
    (r"written_(rows|bias)", lambda t, part: ["written_ids"]),
]
