"""What is trained, counted by part (row A8).

The sizes alone give the counts: an attention has W_q and W_k (d × N d_k), W_v (d × N d_v), W_o (N d_v × d). One step
of the real training loop must move each of them, and the counts must be what the sizes say.
"""

from __future__ import annotations

from collections import Counter

import torch
from torch import Tensor, nn

from clearhead.config import ModelSettings, TrainSettings
from clearhead.data import synthetic
from clearhead.models.build import build
from clearhead.models.protocol import EncoderDecoder
from clearhead.models.seq2seq import parameter_count
from clearhead.nn.attention import Attention
from clearhead.truths.figure import Bars, Table
from clearhead.truths.learn import Words, learn
from clearhead.truths.truth import Given, Result, Truth

SETTINGS = ModelSettings(
    d_model=48, d_ff=96, n_heads=4, d_head=10, d_value=14, encoder_layers=2, decoder_layers=2, dropout=0.0
)
MAPS = {"query": "W_q", "key": "W_k", "value": "W_v", "out": "W_o"}


def by_part(model: nn.Module) -> Counter[str]:
    """Learned numbers by what they belong to, each tensor once."""
    counts: Counter[str] = Counter()
    for name, parameter in model.named_parameters():
        path = name.split(".")
        part = next((MAPS[step] for step in path if step in MAPS), None)
        kind = "feed-forward" if "feedforward" in path else "embedding" if path[0].endswith("embedding") else "norm"
        counts[part or kind] += parameter.numel()
    return counts


def by_sizes(settings: ModelSettings, vocabulary: int) -> dict[str, int]:
    """The same counts from the settings alone."""
    d, n = settings.d_model, settings.n_heads
    attentions = settings.encoder_layers + 2 * settings.decoder_layers
    layers = settings.encoder_layers + settings.decoder_layers
    keys, values = (d + 1) * n * settings.head_width, (d + 1) * n * settings.value_width
    maps = {"W_q": keys, "W_k": keys, "W_v": values, "W_o": n * settings.value_width * d + d}
    return {name: attentions * count for name, count in maps.items()} | {
        "feed-forward": layers * (2 * d * settings.d_ff + settings.d_ff + d),
        "norm": (attentions + layers + 2) * 2 * d,
        "embedding": vocabulary * d,
    }


def one_step(model: EncoderDecoder, vocabulary: Words, given: Given) -> dict[str, float]:
    """How far each map of every attention moves in one step of training; the smallest of each kind."""
    maps: dict[str, list[tuple[Tensor, Tensor]]] = {name: [] for name in MAPS.values()}
    for module in model.modules():
        if isinstance(module, Attention):
            for attribute, name in MAPS.items():
                weight = getattr(module, attribute).weight
                weight.requires_grad_(not given.control)
                maps[name].append((weight, weight.detach().clone()))
    settings = TrainSettings(max_steps=1, lr=1e-3, schedule="constant", warmup_steps=0, precision="float32")
    learn(model, vocabulary, lambda step: synthetic.copy(32, given.seed, 5, 8), settings)
    return {name: min((now - was).abs().max().item() for now, was in pairs) for name, pairs in maps.items()}


def experiment(given: Given) -> Result:
    vocabulary = Words(synthetic.ALPHABET[:8])
    model = build(SETTINGS, vocabulary.size, vocabulary.size, given.seed)
    counted, reckoned = by_part(model), by_sizes(SETTINGS, vocabulary.size)
    moved = one_step(model, vocabulary, given)
    total = parameter_count(model)
    with torch.device("meta"):
        paper = by_sizes(ModelSettings(d_model=512, d_ff=2048, n_heads=8, encoder_layers=6, decoder_layers=6), 37_000)
    rows = [
        [name, f"{counted[name]:,}", f"{reckoned[name]:,}", f"{counted[name] / total:.0%}", f"{paper[name]:,}"]
        for name in reckoned
    ]
    rows.append(["in all", f"{total:,}", f"{sum(reckoned.values()):,}", "100%", f"{sum(paper.values()):,}"])
    return Result(
        {"parameters": total, "reckoned from the sizes": sum(reckoned.values())}
        | {f"{name}: one step moves it by": value for name, value in moved.items()},
        {
            "every part has as many numbers as the sizes say": dict(counted) == reckoned,
            "d_v need not be d_k": SETTINGS.value_width != SETTINGS.head_width,
            "one step of training moves W_q, W_k, W_v and W_o of every attention": min(moved.values()) > 0,
        },
        [
            Table("by part", ["", "counted", "from the sizes", "share", "the 2017 paper's base model"], rows),
            Bars("share of the parameters", {name: counted[name] / total for name in reckoned}),
        ],
    )


TRUTH = Truth(
    name="parameters",
    row="A8",
    claim="Sizes: L, d_k, d_v, number of heads, type of positions; what is trained is W_q, W_k, W_v and W_o.",
    refuted_by="a part with more or fewer numbers than its sizes say, or a map that a step of training does not move",
    control="the training of those four maps",
    experiment=experiment,
)
