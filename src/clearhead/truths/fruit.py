"""Apple beside phones, apple beside orange: the mix without learned maps, and with them (row A3).

    without      y_n = Σ_m softmax_m(x_n · x_m) x_m          one vector plays query, key and value
    with         y_n = Σ_m softmax_m(q_n · k_m) v_m          q = W_q x, k = W_k x, v = W_v x

Both move "apple" towards its company. But without maps there is nothing to learn: where it ends up is settled by
the vectors, and its width is theirs. A linear map re-mixes features: the notes' table times their 3 × 2 matrix.
"""

from __future__ import annotations

import torch

from clearhead.nn.attention import attend_explicit
from clearhead.truths.figure import Curves, Table
from clearhead.truths.truth import Given, Result, Truth

WORDS = {"love": [0.2, 0.2, 1.0], "apple": [1.0, 1.0, 0.0], "phones": [2.0, 0.0, 0.0], "orange": [0.0, 2.0, 0.0]}
"""Three features: technology, fruit, feeling."""
COMPANY = {"love apple phones": [1.0, 0.0], "love apple orange": [0.0, 1.0]}
"""What apple should become, in two dimensions: the firm, or the fruit."""
TABLE = [[2.0, 0.0, 2.0], [0.0, 0.0, 3.0], [1.0, 3.0, 0.0]]
MATRIX = [[4.0, 3.0], [2.0, 1.0], [0.0, 1.0]]
PRODUCT = [[8.0, 8.0], [0.0, 3.0], [10.0, 6.0]]
STEPS = 300


def mix(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Attention as a function, without parameters."""
    return attend_explicit(query[None, None], key[None, None], value[None, None], None, None, 1.0)[0, 0]


def vectors(sentence: str) -> torch.Tensor:
    return torch.tensor([WORDS[word] for word in sentence.split()], dtype=torch.float64)


def apple(sentence: str, maps: list[torch.Tensor]) -> torch.Tensor:
    x = vectors(sentence)
    return mix(*(x @ each for each in maps))[1]


def learn(maps: list[torch.Tensor], learned: bool) -> list[float]:
    """Pull apple's new vector to where it should be. Returns the loss at every step."""
    optimiser = torch.optim.Adam([each.requires_grad_() for each in maps], lr=0.05)
    losses = []
    for _ in range(STEPS):
        meant = torch.tensor(list(COMPANY.values()), dtype=torch.float64)
        loss = (torch.stack([apple(sentence, maps) for sentence in COMPANY]) - meant).square().sum()
        losses.append(loss.item())
        if learned:
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return losses


def experiment(given: Given) -> Result:
    eye = torch.eye(3, dtype=torch.float64)
    plain = {sentence: apple(sentence, [eye, eye, eye]) for sentence in COMPANY}
    moved = (plain["love apple phones"] - plain["love apple orange"]).norm().item()
    scores = vectors("apple phones orange") @ vectors("apple phones orange").T
    draw = [torch.randn(3, 2, generator=given.generator(f"W_{name}")).double() for name in "qkv"]
    losses = learn(draw, learned=not given.control)
    matrix = torch.eye(3) if given.control else torch.tensor(MATRIX)
    mixed = torch.tensor(TABLE) @ matrix
    rows = [
        [name, *(" ".join(f"{x:g}" for x in row) for row in pair)]
        for name, pair in zip(("Apple", "Orange", "Watch"), zip(TABLE, mixed.tolist(), strict=True), strict=True)
    ]
    moves = [[sentence, *(f"{x:.3f}" for x in plain[sentence].tolist())] for sentence in COMPANY]
    return Result(
        {
            "apple moves between its companies by": moved,
            "scores differ from their mirror image by": (scores - scores.T).abs().max().item(),
            "loss before learning": losses[0],
            "loss after": losses[-1],
            "width of a mixed word": mixed.shape[1],
        },
        {
            "without any map, company moves the vector": moved > 0.5,
            "without maps a word asks as it answers: scores are symmetric": bool((scores == scores.T).all()),
            "learned maps bring apple where it should be": losses[-1] < 0.01,
            "the notes' table times their matrix is (8 8), (0 3), (10 6)": mixed.tolist() == PRODUCT,
        },
        [
            Table("apple, mixed without parameters", ["in", "technology", "fruit", "feeling"], moves),
            Table("a linear map re-mixes features and changes the dimension", ["", "features", "times W"], rows),
            Curves("with learned maps", "step", "distance²", {"loss": list(enumerate(losses))}),
        ],
    )


TRUTH = Truth(
    name="fruit",
    row="A3",
    claim="The mix without learnable parameters works but always uses the same vector; learned W_q, W_k, W_v fix that "
    "and may change the dimension.",
    refuted_by="an apple that is the same beside phones and beside orange, or maps that cannot learn which is meant",
    control="the learning of W_q, W_k, W_v, and the 3 × 2 matrix",
    experiment=experiment,
)
