"""The decoder starts from a start token and repeats until it writes EOS (row D1).

Greedy: the likeliest word each time. Beam: several beginnings are kept, the others pruned with the score they lost by.
"""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.decode.step import EOS
from clearhead.glass.trace import Node, Trace
from clearhead.nn.tap import listen
from clearhead.truths.figure import Listing, Table
from clearhead.truths.translator import SENTENCE, traced, translator
from clearhead.truths.truth import Given, Result, Truth
from clearhead.verbs.model import Model

BEAM = 3
MOST_LINES = 60
SHORT = "August 2027"


def never_end(name: str, logits: Tensor) -> Tensor:
    held = logits.clone()
    held[..., EOS] = torch.finfo(logits.dtype).min / 2
    return held


def decode(given: Given, model: Model, text: str, beam: int) -> Trace:
    if not given.control:
        return traced(model, text, beam)
    with listen(model.network, never_end, lambda name: name == "logits"):
        return traced(model, text, beam)


def steps(trace: Trace) -> list[list[str]]:
    best = trace["probabilities"].max(1).tolist()
    read = [" ".join(trace.target[max(0, at - 3) : at + 1]) for at in range(len(trace.written))]
    return [
        [str(at), was, word, f"{p:.3f}"]
        for at, (was, word, p) in enumerate(zip(read, trace.written, best, strict=True))
    ]


def branches(nodes: tuple[Node, ...], parent: int = -1, depth: int = 0) -> list[str]:
    """The tree, indented: each node under the one it continues."""
    lines = []
    for place, node in enumerate(nodes):
        if node.parent == parent:
            lost = f" (needed {node.needed:.2f})" if node.needed is not None else ""
            said = f"{'  ' * depth}{node.text}  {node.log_probability:.2f} / {node.rank:.2f}  {node.fate}{lost}"
            lines += [said, *branches(nodes, place, depth + 1)]
    return lines


def experiment(given: Given) -> Result:
    model = translator(given)
    greedy, searched = decode(given, model, SENTENCE, 1), decode(given, model, SHORT, BEAM)
    parity = greedy.provenance.parity
    largest = parity.largest_difference if parity else 0.0
    fates = [node.fate for node in searched.tree]
    tree = branches(searched.tree)
    cut = [f"… {len(tree) - MOST_LINES} more"] * (len(tree) > MOST_LINES)
    return Result(
        {
            "steps": len(greedy.written),
            "word by word against one pass over the whole output": largest,
            "log P of the output": greedy.log_probability,
            "beam: beginnings kept": fates.count("kept"),
            "beam: pruned": fates.count("pruned"),
            "beam: finished": fates.count("finished"),
        },
        {
            "it starts from the start token": greedy.target[0] == "<bos>",
            "it stops by itself, at EOS": greedy.provenance.ended and greedy.ids("written")[-1] == EOS,
            "EOS is written once, at the end": greedy.ids("written").count(EOS) == 1,
            "word by word and all at once are the same": largest < 1e-3,
        },
        [
            Table(f"“{SENTENCE}”, greedy", ["step", "read (last four)", "wrote", "probability"], steps(greedy)),
            Listing(
                f"“{SHORT}”, beam {BEAM}: sum of log P / by length, and what became of it", [*tree[:MOST_LINES], *cut]
            ),
        ],
        [f"In all: {model.tokenizers.target.decode(greedy.ids('written'))}"],
    )


TRUTH = Truth(
    name="words",
    row="D1",
    claim="The decoder starts from a start token and repeats until it outputs EOS.",
    refuted_by="an output that does not end by itself, or that changes when it is read back in one pass",
    control="EOS: it may never be written",
    experiment=experiment,
)
