"""Word embedding: one and the same small table for every word (row T2).

A token's vector is a row of the table, wherever the token stands: one-hot · E. Rows of words that are used alike
come to lie side by side, though nobody told the model which words those are.
"""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.models.seq2seq import Seq2Seq
from clearhead.text.tokenizer import Tokenizer
from clearhead.truths.figure import Heat, Table
from clearhead.truths.translator import SENTENCE, translator
from clearhead.truths.truth import Given, Result, Truth

GROUPS = {
    "days": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
    "months": "January February March April June July August September October November December",
    "spans": "seconds minutes hours days weeks months years",
    "Tage": "Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag",
}
FEWEST = 8
"""Words that must be one token each for the experiment to say anything."""


def known(tokenizer: Tokenizer) -> tuple[list[int], list[str]]:
    """The listed words that are one token of this vocabulary, and the group of each."""
    found = [
        (ids[0], group)
        for group, words in GROUPS.items()
        for ids in map(tokenizer.encode, words.split())
        if len(ids) == 1
    ]
    return [token for token, _ in found], [group for _, group in found]


def likeness(rows: Tensor) -> Tensor:
    """Cosines between rows."""
    unit = rows / rows.norm(dim=1, keepdim=True)
    return unit @ unit.T


def agreement(rows: Tensor, groups: list[str]) -> float:
    """How often a word's nearest listed word is of its own group."""
    nearest = likeness(rows).fill_diagonal_(-2).argmax(1).tolist()
    return sum(groups[one] == groups[other] for one, other in enumerate(nearest)) / len(groups)


def experiment(given: Given) -> Result:
    model = translator(given)
    network, tokenizer = model.network, model.tokenizers.source
    assert isinstance(network, Seq2Seq)
    table = network.source_embedding.table.weight.detach()
    if given.control:
        table = torch.randn(table.shape, generator=given.generator("an untrained table"))
    ids = torch.tensor([tokenizer.encode(SENTENCE)])
    looked_up = network.source_embedding.table(ids)[0].detach()
    one_hot = (
        torch.nn.functional.one_hot(ids[0], table.shape[0]).float() @ network.source_embedding.table.weight.detach()
    )
    listed, groups = known(tokenizer)
    same = agreement(table[listed], groups) if len(listed) >= FEWEST else 0.0
    chance = sum(groups.count(group) - 1 for group in groups) / max(1, len(groups) * (len(groups) - 1))
    everywhere = likeness(table)
    shown = listed[:: max(1, len(listed) // 8)]
    rows = [
        [tokenizer.token(token), "  ".join(tokenizer.token(int(i)) for i in everywhere[token].topk(6).indices[1:])]
        for token in shown
    ]
    names = [tokenizer.token(token) for token in listed]
    return Result(
        {
            "words compared": len(listed),
            "nearest word is of the same kind": same,
            "by chance": chance,
            "one-hot · E against the looked-up rows": (one_hot - looked_up).abs().max().item(),
        },
        {
            "a word's vector is its row of the table, wherever it stands": bool(torch.equal(one_hot, looked_up)),
            "words used alike lie side by side: at least twice chance, and most of them": same > max(0.5, 2 * chance),
        },
        [
            Table("nearest of the whole vocabulary", ["token", "neighbours"], rows),
            Heat("cosines", names, names, likeness(table[listed]).tolist()),
        ],
    )


TRUTH = Truth(
    name="neighbours",
    row="T2",
    claim="Word embedding: one and the same small network for every word; words used alike become neighbours.",
    refuted_by="a token with two vectors, or neighbours no more alike than chance",
    control="the training of the table",
    experiment=experiment,
)
