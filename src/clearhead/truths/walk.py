"""A sentence's walk through the encoder: every stop adds to one stream (row E1).

    stream = √d · E[token] (+ position)      then, layer by layer,      + self-attention      + feed-forward      norm

The walk is replayed by adding up what the stops say they added. Its end must be the encoder's own output.
"""

from __future__ import annotations

import re

import numpy as np
import torch

from clearhead.glass.trace import Trace
from clearhead.nn.residual import Residual
from clearhead.truths.figure import Curves, Table
from clearhead.truths.translator import SENTENCE, traced, translator
from clearhead.truths.truth import Given, Result, Truth
from clearhead.verbs.model import Model

Stop = tuple[str, np.ndarray]


def stops(trace: Trace, model: Model, skip: str) -> list[Stop]:
    """The stream after every stop, replayed; stops called `skip` are left out."""
    stream = trace["source_embedding.tokens"]
    walked = [("embed", stream)]
    if "source_embedding.positions" in trace:
        stream = stream + trace["source_embedding.positions"]
        walked.append(("position", stream))
    for name in trace.names():
        if match := re.fullmatch(r"encoder\.layers\.(\d+)\.(attention|feedforward)_residual\.added", name):
            if match[2] == skip:
                continue
            stream = stream + trace[name]
            residual = model.network.get_submodule(name.removesuffix(".added"))
            if isinstance(residual, Residual) and not residual.pre:
                stream = through(residual.norm, stream)
            walked.append((f"layer {match[1]}: + {match[2]}", stream))
    return [*walked, ("norm", through(model.network.get_submodule("encoder.norm"), stream))]


def through(module: torch.nn.Module, stream: np.ndarray) -> np.ndarray:
    with torch.inference_mode():
        found: np.ndarray = module(torch.tensor(stream)).numpy()
    return found


def experiment(given: Given) -> Result:
    model = translator(given)
    trace = traced(model, SENTENCE)
    walked = stops(trace, model, skip="attention" if given.control else "")
    end = float(np.abs(walked[-1][1] - trace["memory"]).max())
    word = 0
    rows, before = [], np.zeros_like(walked[0][1])
    for name, stream in walked:
        turned = 1.0 if not before[word].any() else cosine(stream[word], before[word])
        first = " ".join(f"{x:7.3f}" for x in stream[word, :4])
        rows.append([name, f"{np.linalg.norm(stream[word]):.2f}", f"{turned:.2f}", first])
        before = stream
    lengths = {
        token: [(float(s), float(np.linalg.norm(stream[w]))) for s, (_, stream) in enumerate(walked)]
        for w, token in list(enumerate(trace.source))[:4]
    }
    return Result(
        {"stops": len(walked), "the replayed walk's end against the encoder's": end},
        {"the stops, added up, are the encoder's output": end < 1e-3},
        [
            Table(
                f"the walk of {trace.source[word]}",
                ["stop", "length", "cosine with the stop before", "first four channels"],
                rows,
            ),
            Curves("length of the stream", "stop", "length", lengths),
        ],
    )


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


TRUTH = Truth(
    name="walk",
    row="E1",
    claim="The encoder: embed, position, self-attention, residual, norm and feed-forward; stack the layers.",
    refuted_by="an encoder output that is not what its stops add up to",
    control="the self-attention stops",
    experiment=experiment,
)
