"""Beam search against the same search in plain lists, against trying everything, and against its own watch."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch

from clearhead.config import DecodeSettings
from clearhead.decode.beam import Beam, BeamStep
from clearhead.decode.rank import Hypothesis, best, ranked
from clearhead.decode.step import BOS, EOS, MASK, PAD
from clearhead.models.protocol import EncoderDecoder

VOCAB = 8
WRITABLE = tuple(token for token in range(VOCAB) if token not in (PAD, BOS, EOS, MASK))
SOURCES = [[5, 6, 7], [7], [6, 6, 5, 5, 7], []]
Next = Callable[[tuple[int, ...]], list[float]]


@pytest.fixture(scope="module")
def model(tiny_model: Callable) -> EncoderDecoder:
    return tiny_model(vocab=VOCAB, positions="learned")


@pytest.fixture(scope="module")
def following(model: EncoderDecoder) -> Callable[[list[int]], Next]:
    """log p of every token after a beginning: one full pass over source and beginning each time, remembered."""

    def of(source: list[int]) -> Next:
        known: dict[tuple[int, ...], list[float]] = {}

        def after(beginning: tuple[int, ...]) -> list[float]:
            if beginning not in known:
                with torch.inference_mode():
                    hidden = model(torch.tensor([[*source, EOS]]), torch.tensor([[BOS, *beginning]]))
                    known[beginning] = torch.log_softmax(model.logits(hidden)[0, -1].double(), -1).tolist()
            return known[beginning]

        return after

    return of


def repeats(beginning: tuple[int, ...], token: int, n: int) -> bool:
    longer = (*beginning, token)
    runs = [longer[i : i + n] for i in range(len(longer) - n + 1)]
    return n > 0 and token != EOS and runs.count(longer[-n:]) > 1


def plain_beam(after: Next, limit: int, s: DecodeSettings) -> list[Hypothesis]:
    """The search as its file's header tells it."""
    live: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    finished: list[Hypothesis] = []
    while True:
        candidates = [
            (beginning, token, score + after(beginning)[token])
            for beginning, score in live
            for token in (EOS, *WRITABLE)
            if not repeats(beginning, token, s.no_repeat)
        ]
        candidates.sort(key=lambda c: -c[2])
        for beginning, token, score in candidates[: s.beam]:
            if token == EOS:
                finished.append(ranked(list(beginning), score, True, s.length_penalty))
        going_on = [c for c in candidates[: 2 * s.beam] if c[1] != EOS][: s.beam]
        live = [((*beginning, token), score) for beginning, token, score in going_on]
        if len(finished) >= s.beam:
            return best(finished, s.n_best)
        if not live or len(live[0][0]) >= limit:
            if len(finished) < s.n_best:
                finished += [ranked(list(tokens), score, False, s.length_penalty) for tokens, score in live]
            return best(finished, s.n_best)


def same(a: list[Hypothesis], b: list[Hypothesis]) -> None:
    assert [(h.tokens, h.ended) for h in a] == [(h.tokens, h.ended) for h in b]
    assert [h.log_probability for h in a] == pytest.approx([h.log_probability for h in b], rel=1e-5, abs=1e-5)
    assert [h.rank for h in a] == pytest.approx([h.rank for h in b], rel=1e-5, abs=1e-5)


@pytest.mark.parametrize(
    "given",
    [
        {"beam": 1},
        {"beam": 2, "n_best": 2},
        {"beam": 3, "n_best": 3, "length_penalty": 0.0},
        {"beam": 5, "n_best": 5, "length_penalty": 2.0},
        {"beam": 3, "n_best": 3, "no_repeat": 1},
        {"beam": 4, "n_best": 4, "no_repeat": 2},
        {"beam": 13, "n_best": 13},
    ],
    ids=str,
)
@torch.inference_mode()
def test_as_the_plain_search(given: dict[str, float], model: EncoderDecoder, following: Callable) -> None:
    """Different limits in one batch, so that sources leave at different steps."""
    settings, limits = DecodeSettings(**given), [7, 1, 5, 4]
    found = Beam(model, SOURCES, limits, settings).run()
    for source, limit, hypotheses in zip(SOURCES, limits, found, strict=True):
        same(hypotheses, plain_beam(following(source), limit, settings))


def everything(after: Next, limit: int, alpha: float) -> list[Hypothesis]:
    """All outputs there are: those that end before the limit, and those cut off at it."""
    found = []
    for length in range(limit + 1):
        for tokens in itertools.product(WRITABLE, repeat=length):
            score = sum(after(tokens[:i])[token] for i, token in enumerate(tokens))
            if length < limit:
                found.append(ranked(list(tokens), score + after(tokens)[EOS], True, alpha))
            else:
                found.append(ranked(list(tokens), score, False, alpha))
    return found


@pytest.mark.parametrize("alpha", [0.0, 1.0])
@torch.inference_mode()
def test_a_beam_as_wide_as_the_world_finds_everything(alpha: float, model: EncoderDecoder, following: Callable) -> None:
    settings = DecodeSettings(beam=64, n_best=64, length_penalty=alpha)
    for source, found in zip(SOURCES, Beam(model, SOURCES, [2] * 4, settings).run(), strict=True):
        assert len(found) == 1 + 4 + 16
        same(found, best(everything(following(source), 2, alpha), 64))


@torch.inference_mode()
def test_a_wide_beam_finds_the_best_there_is(model: EncoderDecoder, following: Callable) -> None:
    settings = DecodeSettings(beam=64, n_best=5, length_penalty=0.0)
    for source, found in zip(SOURCES, Beam(model, SOURCES, [4] * 4, settings).run(), strict=True):
        same(found, best(everything(following(source), 4, 0.0), 5))


@torch.inference_mode()
def test_nothing_forbidden_is_ever_returned(model: EncoderDecoder) -> None:
    """With four writable words and none twice, no output is longer than four; a wide beam is full of dead ends."""
    settings = DecodeSettings(beam=40, n_best=40, no_repeat=1)
    for found in Beam(model, SOURCES, [9] * 4, settings).run():
        assert all(h.log_probability > -1e30 for h in found)
        assert all(len(h.tokens) == len(set(h.tokens)) and EOS not in h.tokens for h in found)


@torch.inference_mode()
def test_n_best_is_sorted_and_has_no_twins(model: EncoderDecoder) -> None:
    settings = DecodeSettings(beam=7, n_best=7)
    for found in Beam(model, SOURCES, [6, 5, 4, 3], settings).run():
        order = [(not h.ended, -h.rank) for h in found]
        assert order == sorted(order)
        assert len({(h.tokens, h.ended) for h in found}) == len(found) == 7


def test_ranking_by_hand() -> None:
    """log P / length^α, EOS counted when there is one; those that ended come first."""
    short, long = ranked([5], -2.0, True, 1.0), ranked([5, 6, 7], -3.0, True, 1.0)
    assert (short.rank, long.rank) == (-1.0, -0.75)
    assert ranked([5, 6, 7], -3.0, False, 1.0).rank == -1.0
    assert ranked([5, 6, 7], -3.0, True, 0.0).rank == -3.0
    cut = ranked([5], -0.1, False, 1.0)
    assert best([cut, short, long], 3) == [long, short, cut]
    assert (long.finish_reason, cut.finish_reason) == ("stop", "length")


@torch.inference_mode()
def test_what_is_watched_is_what_happened(model: EncoderDecoder) -> None:
    """From the records alone: every beginning, every finished output, with its score."""
    settings, seen = DecodeSettings(beam=3, n_best=3, length_penalty=0.5), list[BeamStep]()
    unwatched = Beam(model, SOURCES, [5, 2, 4, 3], settings).run()
    found = Beam(model, SOURCES, [5, 2, 4, 3], settings, seen.append).run()
    assert found == unwatched
    assert [step.length for step in seen] == list(range(1, len(seen) + 1))
    live: dict[int, list[tuple[int, ...]]] = {source: [()] for source in range(4)}
    ended: dict[int, list[Hypothesis]] = {source: [] for source in range(4)}
    for step in seen:
        for source, parents, tokens, scores in zip(step.sources, step.parents, step.tokens, step.scores, strict=True):
            assert scores == sorted(scores, reverse=True)
            assert max(parents) < len(live[source])
            candidates = list(zip(parents, tokens, scores, strict=True))
            for parent, token, score in candidates[:3]:
                if token == EOS:
                    ended[source].append(ranked(list(live[source][parent]), score, True, 0.5))
            going_on = [c for c in candidates if c[1] != EOS][:3]
            live[source] = [(*live[source][parent], token) for parent, token, _ in going_on]
    for source, hypotheses in enumerate(found):
        done = [h for h in hypotheses if h.ended]
        assert done == best(ended[source], 3)[: len(done)]
        assert {h.tokens for h in hypotheses if not h.ended} <= set(live[source])
