"""A state dragged along forgets the far end; attention does not (row B1).

    k3v7 k1v2 k5v0 … ? k3   →   v7

Pairs of key and value, then a question, here for the first of them: the further on the text has gone, the further back
it lies. An LSTM has to carry all pairs in one state, because it cannot know which will be asked; the Transformer looks
the pair up wherever it stands, and so does an LSTM that is given attention.
"""

from __future__ import annotations

import re

from clearhead.data import synthetic
from clearhead.data.synthetic import Pair
from clearhead.truths.figure import Curves, Table
from clearhead.truths.learn import TEST_SEED, Words, accuracy, learn, smooth, steps
from clearhead.truths.state import KINDS, network
from clearhead.truths.truth import Given, Result, Truth

ENTRIES = SYMBOLS = 8
STEPS, ROWS, TESTED = 500, 64, 150
KEYS, VALUES = ([f"{side}{i}" for i in range(SYMBOLS)] for side in "kv")
VOCABULARY = Words(["?", *KEYS, *VALUES, *(key + value for key in KEYS for value in VALUES)])
PLACES = range(1, ENTRIES + 1)
PAIR = re.compile(r"(k\d+) (v\d+)")


def asked(rows: int, seed: int, pairs: int, distance: int | None = None) -> list[Pair]:
    """Texts of this many pairs, each pair one word, and a question for the pair at this distance, or for any."""
    found = synthetic.recall(rows, seed, pairs, distance, SYMBOLS)
    return [(PAIR.sub(r"\1\2", text), answer) for text, answer in found]


def mixed(seed: int) -> list[Pair]:
    """One to eight pairs before the question, and any of them asked for."""
    each = ROWS // ENTRIES
    return [pair for n in PLACES for pair in asked(each, seed * 100 + n, n)]


def trained(kind: str, given: Given) -> tuple[dict[int, float], list[float]]:
    """(right answers by how many pairs back the first one stands, losses)."""
    model = network(kind, VOCABULARY.size, given, positions="rotary")
    losses = learn(model, VOCABULARY, lambda step: mixed(given.seed * 10_000 + step), steps(STEPS))
    far = {n: accuracy(model, VOCABULARY, asked(TESTED, given.seed + TEST_SEED + n, n, n)) for n in PLACES}
    return far, losses


def experiment(given: Given) -> Result:
    state = trained(KINDS[1], given)
    found = {KINDS[0]: state if given.control else trained(KINDS[0], given), KINDS[1]: state}
    if not given.control:
        found[KINDS[2]] = trained(KINDS[2], given)
    right = {kind: back for kind, (back, _) in found.items()}
    rows = [[kind, *(f"{share:.0%}" for share in back.values())] for kind, back in right.items()]
    return Result(
        {f"{kind}: one pair back": back[1] for kind, back in right.items()}
        | {f"{kind}: {ENTRIES} pairs back": back[ENTRIES] for kind, back in right.items()}
        | {"guessing": 1 / SYMBOLS},
        {
            "the LSTM's state knows a pair that has just gone by": right[KINDS[1]][1] > 0.75,
            "eight pairs on, it has lost it": right[KINDS[1]][ENTRIES] < 0.5,
            "the Transformer recalls it from any distance": min(right[KINDS[0]].values()) > 0.9,
        },
        [
            Table("right answers by how many pairs back", ["", *map(str, PLACES)], rows),
            Curves(
                "recall by distance", "pairs back", "right", {kind: list(back.items()) for kind, back in right.items()}
            ),
            Curves("learning", "step", "loss", {kind: smooth(losses) for kind, (_, losses) in found.items()}),
        ],
        [
            "The state is not blind, it is small: with three times the training it carries most of eight pairs.",
            "In fairness: clearhead show parity is a task where the LSTM wins.",
        ],
    )


TRUTH = Truth(
    name="recall",
    row="B1",
    claim="RNN and LSTM: a state dragged along step by step, the far end forgotten.",
    refuted_by="a state that answers for the far end as well as attention does",
    control="attention: the LSTM's state stands in the Transformer's place",
    experiment=experiment,
)
