"""A trace: every number of one pass as typed data.

    t["decoder.layers.0.cross_attention.pattern"]      the numbers, batch dropped
    t["decoder.layers.0.cross_attention.pattern[0,2,3]"]   one of them, by the address a page shows for it
    t.axes(name), t.labels(name)                       what the dimensions are, and the tokens that stand along them
    t.record(name).computed_from                       the records it was made of

A file of it is in the safetensors layout (layout.py). What is not a tensor (axes, kinds, tokens, provenance, the
beam's tree) stands in the header as JSON text.

Knows names, arrays and printed tokens. Refuses to know torch and networks: a saved trace is opened without torch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from clearhead.errors import ModelFileError, UsageError, nearest
from clearhead.files.atomic import write_atomic
from clearhead.glass import shown
from clearhead.glass.layout import Array, from_file, to_bytes

FORMAT = "clearhead trace 1"


@dataclass(frozen=True)
class Record:
    """One tensor of the pass."""

    name: str
    axes: tuple[str, ...]
    """What each dimension is: head, query, key, position, channel, unit, vocabulary."""
    kind: str
    values: Array
    computed_from: tuple[str, ...]
    """The records of the same trace that these numbers were computed from; weights of the network come besides."""


@dataclass(frozen=True)
class Parity:
    """The teacher-forced pass beside the decoder, which made the same output step by step from a cache."""

    largest_difference: float
    """Of the running log-probability of the output, over its positions."""
    not_likeliest: tuple[int, ...]
    """Positions where the word written is not the one the pass finds likeliest. Greedy: should be none."""


@dataclass(frozen=True)
class Likelier:
    """A place where the pass finds another word likelier than the one that was written, or given."""

    position: int
    written: str
    written_id: int
    probability: float
    likeliest: str
    likeliest_id: int
    likeliest_probability: float

    def __str__(self) -> str:
        written, likeliest = (
            f"{self.written} {self.probability:.1%}",
            f"{self.likeliest} {self.likeliest_probability:.1%}",
        )
        return f"place {self.position}: {written}, likeliest {likeliest}"


@dataclass(frozen=True)
class Provenance:
    """Where the numbers come from."""

    network: str
    dtype: str
    output: str
    """How the output came about: "given", "greedy", "sample", "beam 5"."""
    ended: bool
    """Did the output end by itself, with EOS?"""
    edits: tuple[str, ...] = ()
    """Interventions that were on: the numbers are then an edited model's."""
    parity: Parity | None = None


@dataclass(frozen=True)
class Node:
    """One candidate of a beam search."""

    parent: int
    """Its place in the list of nodes; −1 for the beginning."""
    token: int
    text: str
    length: int
    log_probability: float
    """The sum so far."""
    rank: float
    """The sum over length to the power of the length penalty."""
    fate: str
    """kept · pruned · finished · unfinished (alive when the search ended)"""
    needed: float | None = None
    """Of a pruned node: the sum it would have had to beat."""


class Trace:
    """The records of one pass over a source and an output."""

    def __init__(
        self,
        records: Mapping[str, Record],
        source: Sequence[str],
        target: Sequence[str],
        written: Sequence[str],
        provenance: Provenance,
        tree: Sequence[Node] = (),
        likeliest: Sequence[str] = (),
    ) -> None:
        self._records = dict(records)
        self.source = tuple(source)
        self.target = tuple(target)
        """What the decoder read: the start token, then the output so far."""
        self.written = tuple(written)
        """What stands at each of its positions as the next word."""
        self.provenance = provenance
        self.tree = tuple(tree)
        self.likeliest = tuple(likeliest)
        """What the pass finds likeliest at each of its positions, among the words that may be written."""

    def names(self, kind: str | None = None) -> list[str]:
        """All records, in the order of computation, or those of one kind."""
        return [name for name, record in self._records.items() if kind in (None, record.kind)]

    def record(self, name: str) -> Record:
        if name not in self._records:
            close = nearest(name, self._records)
            hint = f"did you mean {close}?" if close else "t.names() lists what there is"
            raise UsageError(f"no record is called {name!r}", hint=hint)
        return self._records[name]

    def __getitem__(self, address: str) -> Array:
        """The numbers of a record; with a place behind its name, [head,query,key], the number or vector there."""
        name, place = parsed(address)
        values = self.record(name).values
        if len(place) > values.ndim or any(i >= size for i, size in zip(place, values.shape, strict=False)):
            raise UsageError(f"{name} has {' × '.join(map(str, values.shape))} numbers; there is none at {list(place)}")
        return values[place] if place else values

    def __contains__(self, name: object) -> bool:
        return name in self._records

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def __repr__(self) -> str:
        edited = f", {len(self.provenance.edits)} edits on" if self.provenance.edits else ""
        return f"<trace of {len(self.source)} → {len(self.written)} tokens, {len(self)} records{edited}>"

    def _repr_html_(self) -> str:
        return shown.trace(self)

    def axes(self, name: str) -> tuple[str, ...]:
        return self.record(name).axes

    def labels(self, name: str) -> tuple[tuple[str, ...] | None, ...]:
        """For each axis the tokens that stand along it, or None."""
        return tuple(self._tokens(name, axis) for axis in self.axes(name))

    def _tokens(self, name: str, axis: str) -> tuple[str, ...] | None:
        if axis not in ("query", "key", "position"):
            return None
        if name.startswith("written"):
            return self.written
        if name.startswith("likeliest"):
            return self.likeliest
        own = self.source if name.startswith(("source", "encoder", "memory")) else self.target
        reads_memory = name.endswith((".key", ".value")) if axis == "position" else axis == "key"
        return self.source if reads_memory and self.across(name) else own

    def across(self, name: str) -> bool:
        """Does this record belong to an attention from the decoder to the source?"""
        return name.startswith(("decoder.attention.", "decoder.layers")) and ".self_attention." not in name

    def ids(self, side: str) -> list[int]:
        """Ids of the "source", of the "target" the decoder read, of what is "written", or "likeliest"."""
        return [int(i) for i in self[f"{side}_ids"]]

    @property
    def log_probability(self) -> float:
        """Natural logarithm of the probability of the whole output."""
        return float(self["written_log_probabilities"].astype(np.float64).sum())

    def likelier(self) -> tuple[Likelier, ...]:
        """The places where the word written is not the likeliest: a search kept it for what comes after it, it was
        drawn, forbidden words left it over, or it was given."""
        pairs = enumerate(zip(self.ids("written"), self.ids("likeliest"), strict=True))
        return tuple(self._likelier(t, word, best) for t, (word, best) in pairs if word != best)

    def _likelier(self, t: int, word: int, best: int) -> Likelier:
        row = self["probabilities"][t]
        return Likelier(t, self.written[t], word, float(row[word]), self.likeliest[t], best, float(row[best]))

    def beside(self, parity: Parity, tree: Sequence[Node]) -> Trace:
        """The same trace, with what is known of the decoding that its output came from."""
        provenance = replace(self.provenance, parity=parity)
        return Trace(self._records, self.source, self.target, self.written, provenance, tree, self.likeliest)

    def attentions(self) -> list[str]:
        """The attentions of the network, by path."""
        return [name.removesuffix(".pattern") for name in self.names("pattern")]

    def save(self, path: str | Path) -> None:
        """Write the trace in the safetensors layout: whole, or not at all."""
        write_atomic(Path(path), to_bytes({name: self[name] for name in self}, self._texts()))

    def _texts(self) -> dict[str, str]:
        records = self._records.values()
        tables = {
            "axes": {r.name: r.axes for r in records},
            "kind": {r.name: r.kind for r in records},
            "computed_from": {r.name: r.computed_from for r in records},
            "tokens": {side: getattr(self, side) for side in ("source", "target", "written", "likeliest")},
            "provenance": asdict(self.provenance),
            "tree": [asdict(node) for node in self.tree],
        }
        return {"format": FORMAT} | {name: json.dumps(table, ensure_ascii=False) for name, table in tables.items()}


def parsed(address: str) -> tuple[str, tuple[int, ...]]:
    """name[1,2,3] → the name and the place; a name alone has none."""
    match = re.fullmatch(r"([^\[\]]+)\[(\d+(?:,\d+)*)\]", address)
    return (match[1], tuple(map(int, match[2].split(",")))) if match else (address, ())


def open_trace(path: str | Path) -> Trace:
    """A saved trace. Numbers are read from the file when they are asked for."""
    path = Path(path)
    arrays, texts = from_file(path)
    if texts.pop("format", None) != FORMAT:
        raise ModelFileError("is not a trace of clearhead", file=path, hint="a trace is written by trace.save(path)")
    try:
        return from_tables(arrays, {name: json.loads(text) for name, text in texts.items()})
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"is a damaged trace: {error}", file=path) from None


def from_tables(arrays: Mapping[str, Array], tables: Mapping[str, Any]) -> Trace:
    records = {}
    for name, values in arrays.items():
        axes, made_of = tuple(tables["axes"][name]), tuple(tables["computed_from"][name])
        if len(axes) != values.ndim:
            raise ValueError(f"{name} has {values.ndim} dimensions and {len(axes)} axes")
        records[name] = Record(name, axes, tables["kind"][name], values, made_of)
    source, target, written = (tables["tokens"][side] for side in ("source", "target", "written"))
    tree = [Node(**node) for node in tables["tree"]]
    likeliest = tables["tokens"].get("likeliest", ())
    return Trace(records, source, target, written, provenance_from(tables["provenance"]), tree, likeliest)


def provenance_from(table: Mapping[str, Any]) -> Provenance:
    parity = table["parity"]
    if parity is not None:
        parity = Parity(parity["largest_difference"], tuple(parity["not_likeliest"]))
    return Provenance(**{**table, "edits": tuple(table["edits"]), "parity": parity})
