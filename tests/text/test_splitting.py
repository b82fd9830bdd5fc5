import pytest

from clearhead.text.splitting import LONGEST, split, unmark

SUBWORD = [
    ("Guten Tag!", [" Guten", " Tag", "!"]),
    ("", []),
    (" ", [" ", " "]),
    ("a  b", [" a", " ", " b"]),
    ("a    b", [" a", "   ", " b"]),
    ("  a ", ["  ", " a", " "]),
    ("am 12. Mai", [" am", " ", "1", "2", ".", " Mai"]),
    ("x3y", [" x", "3", "y"]),
    ("don't", [" don", "'", "t"]),
    ('"Ja", sagte', [' "', "Ja", '"', ",", " sagte"]),
    ("nun... nein", [" nun", "...", " nein"]),
    ("a -- b", [" a", " --", " b"]),
    ("?!", [" ?", "!"]),
    ("snake_case", [" snake", "_", "case"]),
    ("tab\there\n", [" tab", "\t", "here", "\n"]),
    ("a\r\n b", [" a", "\r", "\n", " b"]),
    ("nai\u0308ve", [" nai\u0308ve"]),
    ("हिन्दी भाषा", [" हिन्दी", " भाषा"]),
    ("می\u200cخواهم", [" می\u200cخواهم"]),
    ("👩\u200d👧", [" 👩", "\u200d", "👧"]),
    ("x²", [" x²"]),
    ("٣٤", [" ", "٣", "٤"]),
    ("\u0301a", [" \u0301", "a"]),
    ("a\x00b", [" a", "\x00", "b"]),
    ("▁a", [" ▁", "a"]),
    ("今日は。", [" 今日は", "。"]),
]


@pytest.mark.parametrize(("text", "units"), SUBWORD)
def test_subword_units(text, units):
    assert split(text, "subword") == units
    assert unmark("".join(units), "subword") == text


def test_words_keep_their_digits():
    assert split("am 12. Mai 2nd", "word") == [" am", " 12", ".", " Mai", " 2nd"]


def test_characters_and_sentences():
    assert split("a b", "character") == ["a", " ", "b"]
    assert split("Ein Satz.", "sentence") == ["Ein Satz."]
    assert split("", "sentence") == []


@pytest.mark.parametrize(
    "text", ["a" * 1000, "." * 1000, " " * 1000, "e\u0301" * 1000, "a" + "\u0301" * 1000, "क्षि" * 500]
)
def test_units_are_short_whatever_the_text(text):
    units = split(text, "subword")
    assert "".join(units) == " " + text
    assert max(map(len, units)) < 10 * LONGEST
