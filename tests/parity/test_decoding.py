"""Decoding: alone = in any batch = in any order, padded = unpadded, beam 1 = greedy, found score = re-scored."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from clearhead.config import DecodeSettings
from clearhead.decode.beam import Beam
from clearhead.decode.decode import decode, decode_batch, length_batches, length_limit
from clearhead.decode.rank import Hypothesis
from clearhead.decode.score import score
from clearhead.decode.step import BOS, EOS, MASK, PAD
from clearhead.models.protocol import EncoderDecoder

Sources = list[list[int]]
METHODS = {
    "greedy": DecodeSettings(method="greedy"),
    "beam": DecodeSettings(beam=3, n_best=3),
    "beam without length penalty": DecodeSettings(beam=5, n_best=2, length_penalty=0.0),
    "beam without repeats": DecodeSettings(beam=3, n_best=2, no_repeat=2),
    "sampling": DecodeSettings(method="sample", seed=5),
    "sampling, filtered": DecodeSettings(method="sample", temperature=0.7, top_k=7, top_p=0.9, min_p=0.02),
}


@pytest.fixture(scope="module")
def model(tiny_model: Callable) -> EncoderDecoder:
    """Of a seed whose outputs are of both kinds: some end by themselves, some are cut off at the limit."""
    return tiny_model(n_kv_heads=1, positions="rotary", seed=50)


@pytest.fixture(scope="module")
def sources(ids: Callable) -> Sources:
    """Eleven sentences of many lengths, one of them empty, two alike."""
    lengths = [5, 13, 1, 0, 7, 3, 11, 2, 5, 17, 3]
    made = [ids(1, length, seed=i)[0].tolist() for i, length in enumerate(lengths)]
    return [*made[:-1], made[5]]


def same(a: list[Hypothesis], b: list[Hypothesis]) -> None:
    assert [h.tokens for h in a] == [h.tokens for h in b]
    assert [h.finish_reason for h in a] == [h.finish_reason for h in b]
    for one, other in zip(a, b, strict=True):
        assert one.log_probability == pytest.approx(other.log_probability, rel=1e-5, abs=1e-5)
        assert one.rank == pytest.approx(other.rank, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("method", METHODS)
@torch.inference_mode()
def test_alone_as_in_any_batch(method: str, model: EncoderDecoder, sources: Sources) -> None:
    """All at once; a few at a time; each alone under its own place."""
    settings = METHODS[method]
    together = decode(model, sources, settings, max_len=61)
    in_small_batches = decode(model, sources, settings.model_copy(update={"batch_tokens": 17}), max_len=61)
    for place, source in enumerate(sources):
        alone = decode_batch(model, [source], [length_limit(len(source), settings, 61)], [place], settings)[0]
        same(together[place], alone)
        same(together[place], in_small_batches[place])


@pytest.mark.parametrize("method", ["greedy", "beam", "beam without repeats"])
def test_the_order_of_sources_changes_nothing(method: str, model: EncoderDecoder, sources: Sources) -> None:
    there = decode(model, sources, METHODS[method], max_len=61)
    back = decode(model, sources[::-1], METHODS[method], max_len=61)
    for a, b in zip(there, back[::-1], strict=True):
        same(a, b)


def test_a_draw_belongs_to_the_sentences_place(model: EncoderDecoder, sources: Sources) -> None:
    """The same sentence twice in one file is drawn anew; another seed draws anew; the same seed the same."""
    settings = METHODS["sampling"]
    first = decode(model, sources, settings, max_len=61)
    assert first[5] != first[10]
    assert decode(model, sources, settings, max_len=61) == first
    assert decode(model, sources, settings.model_copy(update={"seed": 6}), max_len=61) != first


def test_draws_go_by_the_places_given(model: EncoderDecoder, sources: Sources) -> None:
    """So that texts read in two lots are drawn for as in one."""
    settings = METHODS["sampling"]
    whole = decode(model, sources, settings, max_len=61)
    rest = decode(model, sources[4:], settings, max_len=61, places=range(4, len(sources)))
    for one, other in zip(whole[4:], rest, strict=True):
        same(one, other)
    assert decode(model, sources[4:], settings, max_len=61) != rest


@pytest.mark.parametrize("method", METHODS)
def test_outputs_begin_as_they_are_told(method: str, model: EncoderDecoder, sources: Sources) -> None:
    """Each with its own prefix or none; the prefix of an output it would have written anyway changes nothing."""
    settings = METHODS[method].model_copy(update={"n_best": 1})
    free = decode(model, sources, settings, max_len=61)
    prefixes = [[9, 9, 7], [], [30], [], [], [5, 6, 7, 8], [], [11, 12], [], [], []]
    found = decode(model, sources, settings, max_len=61, prefixes=prefixes)
    for prefix, one, other in zip(prefixes, found, free, strict=True):
        assert list(one[0].tokens[: len(prefix)]) == prefix
        if not prefix:
            same(one, other)
    ended = [i for i in range(len(sources)) if found[i][0].ended]
    again = score(model, [sources[i] for i in ended], [found[i][0].tokens for i in ended])
    assert again == pytest.approx([found[i][0].log_probability for i in ended], rel=1e-5, abs=1e-5)
    if method == "greedy":
        own = [list(h[0].tokens[:3]) for h in free]
        for one, other in zip(decode(model, sources, settings, max_len=61, prefixes=own), free, strict=True):
            assert one[0].tokens[: len(other[0].tokens)] == other[0].tokens


@torch.inference_mode()
def test_a_prefix_stands_alone_as_in_any_batch(model: EncoderDecoder, sources: Sources) -> None:
    settings = METHODS["beam"]
    prefixes = [[7, 8][: i % 3] for i in range(len(sources))]
    together = decode(model, sources, settings, max_len=61, prefixes=prefixes)
    for source, prefix, found in zip(sources, prefixes, together, strict=True):
        same(found, decode(model, [source], settings, max_len=61, prefixes=[prefix])[0])


@pytest.mark.parametrize("setting", [{"beam": 1}, {"beam": 1, "no_repeat": 2}, {"beam": 1, "max_extra": 3}])
@torch.inference_mode()
def test_beam_1_is_greedy(setting: dict[str, int], model: EncoderDecoder, sources: Sources) -> None:
    """By either road: the setting takes the short one, the search itself comes to the same."""
    settings = DecodeSettings(**setting)
    limits = [length_limit(len(s), settings, 61) for s in sources]
    greedy = decode(model, sources, settings.model_copy(update={"method": "greedy"}), max_len=61)
    for a, b, c in zip(
        greedy, decode(model, sources, settings, max_len=61), Beam(model, sources, limits, settings).run(), strict=True
    ):
        same(a, b)
        same(a, c)


@pytest.mark.parametrize("method", METHODS)
def test_the_score_found_is_the_score_given_again(
    method: str, model: EncoderDecoder, sources: Sources, ids: Callable
) -> None:
    sources = sources + [ids(1, length, seed=length + 20)[0].tolist() for length in range(1, 14)]
    found = decode(model, sources, METHODS[method], max_len=61)
    pairs = [(s, h) for s, hypotheses in zip(sources, found, strict=True) for h in hypotheses if h.ended]
    assert len(pairs) >= 5
    again = score(model, [s for s, _ in pairs], [h.tokens for _, h in pairs])
    assert again == pytest.approx([h.log_probability for _, h in pairs], rel=1e-5, abs=1e-5)
    in_small_batches = score(model, [s for s, _ in pairs], [h.tokens for _, h in pairs], batch_tokens=7)
    assert in_small_batches == pytest.approx(again, rel=1e-5, abs=1e-5)


@torch.inference_mode()
def test_scoring_is_the_plain_sum(model: EncoderDecoder, ids: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence, by hand: Σ log softmax at each target token and at EOS."""
    source, target = ids(1, 7), ids(1, 5, seed=1)
    end, begin = torch.tensor([[EOS]]), torch.tensor([[BOS]])
    logits = model.logits(model(torch.cat((source, end), 1), torch.cat((begin, target), 1))).double()
    log_p = torch.log_softmax(logits, -1)[0]
    expected = sum(log_p[i, token].item() for i, token in enumerate([*target[0].tolist(), EOS]))
    assert score(model, source.tolist(), target.tolist())[0] == pytest.approx(expected, abs=1e-5)
    monkeypatch.setattr("clearhead.decode.score.LOGITS", 67)
    assert score(model, source.tolist(), target.tolist())[0] == pytest.approx(expected, abs=1e-5)


@torch.inference_mode()
def test_padding_the_source_changes_no_hidden_state(model: EncoderDecoder, ids: Callable) -> None:
    source, target = ids(3, 7, lengths=[7, 2, 5]), ids(3, 5, seed=1)
    wider = torch.cat((source, torch.zeros(3, 11, dtype=torch.long)), 1)
    assert (model(source, target) - model(wider, target)).abs().max() < 1e-5
    alone = torch.cat([model(row[row != PAD][None], words[None]) for row, words in zip(source, target, strict=True)])
    assert (model(source, target) - alone).abs().max() < 1e-5


@pytest.mark.parametrize("method", METHODS)
def test_limits_are_kept_and_said(method: str, model: EncoderDecoder, sources: Sources) -> None:
    settings = METHODS[method].model_copy(update={"max_ratio": 0.5, "max_extra": 1})
    reasons = set()
    for source, hypotheses in zip(sources, decode(model, sources, settings, max_len=61), strict=True):
        limit = length_limit(len(source), settings, 61)
        assert limit == len(source) // 2 + 1
        for h in hypotheses:
            reasons.add(h.finish_reason)
            assert len(h.tokens) == limit if h.finish_reason == "length" else len(h.tokens) < limit
    assert "length" in reasons


def test_the_models_own_limit_is_kept(model: EncoderDecoder) -> None:
    settings = DecodeSettings(max_ratio=50.0)
    assert length_limit(10, settings, 61) == 60
    for method in ("greedy", "beam"):
        one = decode(model, [[7] * 5], settings.model_copy(update={"method": method}), max_len=11)[0][0]
        assert len(one.tokens) <= 10


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("method", ["greedy", "beam", "sample"])
def test_no_run_of_n_is_written_twice(method: str, n: int, model: EncoderDecoder, sources: Sources) -> None:
    settings = DecodeSettings(method=method, beam=3, n_best=3, no_repeat=n, max_extra=30)
    free = settings.model_copy(update={"no_repeat": 0})
    runs = {True: 0, False: 0}
    for s in (settings, free):
        for hypotheses in decode(model, sources, s, max_len=61):
            for h in hypotheses:
                grams = [h.tokens[i : i + n] for i in range(len(h.tokens) - n + 1)]
                runs[s is free] += len(grams) - len(set(grams))
    assert runs[False] == 0
    assert runs[True] > 0


@pytest.mark.parametrize("method", METHODS)
def test_only_words_are_written(method: str, model: EncoderDecoder, sources: Sources) -> None:
    for hypotheses in decode(model, sources, METHODS[method], max_len=61):
        for h in hypotheses:
            assert not {PAD, BOS, EOS, MASK} & set(h.tokens)


@torch.inference_mode()
def test_a_sampled_score_is_the_models_not_the_filters(model: EncoderDecoder, sources: Sources) -> None:
    """Only one token is left by top-k 1, so the draw is greedy; its score is the whole distribution's."""
    sharp = decode(model, sources, DecodeSettings(method="sample", top_k=1, temperature=3.0), max_len=61)
    greedy = decode(model, sources, DecodeSettings(method="greedy"), max_len=61)
    for a, b in zip(sharp, greedy, strict=True):
        same(a, b)


def test_draws_follow_the_distribution(model: EncoderDecoder) -> None:
    """4,001 first words of one sentence against the model's own probabilities."""
    settings, n = DecodeSettings(method="sample", max_ratio=0.1, max_extra=1), 4001
    words = [h[0].tokens for h in decode(model, [[7, 11]] * n, settings, max_len=61)]
    p = [0.0] * 31
    for token in range(31):
        if token not in (PAD, BOS, MASK):
            p[token] = sum((w[0] if w else EOS) == token for w in words) / n
    with torch.inference_mode():
        hidden = model(torch.tensor([[7, 11, EOS]]), torch.tensor([[BOS]]))
        logits = model.logits(hidden)[0, 0]
        logits[[PAD, BOS, MASK]] = -torch.inf
        expected = torch.softmax(logits, -1)
    assert (torch.tensor(p) - expected).abs().max() < 4 * 0.5 / n**0.5


def test_batches_are_by_length_and_hold_their_measure() -> None:
    lengths = [3, 11, 7, 100, 5, 7, 0]
    batches = list(length_batches(lengths, 24))
    assert sorted(place for batch in batches for place in batch) == list(range(7))
    assert all(len(b) == 1 or len(b) * (max(lengths[i] for i in b) + 1) <= 24 for b in batches)
    assert len(batches) == 4  # 100 · 11 7 · 7 5 3 · 0
    flat = [lengths[place] for batch in batches for place in batch]
    assert flat == sorted(lengths, reverse=True)


def test_nothing_to_decode(model: EncoderDecoder) -> None:
    assert decode(model, [], DecodeSettings()) == []
    assert score(model, [], []) == []


def test_progress_counts_every_source(model: EncoderDecoder, sources: Sources) -> None:
    counted: list[int] = []
    decode(model, sources, DecodeSettings(method="greedy", batch_tokens=17), counted.append, max_len=61)
    assert sum(counted) == len(sources)
    assert len(counted) > 1
