"""All words at once, no iteration (row A7).

What must wait for what is counted in the chain of operations that leads to the output: the longest path through the
autograd graph. For the Transformer's encoder it is as long for 8 words as for 64; for an LSTM it grows with every
word. The clock is shown beside it, not judged: it depends on the machine, the chain does not.
"""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import Tensor

from clearhead.config import ModelSettings
from clearhead.models.build import build
from clearhead.models.protocol import EncoderDecoder
from clearhead.nn.tap import listen
from clearhead.truths.figure import Curves, Table
from clearhead.truths.truth import Given, Result, Truth

CHAINED, TIMED = (8, 16, 32, 64), (16, 64, 256)
BATCH, REPEATS = 8, 7


def model(kind: str, given: Given) -> EncoderDecoder:
    table = {"kind": kind, "d_model": 64, "d_ff": 128, "n_heads": 4, "encoder_layers": 1, "decoder_layers": 1}
    return build(ModelSettings.model_validate(table | {"dropout": 0.0}), 64, 64, given.seed)


def source(length: int, given: Given, rows: int = 1) -> Tensor:
    """Words at random; a longer source begins with the shorter one."""
    return torch.randint(5, 64, (rows, max(TIMED)), generator=given.generator("source"))[:, :length]


def longest_path(end: Any) -> int:
    """Operations that had to wait for one another: nodes on the longest way back from this one."""
    longest: dict[Any, int] = {}
    todo = [end]
    while todo:
        before = [node for node, _ in todo[-1].next_functions if node is not None]
        if waiting := [node for node in before if node not in longest]:
            todo += waiting
        else:
            longest[todo.pop()] = 1 + max((longest[node] for node in before), default=0)
    return longest[end]


def chain(network: EncoderDecoder, length: int, given: Given) -> int:
    """In float64, for which torch has no recurrence fused into one operation."""
    return longest_path(network.double().encode(source(length, given)).states.grad_fn)


def seconds(network: EncoderDecoder, length: int, given: Given) -> float:
    """The fastest of a few runs; the first one warms up."""
    words, taken = source(length, given, BATCH), []
    with torch.inference_mode():
        for _ in range(REPEATS):
            start = time.perf_counter()
            network.encode(words)
            taken.append(time.perf_counter() - start)
    return min(taken)


def queries(network: EncoderDecoder, length: int, given: Given) -> Tensor:
    """What the first attention asks, word by word; nothing in a network without one."""
    heard = [torch.zeros(1, 1, length, 1)]

    def hear(name: str, tensor: Tensor) -> Tensor:
        heard.append(tensor)
        return tensor

    with torch.inference_mode(), listen(network.double(), hear, lambda name: name.endswith("self_attention.query")):
        network.encode(source(length, given))
    return heard[-1]


def experiment(given: Given) -> Result:
    networks = {
        "Transformer": model("recurrent" if given.control else "seq2seq", given),
        "LSTM": model("recurrent", given),
    }
    chains = {name: {n: chain(network, n, given) for n in CHAINED} for name, network in networks.items()}
    times = {name: {n: seconds(network.float(), n, given) for n in TIMED} for name, network in networks.items()}
    short, long = (queries(networks["Transformer"], n, given)[:, :, :8] for n in (8, 64))
    first, last = CHAINED[0], CHAINED[-1]
    measured: dict[str, float] = {
        f"{name}: chain for {n} words": chains[name][n] for name in networks for n in (first, last)
    }
    measured |= {f"{name}: seconds for {n} words": times[name][n] for name in networks for n in (TIMED[0], TIMED[-1])}
    return Result(
        measured,
        {
            f"the Transformer's chain is as long for {last} words as for {first}": (
                chains["Transformer"][last] == chains["Transformer"][first]
            ),
            "the LSTM's grows with the words": chains["LSTM"][last] > 4 * chains["LSTM"][first],
            "a word asks the same, however many stand beside it": (short - long).abs().max().item() < 1e-9,
        },
        [
            Table(
                "operations that wait for one another",
                ["words", *networks],
                [[str(n), *(str(chains[name][n]) for name in networks)] for n in CHAINED],
            ),
            Curves(
                "chain by length", "words", "operations", {name: list(found.items()) for name, found in chains.items()}
            ),
            Table(
                f"the clock here, {BATCH} sentences at once",
                ["words", *networks],
                [[str(n), *(f"{1000 * times[name][n]:.1f} ms" for name in networks)] for n in TIMED],
            ),
        ],
        ["In products the Transformer's cost grows with the square of the length; only the waiting does not."],
    )


TRUTH = Truth(
    name="length",
    row="A7",
    claim="All words at once, no iteration; the same Q, K, V weights for every word.",
    refuted_by="a Transformer encoder in which more words mean a longer chain of operations",
    control="attention: the LSTM stands in the Transformer's place",
    experiment=experiment,
)
