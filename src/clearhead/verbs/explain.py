"""The verb `explain`: one text through a model, traced, with the causal test that stands beside the attention.

Everything a picture of the journey needs, as plain data: no page, no colours, no files. The text is one sentence's
worth: longer ones belong to `translate`, which cuts them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from clearhead.config import DecodeSettings
from clearhead.decode.decode import length_limit
from clearhead.decode.step import EOS
from clearhead.glass.decoded import searched, trace
from clearhead.glass.direct import Direct, direct_logits, is_sum
from clearhead.glass.interventions import attentions
from clearhead.glass.layout import Array
from clearhead.glass.lenses.erasure import Agreement, LeftOut, Share, agreement, leave_one_out, source_share
from clearhead.glass.trace import Node, Trace
from clearhead.nn.shapes import Tensor
from clearhead.text.tokenizer import Tokenizer
from clearhead.verbs.model import Model

LIKELIEST = 8
NEIGHBOURS = 5
TREE_BEAM = 4
"""Hypotheses of the search shown to those whose model decodes greedily."""


@dataclass(frozen=True)
class Candidate:
    """A word the model could have written at a place."""

    text: str
    id: int
    probability: float
    logit: float


@dataclass(frozen=True)
class Choice:
    """One place of the output: its likeliest words, and the probability of all the others together."""

    likeliest: tuple[Candidate, ...]
    rest: float
    others: int


@dataclass(frozen=True)
class Search:
    """A beam search as a tree. `path` holds the nodes of its best output."""

    beam: int
    length_penalty: float
    nodes: tuple[Node, ...]
    path: tuple[int, ...]
    same: bool
    """Did it choose the output that the trace shows?"""


@dataclass(frozen=True)
class Explained:
    """A text, what became of it, and the measured effects that stand beside the attention."""

    text: str
    translation: str
    trace: Trace
    choices: tuple[Choice, ...]
    direct: Direct | None
    """What each part put straight into the logits of the words in `choices`; None where the decoder has no stream."""
    neighbours: tuple[tuple[tuple[str, float], ...], ...]
    """Of each source piece: the table's nearest rows by cosine."""
    search: Search
    left_out: LeftOut
    """By how much each written word's log-probability falls when a token is deleted."""
    share: Share
    agreement: Agreement
    facts: dict[str, str | int]
    """What the header says about the model."""


def explain(model: Model, text: str, **changes: object) -> Explained:
    """Decode, trace, search, delete each piece in turn, and compare."""
    settings = model.settings(**changes)
    source = model.sentence(text, model.tokenizers.source)
    tokenizers, limit = model.tokenizers, model.experiment.model.max_len
    prefix = model.prefix(settings)
    found = trace(
        model.network,
        source,
        settings,
        max_len=limit,
        source_text=tokenizers.source.token,
        target_text=tokenizers.target.token,
        prefix=prefix,
    )
    likeliest = choices(found, tokenizers.target)
    left_out = leave_one_out(model.network, found)
    output = found.ids("target")[1:] if found.provenance.ended else found.ids("written")
    return Explained(
        text=text,
        translation=tokenizers.target.decode(output),
        trace=found,
        choices=likeliest,
        direct=direct(model, found, likeliest),
        neighbours=neighbours(model, found.ids("source")),
        search=search(model, source, found, settings, prefix),
        left_out=left_out,
        share=source_share(left_out),
        agreement=agreement(found, left_out),
        facts=facts(model) | ({"begun": tokenizers.target.decode(prefix)} if prefix else {}),
    )


def choices(found: Trace, tokenizer: Tokenizer) -> tuple[Choice, ...]:
    """For every place the likeliest words, the one written always among them."""
    rows = zip(found["probabilities"], found["logits"], found.ids("written"), strict=True)
    return tuple(choice(p, logits, written, tokenizer) for p, logits, written in rows)


def choice(probabilities: Array, logits: Array, written: int, tokenizer: Tokenizer) -> Choice:
    best = [int(i) for i in np.argsort(-probabilities, kind="stable")[:LIKELIEST]]
    shown = best if written in best else [*best[:-1], written]
    rest = 1.0 - float(probabilities[shown].astype(np.float64).sum())
    words = [Candidate(tokenizer.token(i), i, float(probabilities[i]), float(logits[i])) for i in shown]
    return Choice(tuple(words), max(0.0, rest), len(probabilities) - len(shown))


def direct(model: Model, found: Trace, listed: Sequence[Choice]) -> Direct | None:
    """The logits of the words listed, taken apart by embedding, head and layer."""
    if not is_sum(found):
        return None
    ids = torch.tensor([[word.id for word in choice.likeliest] for choice in listed])
    rows, bias = model.network.output_weight, model.network.output_bias
    return direct_logits(found, plain(rows[ids]), None if bias is None else plain(bias[ids]))


def plain(tensor: Tensor) -> Array:
    numbers: Array = tensor.detach().cpu().numpy()
    return numbers


def neighbours(model: Model, ids: Sequence[int]) -> tuple[tuple[tuple[str, float], ...], ...]:
    table: Tensor = model.network.get_parameter("source_embedding.table.weight").detach()
    unit = torch.nn.functional.normalize(table, dim=1)
    places = torch.tensor(ids)
    near = unit[places] @ unit.T
    near[torch.arange(len(ids)), places] = -torch.inf
    values, found = near.topk(min(NEIGHBOURS, near.shape[1] - 1))
    token = model.tokenizers.source.token
    rows = zip(found.tolist(), values.tolist(), strict=True)
    return tuple(tuple((token(i), v) for i, v in zip(*row, strict=True)) for row in rows)


def search(model: Model, source: Sequence[int], found: Trace, settings: DecodeSettings, prefix: list[int]) -> Search:
    """The tree of the search that made the output, or of one beside it where the output was not searched for."""
    beam = settings.beam if found.tree else TREE_BEAM
    settings = settings.model_copy(update={"method": "beam", "beam": beam, "n_best": 1})
    longest = model.experiment.model.max_len
    limit = min(length_limit(len(source), settings, longest) + len(prefix), longest - 1)
    with torch.inference_mode():
        best, _, nodes = searched(model.network, source, limit, settings, model.tokenizers.target.token, prefix)
    written = [*best.tokens, *([EOS] if best.ended else [])]
    path = path_of(nodes, written)
    return Search(beam, settings.length_penalty, tuple(nodes), path, written == found.ids("written"))


def path_of(nodes: Sequence[Node], tokens: Sequence[int]) -> tuple[int, ...]:
    """The nodes that spell these tokens."""
    path, at = [], -1
    for token in tokens:
        at = next(i for i, node in enumerate(nodes) if node.parent == at and node.token == token and i > at)
        path.append(at)
    return tuple(path)


def facts(model: Model) -> dict[str, str | int]:
    """What a page says about the model, as it was built: settings that its kind does not use are not facts."""
    made = model.experiment.model
    names = ["kind", "d_model", "d_ff", "encoder_layers", "decoder_layers", "embedding_scale"]
    if made.kind != "recurrent":
        names += ["positions", "norm", "norm_order"]
    found: dict[str, str | int] = {name: getattr(made, name) for name in names}
    heads = max(attention.n_heads for attention in attentions(model.network).values())
    languages = {"reads": model.source_language or "source", "writes": model.target_language or "target"}
    pieces = {"level": model.experiment.text.level, "vocabulary": model.tokenizers.source.vocab_size}
    return found | languages | pieces | {"n_heads": heads, "parameters": model.parameters}
