"""The phrasebook as its readers meet it: enough phrases, held-out ones that are new but composed of known words."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from collections import Counter

import pytest

from clearhead.data.phrasebook import LICENCE_NOTICE, Phrasebook, nearest_copy, phrasebook
from clearhead.data.phrasebook.split import FLOOR
from clearhead.data.phrasebook.words import has_letters, same, words
from clearhead.errors import UsageError

SMALL = 3000
OTHER_PAIRS = [("de", "en"), ("en", "ja"), ("ru", "ar"), ("zh", "tr"), ("pt-BR", "hi")]


@pytest.fixture(scope="module")
def book() -> Phrasebook:
    return phrasebook()


@pytest.fixture(scope="module", params=OTHER_PAIRS, ids="-".join)
def other(request: pytest.FixtureRequest) -> Phrasebook:
    return phrasebook(*request.param, size=SMALL)


def assert_composed(book: Phrasebook) -> None:
    """Held-out phrases hold known words only, and are themselves unknown on either side."""
    for side in (0, 1):
        known = {same(pair[side]) for pair in book.train}
        counts = Counter(word for pair in book.train for word in set(words(pair[side])))
        assert min(counts.values()) >= FLOOR >= 5
        for pair in book.held_out:
            assert same(pair[side]) not in known
            assert not set(words(pair[side])) - set(counts)


def test_the_default_book_is_large_and_rich(book: Phrasebook) -> None:
    assert len({source for source, _ in book.train}) >= 70_000
    assert 1000 <= len(book.held_out) <= 2000
    types = {word for source, _ in book.train for word in words(source) if has_letters(word)}
    assert len({word.casefold() for word in types}) >= 1500


def test_held_out_phrases_are_new_combinations(book: Phrasebook) -> None:
    assert_composed(book)


def test_held_out_phrases_are_new_combinations_in_other_languages(other: Phrasebook) -> None:
    assert len(other.train) > SMALL * 0.7
    assert len(other.held_out) == SMALL // 40
    assert_composed(other)


def test_a_source_has_one_target(book: Phrasebook) -> None:
    sources = Counter(same(source) for source, _ in book.train + book.held_out)
    assert max(sources.values()) == 1


def assert_plain_text(book: Phrasebook) -> None:
    for side in [side for pair in book.train + book.held_out for side in pair]:
        assert re.search(r"[^\S ]|  |^ | $|[\u200b\u200e\u200f\u202a-\u202e]", side) is None, repr(side)
        assert 1 <= len(side.split()) <= 16
        assert re.search(r"\b(duration|volume|area|mass|length)-[a-z]", side) is None, side  # a code is not a name


def test_text_is_normalised_and_short(book: Phrasebook) -> None:
    assert_plain_text(book)


def test_text_is_normalised_and_short_in_other_languages(other: Phrasebook) -> None:
    assert_plain_text(other)


def test_no_kind_takes_over(book: Phrasebook) -> None:
    counts = Counter(book.train_kinds)
    assert len(counts) == 22
    assert max(counts.values()) < len(book.train) * 0.15
    assert set(book.held_out_kinds) == set(counts)
    assert len(book.train_kinds) == len(book.train) and len(book.held_out_kinds) == len(book.held_out)


def test_the_phrases_say_what_the_locale_data_says(book: Phrasebook) -> None:
    """Days of the week and directions of time, counted on both sides: a shuffled column would not pass."""
    days = [("Monday", "Montag"), ("Thursday", "Donnerstag"), ("Sunday", "Sonntag")]
    for source, target in book.train:
        for english, german in days:
            assert (english in words(source)) == (german in words(target)), (source, target)
        assert ("ago" in words(source)) == ("vor" in words(target)), (source, target)


def test_equal_arguments_give_equal_books_in_every_process() -> None:
    code = (
        "import hashlib; from clearhead.data.phrasebook import phrasebook; b = phrasebook(size=2000);"
        "print(hashlib.sha256(repr((b.train, b.held_out)).encode()).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": hashes}, capture_output=True, text=True, check=True
        ).stdout.strip()
        for hashes in ("1", "2")
    }
    here = phrasebook(size=2000)
    assert digests == {hashlib.sha256(repr((here.train, here.held_out)).encode()).hexdigest()}


def test_another_seed_gives_another_book() -> None:
    first, second = phrasebook(size=2000), phrasebook(size=2000, seed=2)
    assert len(set(first.train) & set(second.train)) < len(first.train) / 2


def test_copying_the_nearest_phrase_scores_next_to_nothing(book: Phrasebook) -> None:
    assert nearest_copy(book) <= 0.10


def test_copying_the_nearest_phrase_scores_next_to_nothing_in_other_languages(other: Phrasebook) -> None:
    assert nearest_copy(other) <= 0.10


def test_provenance_and_licence_are_told(book: Phrasebook) -> None:
    assert book.provenance["data"] == "Unicode CLDR"
    assert re.fullmatch(r"\d+(\.\d+)*", str(book.provenance["cldr"]))
    assert {"babel", "seed", "size", "source", "target"} <= set(book.provenance)
    for needed in ("Unicode License v3", "Unicode, Inc.", "https://www.unicode.org/license.txt", "as is"):
        assert needed in LICENCE_NOTICE


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("en", "xx", "no locale 'xx'"),
        ("german", "en", "did you mean 'de'?"),
        ("en", "français", "did you mean 'fr'?"),
        ("en", "fr_DE", "did you mean 'fr'?"),
        ("", "en", "name it by its code"),
        ("en", "en", "the same locale"),
        ("en", "en-US", "the same locale"),
        ("zh_Hans", "zh", "the same locale"),
        ("en", "aa", "knows too little Afar"),
    ],
)
def test_locales_that_cannot_be_used_are_refused(source: str, target: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        phrasebook(source, target, size=2000)


def test_a_book_too_small_is_refused() -> None:
    with pytest.raises(UsageError, match="1999 phrases are too few"):
        phrasebook(size=1999)
