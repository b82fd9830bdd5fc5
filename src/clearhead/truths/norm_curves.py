"""Layer norm and batch norm in training, side by side (row L1).

The same model learns to write a text backwards, from batches of texts of one length, as training makes them to waste
nothing on padding. Batch norm's statistics run over the words of whichever sentences share a batch, in the decoder over
words that are yet to be written. When the model writes on its own it has only the average of them all, which fitted
no batch: what was learned to the last letter is written wrong.
"""

from __future__ import annotations

from clearhead.config import ModelSettings
from clearhead.data import synthetic
from clearhead.data.synthetic import Pair
from clearhead.models.build import build
from clearhead.truths.figure import Bars, Curves
from clearhead.truths.learn import TEST_SEED, Words, accuracy, learn, smooth, steps
from clearhead.truths.truth import Given, Result, Truth

SYMBOLS, LENGTHS = 8, (1, 2, 3, 4, 5)
STEPS, ROWS, TESTED = 400, 16, 40


def texts(n: int, seed: int, length: int) -> list[Pair]:
    return synthetic.reverse(n, seed * 10 + length, length, SYMBOLS)


def fresh(step: int, given: Given) -> list[Pair]:
    """A batch of one length; the next step has another."""
    return texts(ROWS, given.seed * 10_000 + step, LENGTHS[step % len(LENGTHS)])


def trained(norm: str, given: Given) -> tuple[float, list[float]]:
    """(share of texts written right, losses)."""
    vocabulary = Words(synthetic.ALPHABET[:SYMBOLS])
    table = {"d_model": 32, "d_ff": 64, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0, "norm": norm}
    model = build(ModelSettings.model_validate(table), vocabulary.size, vocabulary.size, given.seed)
    losses = learn(model, vocabulary, lambda step: fresh(step, given), steps(STEPS, 5e-3))
    tests = [pair for length in LENGTHS for pair in texts(TESTED, given.seed + TEST_SEED, length)]
    return accuracy(model, vocabulary, tests), losses


def experiment(given: Given) -> Result:
    found = {"layer norm": trained("batch" if given.control else "layer", given), "batch norm": trained("batch", given)}
    right = {name: share for name, (share, _) in found.items()}
    last = {name: sum(losses[-10:]) / 10 for name, (_, losses) in found.items()}
    return Result(
        {f"{name}: written right": share for name, share in right.items()}
        | {f"{name}: last loss": loss for name, loss in last.items()},
        {
            "both learn what they are trained on": max(last.values()) < 0.2,
            "layer norm writes at least eight of ten right": right["layer norm"] > 0.8,
            "batch norm writes less than half of that": right["batch norm"] < right["layer norm"] / 2,
        },
        [
            Curves("training", "step", "loss", {name: smooth(losses) for name, (_, losses) in found.items()}),
            Bars("written right, on its own", right),
        ],
        [
            "The training loss would not show it: in training, batch norm sees the batch it will later lack.",
            "From large batches of mixed lengths, all alike, it writes this task right: the batch decides.",
        ],
    )


TRUTH = Truth(
    name="norm-curves",
    row="L1",
    claim="Batch norm takes the batch and does not suit sequences; layer norm does.",
    refuted_by="a model with batch norm that writes as well as the same model with layer norm",
    control="the layer norm: batch norm stands in its place",
    experiment=experiment,
)
