"""In fairness, a task where the LSTM wins: is the number of ones odd? (row B1)

    1 0 1 1   →   odd

One bit of state, flipped at every 1, does it for any length. Attention has to weigh all symbols at once and has no
state to flip: what it learns on short texts does not carry over to longer ones.
"""

from __future__ import annotations

from clearhead.data import synthetic
from clearhead.data.synthetic import Pair
from clearhead.truths.figure import Curves, Table
from clearhead.truths.learn import TEST_SEED, Words, accuracy, learn, smooth, steps
from clearhead.truths.state import KINDS, network
from clearhead.truths.truth import Given, Result, Truth

LEARNED, ASKED = tuple(range(1, 9)), (2, 4, 8, 12, 16, 20, 24)
STEPS, ROWS, TESTED = 600, 64, 200
RATES = {KINDS[0]: 3e-3, KINDS[1]: 1e-2}
"""Each learns at the rate that suits it."""
VOCABULARY = Words(["0", "1", "odd", "even"])


def mixed(seed: int) -> list[Pair]:
    """Every length up to the longest alike."""
    return [pair for n in LEARNED for pair in synthetic.parity(ROWS // len(LEARNED), seed * 100 + n, n)]


def trained(kind: str, given: Given) -> tuple[dict[int, float], list[float]]:
    """(right answers by length, losses)."""
    model = network(kind, VOCABULARY.size, given, positions="rotary")
    losses = learn(model, VOCABULARY, lambda step: mixed(given.seed * 10_000 + step), steps(STEPS, RATES[kind]))
    return {n: accuracy(model, VOCABULARY, synthetic.parity(TESTED, given.seed + TEST_SEED, n)) for n in ASKED}, losses


def experiment(given: Given) -> Result:
    attention = trained(KINDS[0], given)
    found = {KINDS[0]: attention, KINDS[1]: attention if given.control else trained(KINDS[1], given)}
    beyond = {kind: sum(right[n] for n in ASKED[-3:]) / 3 for kind, (right, _) in found.items()}
    rows = [[kind, *(f"{share:.0%}" for share in right.values())] for kind, (right, _) in found.items()]
    return Result(
        {f"{kind}: longer than any learned": share for kind, share in beyond.items()}
        | {f"{kind}: as long as the longest learned": right[LEARNED[-1]] for kind, (right, _) in found.items()},
        {
            "the LSTM counts on, on texts longer than any it learned from": beyond[KINDS[1]] > 0.9,
            "the Transformer is left guessing there": beyond[KINDS[0]] < 0.75,
        },
        [
            Table(f"right answers by length; lengths up to {LEARNED[-1]} were learned", ["", *map(str, ASKED)], rows),
            Curves(
                "parity by length", "length", "right", {kind: list(right.items()) for kind, (right, _) in found.items()}
            ),
            Curves("learning", "step", "loss", {kind: smooth(losses) for kind, (_, losses) in found.items()}),
        ],
        ["The other way round: clearhead show recall is a task where the Transformer wins."],
    )


TRUTH = Truth(
    name="parity",
    row="B1",
    claim="In fairness to the LSTM: a state that is carried along counts, and attention does not.",
    refuted_by="a Transformer that tells odd from even on longer texts than it learned from, or an LSTM that does not",
    control="the recurrence: the Transformer stands in the LSTM's place",
    experiment=experiment,
)
