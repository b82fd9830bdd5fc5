import math
from collections import Counter
from itertools import combinations, pairwise

import numpy as np

from clearhead.text.unigram import Lattice, learn_unigram, log_share, seeds, worth_keeping

WORDS = ["abab", "ba", "aab"]
PIECES = {"a": 0, "b": 1, "ab": 2, "ba": 3, "aba": 4}


def all_ways(word: str) -> list[list[int]]:
    """Every segmentation, by trying all sets of cuts."""
    ways = []
    for n in range(len(word)):
        for cuts in combinations(range(1, len(word)), n):
            edges = [0, *cuts, len(word)]
            parts = [word[i:j] for i, j in pairwise(edges)]
            if all(part in PIECES for part in parts):
                ways.append([PIECES[part] for part in parts])
    return ways


def test_expected_counts_are_the_sum_over_all_segmentations():
    score = np.log(np.array([0.3, 0.25, 0.2, 0.15, 0.1]))
    counts = np.array([3.0, 1.0, 2.0])
    wanted = np.zeros(len(PIECES))
    for word, count in zip(WORDS, counts, strict=True):
        chances = [math.exp(sum(score[piece] for piece in way)) for way in all_ways(word)]
        for way, chance in zip(all_ways(word), chances, strict=True):
            for piece in way:
                wanted[piece] += count * chance / sum(chances)
    np.testing.assert_allclose(Lattice.of(WORDS, list(PIECES)).expected(score, counts), wanted, rtol=1e-12)


def test_best_is_the_likeliest_segmentation():
    score = np.log(np.array([0.3, 0.25, 0.2, 0.15, 0.1]))
    wanted = [max(sum(score[piece] for piece in way) for way in all_ways(word)) for word in WORDS]
    np.testing.assert_allclose(Lattice.of(WORDS, list(PIECES)).best(score), wanted, rtol=1e-12)


def test_without_the_whole_a_single_character_has_no_way():
    best = Lattice.of(list(PIECES), list(PIECES), proper=True).best(np.log(np.full(5, 0.2)))
    np.testing.assert_allclose(best, [-np.inf, -np.inf, 2 * math.log(0.2), 2 * math.log(0.2), 2 * math.log(0.2)])


def test_dropping_pieces_renumbers_the_edges():
    keep = np.array([True, True, False, True, False])
    kept = Lattice.of(WORDS, list(PIECES)).keep(keep, np.ones(3, dtype=bool))
    fresh = Lattice.of(WORDS, ["a", "b", "ba"])
    score = log_share(np.array([3.0, 2.0, 1.0]))
    np.testing.assert_allclose(kept.best(score), fresh.best(score))


def test_seeds_are_the_substrings_that_cover_most():
    runs = {"abab": 2, "xab": 1, "😀😀y": 3, "once": 1}
    counts: Counter[str] = Counter()
    for word, count in runs.items():
        for start, end in combinations(range(len(word) + 1), 2):
            counts[word[start:end]] += count
    frequent = [piece for piece, count in counts.items() if count >= 2 and len(piece) > 1]
    wanted = sorted(frequent, key=lambda piece: (-counts[piece] * len(piece), len(piece), piece))
    assert seeds(runs, ("a", "b"), 100) == ["a", "b", *wanted]
    assert seeds(runs, ("a", "b"), 3) == ["a", "b", *wanted[:3]]


def test_the_dearest_pieces_are_kept():
    used, score = np.array([1.0, 1.0, 9.0]), np.array([-1.0, -1.0, -1.0])
    without = np.array([-np.inf, -5.0, -2.0])
    assert worth_keeping(used, score, without, 2).tolist() == [True, False, True]


def test_a_frequent_word_becomes_a_piece():
    pieces, scores = learn_unigram({" haus": 50, " haustür": 5, " tür": 20}, tuple(" ahrstuü"), 11)
    assert {" haus", " tür"} <= set(pieces)
    assert pieces[:8] == tuple(" ahrstuü")
    assert len(pieces) == len(scores) == 11
    assert list(scores[8:]) == sorted(scores[8:], reverse=True)


def test_no_words_leave_the_letters():
    assert learn_unigram({}, ("a", "b"), 10) == (("a", "b"), (round(-math.log(2), 6),) * 2)
    assert learn_unigram({}, (), 10) == ((), ())
