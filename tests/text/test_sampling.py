import numpy as np
import pytest

from clearhead.errors import UsageError
from clearhead.randomness import key, uniform
from clearhead.randomness.counted import name_word
from clearhead.text import SegmentationTable
from clearhead.text.sampling import CUT, Cutter, drawn_skips

SEED, ENTRIES = 7, 11


@pytest.fixture
def bpe(trained):
    return trained(level="subword", algorithm="bpe")


@pytest.fixture
def words(bpe, corpus):
    """The word types of the corpus, and some that no tokenizer has seen."""
    return list(dict.fromkeys(word for text in [*corpus, "ganz neue ☃ Wörter"] for word in bpe.words(text)))


def numbers(bpe, words, text):
    return np.array([words.index(word) for word in bpe.words(text)], dtype=np.int32)


def build(bpe, words, dropout, seed=SEED, entries=ENTRIES):
    return SegmentationTable.build(bpe, words, seed, dropout, entries)


@pytest.mark.parametrize("dropout", [0.0, 1e-12])
def test_without_dropout_every_entry_is_the_ordinary_encoding(bpe, words, dropout):
    """At 1e-12 the merges are made in Python, one at a time; at 0 by the library: two roads, one answer."""
    table = build(bpe, words, dropout)
    for number, word in enumerate(words):
        for entry in (0, ENTRIES - 1):
            assert tuple(table.ids(number, entry)) == bpe.word_ids(word)


def test_every_entry_spells_its_word(bpe, words):
    table = build(bpe, words, 0.3)
    for number, word in enumerate(words):
        for entry in range(ENTRIES):
            assert bpe.vocabulary.decode(table.ids(number, entry)) == word


def test_dropout_varies_the_cuts_more_and_more(bpe, words):
    place = words.index(" wiederfindet")
    kinds = []
    for dropout in (0.0, 0.2, 0.5):
        table = build(bpe, words, dropout, entries=64)
        kinds.append(len({tuple(table.ids(place, entry)) for entry in range(64)}))
    assert 1 == kinds[0] < kinds[1] < kinds[2]


def test_nearly_always_dropping_leaves_characters(bpe):
    table = build(bpe, [" Haus"], 0.999999)
    assert [bpe.token(i) for i in table.ids(0, 0)] == ["▁", "H", "a", "u", "s"]


def test_a_words_cuts_depend_on_seed_and_word_only(bpe, words):
    one, other = build(bpe, words, 0.3), build(bpe, words[::-1], 0.3)
    for place in range(len(words)):
        for entry in range(ENTRIES):
            np.testing.assert_array_equal(one.ids(place, entry), other.ids(len(words) - 1 - place, entry))
    assert not np.array_equal(one.flat, build(bpe, words, 0.3, seed=SEED + 1).flat)


def test_the_share_of_dropped_merges_is_p():
    skips = np.array(drawn_skips(12345, 400, 50, 0.25))
    assert abs((skips >= 1).mean() - 0.25) < 0.01
    assert abs((skips >= 2).mean() - 0.0625) < 0.006


def test_draws_are_the_counted_ones():
    word_key = key(SEED, CUT, name_word(" Haus"))
    draw = uniform(np.array([key(SEED, CUT, name_word(" Haus"), 3, 2)], dtype=np.uint64))[0]
    assert drawn_skips(word_key, 5, 4, 0.3)[3][2] == int(np.log1p(-draw) / np.log(0.3))


def test_the_table_holds_what_was_drawn_for_each_word(bpe, words):
    table, cutter = build(bpe, words, 0.3), Cutter(bpe)
    for place, word in enumerate(words):
        symbols = cutter.symbols(word)
        skips = drawn_skips(key(SEED, CUT, name_word(word)), ENTRIES, len(symbols), 0.3)
        assert [tuple(table.ids(place, entry)) for entry in range(ENTRIES)] == cutter.cut(symbols, skips)


def test_assembled_sentence_is_one_entry_per_word(bpe, words, corpus):
    table = build(bpe, words, 0.3)
    span = numbers(bpe, words, corpus[3])
    seen = set()
    for epoch in range(20):
        ids = table.assemble(span, SEED, epoch, sample=3)
        assert ids.dtype == np.int32
        assert bpe.decode(ids) == corpus[3]
        np.testing.assert_array_equal(ids, table.assemble(span, SEED, epoch, sample=3))
        seen.add(tuple(ids))
    assert len(seen) > 10


def test_every_counter_counts(bpe, words):
    table = build(bpe, words, 0.5, entries=64)
    span = np.repeat(np.arange(7, dtype=np.int32), 3)
    variants = [(SEED, 0, 0, 0), (SEED + 1, 0, 0, 0), (SEED, 1, 0, 0), (SEED, 0, 1, 0), (SEED, 0, 0, 1)]
    assert len({tuple(table.assemble(span, *counters)) for counters in variants}) == len(variants)


def test_entries_are_picked_evenly(bpe):
    table = build(bpe, [" Hausschlüssel"], 0.5, entries=4)
    numbered = SegmentationTable(table.words, 4, np.arange(4, dtype=np.int32), np.arange(5))
    picks = numbered.assemble(np.zeros(4000, dtype=np.int32), SEED, 0, 0)
    assert np.bincount(picks, minlength=4).min() > 900


def test_empty_sentence(bpe, words):
    table = build(bpe, words, 0.3)
    assert table.assemble(np.array([], dtype=np.int32), SEED, 0, 0).shape == (0,)


def test_out_of_the_table(bpe):
    table = build(bpe, [" Haus"], 0.0)
    for word, entry in ((1, 0), (0, ENTRIES), (-1, 0)):
        with pytest.raises(UsageError, match="no entry"):
            table.ids(word, entry)


@pytest.mark.parametrize("settings", [{"level": "word"}, {"level": "subword", "algorithm": "unigram"}])
def test_dropout_needs_bpe(trained, settings):
    assert len(build(trained(**settings), ["a"], 0.0).words) == 1
    with pytest.raises(UsageError, match="BPE"):
        build(trained(**settings), ["a"], 0.1)


@pytest.mark.parametrize(("dropout", "entries"), [(1.0, 2), (-0.1, 2), (float("nan"), 2), (0.1, 0)])
def test_bad_numbers_are_refused(bpe, dropout, entries):
    with pytest.raises(UsageError, match="BPE-dropout needs"):
        build(bpe, [" a"], dropout, entries=entries)
