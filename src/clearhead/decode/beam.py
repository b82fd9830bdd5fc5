"""Beam search: the `beam` likeliest beginnings of each source, one word longer at every step.

    candidates   every live hypothesis × every next token, by summed log-probability
    the best 2·beam of them: those that end with EOS are finished, of the others `beam` live on
    a source is done when `beam` hypotheses are finished, or at its length limit

The best found is not the best there is, and `length_penalty` changes the winner (decode/rank.py). Nothing here
depends on the other sources of the batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from clearhead.config import DecodeSettings
from clearhead.decode import filters
from clearhead.decode.likeliest import largest_sums
from clearhead.decode.rank import Hypothesis, best, ranked
from clearhead.decode.step import BOS, EOS, Stepper
from clearhead.models.protocol import EncoderDecoder
from clearhead.nn.shapes import Int, Tensor


@dataclass(frozen=True)
class BeamStep:
    """What one step saw, for whoever watches: per source, the candidates in order of score."""

    length: int
    sources: list[int]
    parents: list[list[int]]
    """Which live hypothesis each candidate continues."""
    tokens: list[list[int]]
    scores: list[list[float]]


Watch = Callable[[BeamStep], None]


class Beam:
    def __init__(
        self,
        model: EncoderDecoder,
        sources: Sequence[Sequence[int]],
        limits: Sequence[int],
        settings: DecodeSettings,
        watch: Watch | None = None,
        prefixes: Sequence[Sequence[int]] = (),
    ) -> None:
        self.prefixes = prefixes or [()] * len(sources)
        self.beam, self.settings, self.limits, self.watch = settings.beam, settings, limits, watch
        self.stepper = Stepper(model, sources, fast=settings.fast, compiled=settings.compiled)
        self.device = self.stepper.device
        self.live = list(range(len(sources)))
        self.scores = torch.zeros(len(sources), 1, device=self.device)  # one beginning each: the empty one
        self.written = torch.empty(len(sources), 1, 0, dtype=torch.long, device=self.device)
        self.finished: list[list[Hypothesis]] = [[] for _ in sources]

    def run(self) -> list[list[Hypothesis]]:
        tokens = torch.full((len(self.live),), BOS, device=self.device)
        while self.live:
            tokens = self.advance(tokens)
        return [best(hypotheses, self.settings.n_best) for hypotheses in self.finished]

    def advance(self, tokens: Int[Tensor, "R"]) -> Int[Tensor, "R"]:
        """One word longer. Returns the last token of every live hypothesis."""
        parents, chosen, scores = self.candidates(tokens)
        if self.watch is not None:
            length = self.written.shape[2] + 1
            self.watch(BeamStep(length, list(self.live), parents.tolist(), chosen.tolist(), scores.tolist()))
        self.finish(parents, chosen, scores)
        self.continue_with(parents, chosen, scores)
        self.retire()
        return self.written[:, :, -1].flatten()

    def candidates(self, tokens: Int[Tensor, "R"]) -> tuple[Tensor, Tensor, Tensor]:
        """(parent, token, score), each (B, up to 2·beam), best first."""
        wanted = self.wanted()
        if self.settings.no_repeat or wanted:
            log_p = self.stepper.next(tokens)
            allowed = filters.no_repeat(log_p, self.written.flatten(0, 1).tolist(), self.settings.no_repeat, EOS)
            allowed = filters.forced(allowed, log_p, wanted)
            scores, parents, chosen = largest_sums(self.scores, allowed, 2 * self.beam)
        else:
            scores, parents, chosen = self.stepper.best(tokens, self.scores, 2 * self.beam)
        return parents, chosen, scores

    def wanted(self) -> list[int | None]:
        """What each hypothesis has to go on with; empty when none has."""
        at, width = self.written.shape[2], self.written.shape[1]
        if all(at >= len(self.prefixes[source]) for source in self.live):
            return []
        begun = [self.prefixes[source] for source in self.live]
        return [prefix[at] if at < len(prefix) else None for prefix in begun for _ in range(width)]

    def finish(self, parents: Tensor, chosen: Tensor, scores: Tensor) -> None:
        """Candidates that end, among the best `beam`, are done."""
        ending = (chosen == EOS) & (torch.arange(chosen.shape[1], device=self.device) < self.beam)
        ending &= scores > -torch.inf
        for index, place in ending.nonzero().tolist():
            tokens = self.written[index, parents[index, place]].tolist()
            hypothesis = ranked(tokens, scores[index, place].item(), True, self.settings.length_penalty)
            self.finished[self.live[index]].append(hypothesis)

    def continue_with(self, parents: Tensor, chosen: Tensor, scores: Tensor) -> None:
        """The best `beam` candidates that do not end live on."""
        open_first = scores.masked_fill(chosen == EOS, -torch.inf)
        self.scores, places = open_first.topk(min(self.beam, open_first.shape[1]), sorted=True)
        parents, chosen = parents.gather(1, places), chosen.gather(1, places)
        width = self.written.shape[1]
        rows = torch.arange(len(self.live), device=self.device)[:, None] * width + parents
        self.written = torch.cat((self.written.flatten(0, 1)[rows], chosen[:, :, None]), 2)
        self.stepper.copies = rows.shape[1]
        self.stepper.reorder(rows.flatten())

    def retire(self) -> None:
        """Sources that are done leave the batch."""
        length = self.written.shape[2]
        staying = []
        for index, source in enumerate(self.live):
            if len(self.finished[source]) >= self.beam:
                continue
            if length < self.limits[source]:
                staying.append(index)
            elif len(self.finished[source]) < self.settings.n_best:
                self.cut_off(index)
        if len(staying) < len(self.live):
            kept = torch.tensor(staying, dtype=torch.long, device=self.device)
            self.live = [self.live[i] for i in staying]
            self.scores, self.written = self.scores[kept], self.written[kept]
            self.stepper.keep(kept)

    def cut_off(self, index: int) -> None:
        """The length limit: what is unfinished is kept as it stands, and says so; what was forbidden is not kept."""
        for tokens, score in zip(self.written[index].tolist(), self.scores[index].tolist(), strict=True):
            if score != -math.inf:
                hypothesis = ranked(tokens, score, False, self.settings.length_penalty)
                self.finished[self.live[index]].append(hypothesis)
