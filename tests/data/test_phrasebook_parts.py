"""The parts of the phrasebook: words, voices, the sieve, the split and the baseline, each on cases made by hand."""

from __future__ import annotations

import datetime as dt

import pytest
from babel import Locale
from hypothesis import example, given
from hypothesis import strategies as st

from clearhead.data.phrasebook import Phrasebook, nearest_copy
from clearhead.data.phrasebook.baseline import nearest_places, trigrams
from clearhead.data.phrasebook.draws import Draws, NothingToChoose
from clearhead.data.phrasebook.split import FLOOR, Phrase, hold_out, one_to_one, without_rare_words
from clearhead.data.phrasebook.stock import Sieve, is_plain, make_stock
from clearhead.data.phrasebook.voice import Voice
from clearhead.data.phrasebook.words import normalise, same, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,250.00 Swiss francs", ["1", ",", "250", ".", "00", "Swiss", "francs"]),
        ("St. John’s", ["St", ".", "John", "’", "s"]),
        ("3月3日(木)", ["3", "月", "3", "日", "(", "木", ")"]),
        ("3 घंटे", ["3", "घंटे"]),
        ("الخميس، 3", ["الخميس", "،", "3"]),
        ("7 km²", ["7", "km", "²"]),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@given(st.text())
@example("a\u2028b\u202fc")  # spaces that stand among the marks of punctuation
def test_words_lose_nothing_but_spaces(text: str) -> None:
    assert "".join(words(text)) == "".join(text.split())


@given(st.text())
def test_normalising_twice_is_normalising_once(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


def test_normalise_keeps_what_is_spelling_and_drops_what_is_layout() -> None:
    assert normalise("1\u202f250\u00a0€ \u2009–\u2009\u200f3\u3000km ") == "1 250 € – 3 km"
    assert normalise("می\u200cروم") == "می\u200cروم"
    assert normalise("u\u0308ber") == "über"


def test_sameness_is_of_words_not_of_spaces_and_capitals() -> None:
    assert same("3 °C,  Ja") == same("3°c, ja")
    assert same("3 °C") != same("30 °C")


def test_a_voice_says_what_its_locale_says() -> None:
    german, japanese = Voice(Locale("de")), Voice(Locale("ja"))
    when = dt.datetime(2022, 3, 3, 14, 5)
    assert german.moment(when, "full") == "Donnerstag, 3. März 2022, 14:05"
    assert german.relative(-12, "week") == "vor 12 Wochen"
    assert german.relative(1, "day") == "in 1 Tag"
    assert german.quantity(7.5, "length-kilometer", "long") == "7,5 Kilometer"
    assert german.rate(20, "volume-liter", "duration-minute") == "20 Liter pro Minute"
    assert german.money(1250, "CHF", "name") == "1.250,00 Schweizer Franken"
    assert german.listing(["a", "b", "c"], "or") == "a, b oder c"
    assert german.name("city", "Asia/Dubai") == "Dubai"
    assert japanese.quantity(3, "duration-year", "long") == "3 年"  # has no long form of its own
    assert japanese.name("city", "Asia/Dubai") == "ドバイ"


def test_a_voice_is_silent_rather_than_wrong() -> None:
    voice = Voice(Locale("ru"))
    assert voice.listing(["да", ""], "standard") == ""
    assert voice.name("territory", "no such code") == ""
    assert voice.name("city", "Etc/Nowhere") == ""


def test_currencies_without_cents_show_none_and_agree_with_what_is_shown() -> None:
    assert Voice(Locale("en")).money(1.99, "JPY", "name") == "1 Japanese yen"
    assert Voice(Locale("ru")).money(8.95, "XPF", "name") == "8 французских тихоокеанских франков"


def test_the_sieve_keeps_the_first_meaning_of_a_source() -> None:
    english, german = Voice(Locale("en")), Voice(Locale("de"))
    items = {"pint": ("3 pt", "3 Pint"), "point": ("3 pt", "3 p"), "pints": ("3 PT", "3 Pint"), "mute": ("", "3")}
    sieve = Sieve(english, german)
    kept = sieve.keep(items, lambda voice, item: [items[item][voice is german]])
    assert kept == ["pint", "pints"]


def test_a_name_said_alike_for_two_things_stays_out_when_the_target_tells_them_apart() -> None:
    """English says Greek for the language and for the script; Russian has a word for each."""
    english, german, russian = (Voice(Locale(code)) for code in ("en", "de", "ru"))
    assert "Grek" in make_stock(english, german).names["script"]
    assert "Grek" not in make_stock(english, russian).names["script"]


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("Côte d’Ivoire", True),
        ("Old English (ca.450-1100)", False),
        ("UN M.49", False),
        ("", False),
        ("a b c d e", False),
    ],
)
def test_plain_names(name: str, plain: bool) -> None:
    assert is_plain(name) is plain


def phrases(*pairs: str) -> list[Phrase]:
    return [Phrase("kind", *pair.split(" → ")) for pair in pairs]


def test_doubles_go_and_ambiguous_sources_go_altogether() -> None:
    given = phrases("a b → A B", "c d → C D", "A b → A B", "c d → C E", "e f → C D")
    assert one_to_one(given) == phrases("a b → A B", "e f → C D")


def test_rare_words_go_with_their_phrases_until_none_is_left() -> None:
    steady = [Phrase("kind", f"in {n} days", f"in {n} Tagen") for n in range(FLOOR)]
    steady += [Phrase("kind", f"in {n} weeks", f"in {n} Wochen") for n in range(FLOOR)]
    assert without_rare_words(steady) == []  # each number occurs twice only
    frequent = [Phrase("kind", "word " * n, "Wort " * n) for n in range(1, FLOOR + 1)]
    chain = [Phrase("kind", f"word last{'s' * n}", "Wort Ende") for n in range(FLOOR)]
    assert without_rare_words(frequent + chain) == frequent  # "Ende" falls with the last "last"


def test_holding_out_leaves_every_word_its_floor() -> None:
    numbers = range(FLOOR + 2)
    given = [Phrase("kind", f"{a} plus {b}", f"{a} und {b}") for a in numbers for b in numbers]
    train, held = hold_out(given, 1000, seed=1)
    assert held and sorted(map(str, train + held)) == sorted(map(str, given))
    assert without_rare_words(train) == train


def test_a_target_that_training_has_is_never_held_out() -> None:
    given = [Phrase("kind", f"{word} one", "eins") for word in "abcdefgh"] * (FLOOR + 1)
    train, held = hold_out(given, 1000, seed=1)
    assert held == [] and len(train) == len(given)


def test_nearest_is_by_rare_trigrams_and_the_first_among_equals() -> None:
    known = ["in 3 days", "in 12 weeks", "3 Swiss francs", "in 3 days"]
    assert nearest_places(known, ["in 4 days", "4 Swiss francs", "in 12 weeks", "¿¿¿"]) == [0, 2, 1, 0]
    assert trigrams("aaaa") == ["  a", " aa", "aaa", "aa "]


def test_the_baseline_scores_what_copying_gets_right() -> None:
    train = [("one dog", "ein Hund"), ("two cats", "zwei Katzen")]
    held = [("one dogs", "ein Hund"), ("two cat", "zwei Katze")]
    kinds = ["kind", "kind"]
    assert nearest_copy(Phrasebook("en", "de", train, kinds, held, kinds, {})) == 0.5


def test_nothing_to_choose_is_said_so() -> None:
    for choose in (Draws(1, "test").pick, Draws(1, "test").prominent):
        with pytest.raises(NothingToChoose):
            choose([])
    with pytest.raises(NothingToChoose):
        Draws(1, "test").several([], 2)


def test_prominent_things_come_more_often_and_several_are_different() -> None:
    draws = Draws(1, "test")
    chosen = [draws.prominent(range(100)) for _ in range(2000)]
    assert chosen.count(0) > 4 * chosen.count(99) and max(chosen) > 90
    assert all(len(set(draws.several(range(5), 4))) == 4 for _ in range(50))
    assert sorted(draws.several(range(2), 4)) == [0, 1]
