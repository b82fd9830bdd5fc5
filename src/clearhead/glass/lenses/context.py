"""One word in two sentences: how far its vectors part, layer by layer.

    similarity(l) = cos(stream of the word in sentence 1 after layer l, the same in sentence 2)

Before the first layer the two are the same row of a table (plus a position); what differs later was read from the
neighbours. Vectors of one layer all lean one way, so the mean similarity of different words stands beside it.

Knows two traces. Refuses to know networks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clearhead.glass.findings import Clock, Control, Finding
from clearhead.glass.interventions import there
from clearhead.glass.layout import Array
from clearhead.glass.lenses.ablation import layer_ends
from clearhead.glass.lenses.space import unit
from clearhead.glass.trace import Trace


@dataclass(frozen=True)
class InContext(Finding):
    """values: (layer,): cosine of the two vectors."""

    different: Array
    """(layer,): mean cosine of two different words, one of each sentence."""
    vectors: tuple[Array, Array]
    """The word's vectors in the two sentences, (layer, channel)."""


def in_context(first: Trace, place: int, second: Trace, other_place: int, side: str = "source") -> InContext:
    """The token at `place` of the first sentence beside the one at `other_place` of the second."""
    clock = Clock()
    tokens = [first.source, second.source] if side == "source" else [first.target, second.target]
    for at, words in zip((place, other_place), tokens, strict=True):
        there(at, len(words), "place", grows=False)
    half = ("source", "encoder") if side == "source" else ("target", "decoder")
    ends = [name for name in layer_ends(first) if name.startswith(half)]
    alike, different = zip(*(cosines(first[n], place, second[n], other_place, tokens) for n in ends), strict=True)
    vectors = (np.stack([first[n][place] for n in ends]), np.stack([second[n][other_place] for n in ends]))
    return InContext(
        f"contextual vectors of {tokens[0][place]} and {tokens[1][other_place]}",
        np.array(alike),
        ("layer",),
        (tuple(ends),),
        clock.cost(),
        Control("mean similarity of different words after the last layer", different[-1]),
        "Two vectors of one layer: compare with the similarity of different words there, not with 1.",
        first.provenance.edits + second.provenance.edits,
        np.array(different),
        vectors,
    )


def cosines(
    ours: Array, place: int, theirs: Array, other_place: int, tokens: list[tuple[str, ...]]
) -> tuple[float, float]:
    """Of the two tokens, and the mean over pairs of different tokens."""
    grid = unit(ours.astype(np.float64)) @ unit(theirs.astype(np.float64)).T
    differ = np.array([[a != b for b in tokens[1]] for a in tokens[0]])
    return float(grid[place, other_place]), float(grid[differ].mean()) if differ.any() else float("nan")
