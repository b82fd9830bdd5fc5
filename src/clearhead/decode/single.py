"""One hypothesis per source: the likeliest word each time (greedy), or a draw (sampling).

A draw is counted: a function of the seed, the sentence's place and the position, so that it does not depend on
which other sentences are in the batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from clearhead.config import DecodeSettings
from clearhead.decode import filters
from clearhead.decode.rank import Hypothesis, ranked
from clearhead.decode.step import BOS, EOS, Stepper, Written
from clearhead.models.protocol import EncoderDecoder
from clearhead.nn.shapes import Float, Int, Tensor
from clearhead.randomness import key, uniform


class Single:
    """The state of one batch: what each live row has written, and its log-probability."""

    def __init__(
        self,
        model: EncoderDecoder,
        sources: Sequence[Sequence[int]],
        limits: Sequence[int],
        places: Sequence[int],
        settings: DecodeSettings,
        prefixes: Sequence[Sequence[int]] = (),
    ) -> None:
        self.prefixes = prefixes or [()] * len(sources)
        self.stepper = Stepper(model, sources, fast=settings.fast, compiled=settings.compiled)
        self.settings = settings
        self.limits, self.places = limits, places
        self.live = list(range(len(sources)))
        self.written: list[list[int]] = [[] for _ in sources]
        self.scores = [0.0] * len(sources)
        self.ended = [False] * len(sources)

    def run(self) -> list[Hypothesis]:
        s = self.settings
        plain = s.method != "sample" and not s.no_repeat and not any(self.prefixes)
        done = self.stepper.greedy(self.limits) if plain else None
        self.written, self.scores, self.ended = done or self.step_by_step()
        alpha = s.length_penalty
        return [ranked(w, score, e, alpha) for w, score, e in zip(self.written, self.scores, self.ended, strict=True)]

    def step_by_step(self) -> Written:
        tokens = torch.full((len(self.live),), BOS, device=self.stepper.device)
        while self.live:
            tokens = self.advance(tokens)
        return self.written, self.scores, self.ended

    def advance(self, tokens: Int[Tensor, "R"]) -> Int[Tensor, "R"]:
        """Write one token in every live row; rows that are done leave the batch."""
        chosen, scores = self.choose(tokens)
        staying = []
        for index, (row, token, score) in enumerate(zip(self.live, chosen.tolist(), scores.tolist(), strict=True)):
            self.scores[row] += score
            if token == EOS:
                self.ended[row] = True
                continue
            self.written[row].append(token)
            if len(self.written[row]) < self.limits[row]:
                staying.append(index)
        if len(staying) < len(self.live):
            kept = torch.tensor(staying, dtype=torch.long, device=tokens.device)
            self.live = [self.live[i] for i in staying]
            self.stepper.keep(kept)
            chosen = chosen[kept]
        return chosen

    def choose(self, tokens: Int[Tensor, "R"]) -> tuple[Int[Tensor, "R"], Float[Tensor, "R"]]:
        """The next token of each live row, and its log-probability before any filter."""
        s = self.settings
        wanted = [next(iter(self.prefixes[r][len(self.written[r]) :]), None) for r in self.live]
        free = all(token is None for token in wanted)
        if s.method != "sample" and not s.no_repeat and free:
            scores, _, chosen = self.stepper.best(tokens, torch.zeros(len(tokens), 1, device=tokens.device), 1)
            return chosen[:, 0], scores[:, 0]
        log_p = self.stepper.next(tokens)
        allowed = filters.no_repeat(log_p, [self.written[r] for r in self.live], s.no_repeat, EOS)
        chosen = self.draw(allowed) if s.method == "sample" else allowed.argmax(-1)
        if not free:
            given = torch.tensor([-1 if token is None else token for token in wanted], device=chosen.device)
            chosen = torch.where(given < 0, chosen, given)
        return chosen, log_p.gather(1, chosen[:, None])[:, 0]

    def draw(self, log_p: Float[Tensor, "R V"]) -> Int[Tensor, "R"]:
        s = self.settings
        log_p = filters.temperature(log_p, s.temperature)
        log_p = filters.min_p(filters.top_p(filters.top_k(log_p, s.top_k), s.top_p), s.min_p)
        cumulative = log_p.cpu().double().exp().cumsum(-1)
        draws = uniform(np.array([self.draw_key(row) for row in self.live], dtype=np.uint64))
        wanted = torch.from_numpy(draws)[:, None] * cumulative[:, -1:]
        drawn = torch.searchsorted(cumulative, wanted, right=True)[:, 0].clamp(max=log_p.shape[-1] - 1)
        return drawn.to(log_p.device)

    def draw_key(self, row: int) -> int:
        return key(self.settings.seed, "sample", self.places[row], len(self.written[row]))
