"""The space of embeddings: who is near whom, and a map.

    neighbours    largest cosine                       map    the two directions of largest variance (PCA)

Knows a table of vectors and ids. Refuses to say that near means alike in meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from clearhead.errors import UsageError
from clearhead.glass.findings import Clock, Control, Finding
from clearhead.glass.interventions import embedding_of, there
from clearhead.glass.layout import Array
from clearhead.models.protocol import EncoderDecoder
from clearhead.randomness import numpy_generator

PAIRS = 2000


def table_of(network: EncoderDecoder, side: str) -> Array:
    """The embedding table of the "source" or "target": (token, channel)."""
    table: Array = embedding_of(network, side).table.weight.detach().cpu().double().numpy()
    return table


def unit(vectors: Array) -> Array:
    """Each vector at length 1; a vector of zeros stays one."""
    length: Array = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(length, length, 1.0)


@dataclass(frozen=True)
class Neighbours(Finding):
    """values: cosines, nearest first."""

    ids: tuple[int, ...]


def neighbours(table: Array, token: int, count: int = 10, text: Callable[[int], str] = str) -> Neighbours:
    """The nearest rows of the table. Control: what one random pair in a hundred reaches."""
    clock = Clock()
    there(token, len(table), "token", grows=False)
    units = unit(table)
    cosines = units @ units[token]
    cosines[token] = -np.inf
    nearest = np.argsort(-cosines, kind="stable")[:count]
    draws = numpy_generator(1, "glass pairs").integers(len(table), size=(2, PAIRS))
    pairs = (units[draws[0]] * units[draws[1]]).sum(1)[draws[0] != draws[1]]
    return Neighbours(
        f"nearest rows of the embedding table to {text(token)}, by cosine",
        cosines[nearest],
        ("token",),
        (tuple(text(int(i)) for i in nearest),),
        clock.cost(),
        Control("cosine that one random pair in a hundred exceeds", float(np.quantile(pairs, 0.99))),
        "Near means used alike in the training text, opposites included; rare tokens lie where they began.",
        (),
        tuple(int(i) for i in nearest),
    )


@dataclass(frozen=True)
class Map(Finding):
    """values: (token, 2)."""

    share: float
    """Part of these vectors' variance that the map shows."""


def plane(table: Array, tokens: Sequence[int], text: Callable[[int], str] = str) -> Map:
    """These tokens on the plane that shows most of their variance. Control: the same for as many random vectors."""
    clock = Clock()
    if len(tokens) < 3:
        raise UsageError(f"a map needs at least 3 tokens, not {len(tokens)}")
    places, share = projected(table[list(tokens)])
    random = numpy_generator(1, "glass map").normal(size=(len(tokens), table.shape[1]))
    return Map(
        "principal components of the tokens' embeddings",
        places,
        ("token", "direction"),
        (tuple(text(token) for token in tokens), None),
        clock.cost(),
        Control("share of variance that a map of random vectors shows", projected(random)[1]),
        f"Shows {share:.0%} of the variance: what lies near here may lie far apart in the other directions.",
        (),
        share,
    )


def projected(vectors: Array) -> tuple[Array, float]:
    """Places on the plane, signs settled by the largest coordinate, and the share of variance shown."""
    centred = vectors - vectors.mean(0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    places = left[:, :2] * sizes[:2]
    signs = np.sign(places[np.abs(places).argmax(0), [0, 1]])
    whole = float((sizes**2).sum())
    return places * np.where(signs, signs, 1.0), float((sizes[:2] ** 2).sum()) / whole if whole else 1.0
