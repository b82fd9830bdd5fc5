"""One attention is one perspective; several are stacked (row H1).

A sentence of random words; from its end, five questions at once: who, did, what, where, when? Each is answered by a
linear map of what one attention layer mixed. One head has one set of weights for all five questions, eight heads have
eight, with exactly as many parameters in all: 8 heads of 8 channels, or 1 head of 64.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from clearhead.nn.attention import Attention
from clearhead.nn.embedding import Embedding, TokenTable
from clearhead.nn.linear import Linear
from clearhead.nn.positions import ScorePositions, build_absolute
from clearhead.nn.tap import listen
from clearhead.train.optim import Optimiser
from clearhead.train.schedule import factor
from clearhead.truths.figure import Bars, Curves, Heat
from clearhead.truths.learn import TEST_SEED, smooth, steps
from clearhead.truths.truth import Given, Result, Truth

QUESTIONS = ("who", "did", "what", "where", "when")
WORDS, WIDTH = 12, 64
STEPS, ROWS, TESTED = 300, 64, 500


class Reader(nn.Module):
    """Embedding, one attention layer, one linear answer per question."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        positions = build_absolute("learned", len(QUESTIONS) + 1, WIDTH)
        self.embedding = Embedding(TokenTable(WORDS + 1, WIDTH), positions)
        self.attention = Attention(WIDTH, heads, WIDTH // heads, WIDTH // heads, heads, ScorePositions())
        self.answers = Linear(WIDTH, len(QUESTIONS) * WORDS)

    def forward(self, words: Tensor) -> Tensor:
        """Rows of words → (row, question, word)."""
        asked = nn.functional.pad(words, (0, 1), value=WORDS)  # the asker stands at the end
        mixed = self.attention(self.embedding(asked))[:, -1]
        answers: Tensor = self.answers(mixed).unflatten(1, (len(QUESTIONS), WORDS))
        return answers


def sentences(n: int, seed: int) -> Tensor:
    return torch.randint(WORDS, (n, len(QUESTIONS)), generator=Given(seed).generator("sentences"))


def trained(heads: int, given: Given) -> tuple[Reader, list[float]]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(given.seed)
        reader = Reader(heads)
    settings = steps(STEPS)
    optimiser, losses = Optimiser(reader, settings), []
    for step in range(1, STEPS + 1):
        words = sentences(ROWS, given.seed * 10_000 + step)
        loss = nn.functional.cross_entropy(reader(words).flatten(0, 1), words.flatten())
        reader.zero_grad()
        loss.backward()
        optimiser.step(factor(step, settings))
        losses.append(loss.item())
    return reader, losses


def judged(reader: Reader, given: Given) -> tuple[list[float], Tensor]:
    """(share of right answers per question, where each head reads from)."""
    words, heard = sentences(TESTED, given.seed + TEST_SEED), [torch.empty(0)]

    def hear(name: str, tensor: Tensor) -> Tensor:
        heard.append(tensor)
        return tensor

    with torch.no_grad(), listen(reader, hear, lambda name: name.endswith("pattern")):
        right = (reader(words).argmax(-1) == words).float().mean(0)
    return right.tolist(), heard[-1][:, :, -1].mean(0)


def experiment(given: Given) -> Result:
    readers = {"1 head": trained(1, given), "8 heads": trained(1 if given.control else 8, given)}
    found = {name: judged(reader, given) for name, (reader, _) in readers.items()}
    right = {name: sum(shares) / len(shares) for name, (shares, _) in found.items()}
    sizes = {name: sum(p.numel() for p in reader.parameters()) for name, (reader, _) in readers.items()}
    patterns = found["8 heads"][1]
    names = [f"head {head}" for head in range(len(patterns))]
    return Result(
        {f"{name}: right answers": share for name, share in right.items()}
        | {f"{name}: parameters": size for name, size in sizes.items()},
        {
            "eight heads answer all five questions": right["8 heads"] > 0.95,
            "one head does not": right["1 head"] < 0.7,
            "both have as many parameters": len(set(sizes.values())) == 1,
        },
        [
            Bars("one head", dict(zip(QUESTIONS, found["1 head"][0], strict=True))),
            Bars("eight heads", dict(zip(QUESTIONS, found["8 heads"][0], strict=True))),
            Heat("where the asker reads from, by head", names, [*QUESTIONS, "itself"], patterns.tolist(), 0.0, 1.0),
            Curves("learning", "step", "loss", {name: smooth(losses) for name, (_, losses) in readers.items()}),
        ],
    )


TRUTH = Truth(
    name="heads",
    row="H1",
    claim="One attention is one perspective; stack several: multi-head attention, eight in the first paper.",
    refuted_by="one head that answers as many questions at once as eight do with the same number of parameters",
    control="seven of the eight heads; the one left is as wide as all",
    experiment=experiment,
)
