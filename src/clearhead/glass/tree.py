"""Beam search as a tree: every candidate that was looked at, and what became of it.

Built from what the search itself says at each step (decode/beam.py, `watch`). Knows scores and places of candidates.
Refuses to search.
"""

from __future__ import annotations

import torch

from clearhead.decode.beam import BeamStep
from clearhead.decode.rank import Hypothesis
from clearhead.decode.step import EOS
from clearhead.glass.trace import Node
from clearhead.glass.tracer import Print


class Tree:
    """Listens to the search of one source."""

    def __init__(self, beam: int, length_penalty: float, text: Print) -> None:
        self.beam, self.alpha, self.text = beam, length_penalty, text
        self.nodes: list[Node] = []
        self.live = [-1]
        """The nodes of the live hypotheses, in the search's order; −1 is the empty beginning."""

    def __call__(self, step: BeamStep) -> None:
        parents, tokens, scores = step.parents[0], step.tokens[0], step.scores[0]
        kept = self.kept(tokens, scores)
        places = {}
        for place, (parent, token, score) in enumerate(zip(parents, tokens, scores, strict=True)):
            if score == -torch.inf:
                continue
            fate = self.fate(place, token, kept)
            places[place] = len(self.nodes)
            rank = score / step.length**self.alpha
            lost = self.needed(token, scores, kept) if fate == "pruned" else None
            node = Node(self.live[parent], token, self.text(token), step.length, score, rank, fate, lost)
            self.nodes.append(node)
        self.live = [places.get(place, -1) for place in kept]

    def kept(self, tokens: list[int], scores: list[float]) -> list[int]:
        """The same choice as the search's, by the same call on the same numbers, so that ties fall alike."""
        chosen = torch.tensor([tokens])
        open_first = torch.tensor([scores], dtype=torch.float32).masked_fill(chosen == EOS, -torch.inf)
        return [int(i) for i in open_first.topk(min(self.beam, len(tokens)), sorted=True).indices[0]]

    def fate(self, place: int, token: int, kept: list[int]) -> str:
        if token == EOS:
            return "finished" if place < self.beam else "pruned"
        return "kept" if place in kept else "pruned"

    def needed(self, token: int, scores: list[float], kept: list[int]) -> float:
        """The sum that stood where it would have had to be: among the best `beam`, or the last of those that live."""
        return scores[self.beam - 1] if token == EOS else scores[kept[-1]]

    def done(self) -> list[Node]:
        """The whole tree; what was alive when the search ended is called unfinished."""
        ends = set(self.live)
        rows = enumerate(self.nodes)
        return [Node(**{**vars(n), "fate": "unfinished"}) if i in ends and n.fate == "kept" else n for i, n in rows]

    def path(self, found: Hypothesis) -> list[float]:
        """The running log-probability of an output, word by word, EOS included if it was written."""
        sums, at = [], -1
        for token in [*found.tokens, *([EOS] if found.ended else [])]:
            at = next(i for i, n in enumerate(self.nodes) if n.parent == at and n.token == token and i > at)
            sums.append(self.nodes[at].log_probability)
        return sums
