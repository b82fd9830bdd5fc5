"""Each rule: what it names, and what it must leave in peace."""

from __future__ import annotations

from itertools import pairwise

import pytest

from clearhead.data.block import Block, HeldOut, Standards
from clearhead.data.cleaning import clean
from clearhead.data.findings import DROPPING, KINDS
from clearhead.data.scripts import BLOCKS, common_script, script_of

HELD_OUT = HeldOut()
HELD_OUT.add("The  Test sentence.", "Der Testsatz.")
STANDARDS = Standards(9.0, "Latin", "Cyrillic", HELD_OUT)
FINE = [
    ("OK", "Это подпись под кнопкой"),  # short on one side, longer on the other
    ("Windows XP", "Windows XP"),
    ("International Business Machines", "International Business Machines"),
    ("Good morning. How are you?", "Доброе утро. Как дела?"),
    ("Press Ctrl+C to stop", "Нажмите Ctrl+C"),
    ("He wrote Привет on the wall", "Он написал «Привет» на стене"),
    ("an Adobe Reader", "Adobe Reader"),
    ("It costs 1,000 %", "Стоит 1.000 %"),
    ("42", "42"),
    ("naïve café", "наивное кафе"),
]


def hits(name: str, *pairs: tuple[str, str]) -> list[int]:
    kind = next(kind for kind in KINDS if kind.name == name)
    block = Block([source for source, _ in pairs], [target for _, target in pairs], STANDARDS)
    return [int(i) for i in kind.rule(block)]


@pytest.mark.parametrize(
    ("name", "pair"),
    [
        ("empty side", ("a", "")),
        ("empty side", (" \u2003", "а")),
        ("overlong", ("x", "я" * 600_000)),
        ("copy", ("these four words stay", "these four words stay")),
        ("length ratio", ("a", "очень длинный текст, который не подходит")),
        ("wrong script", ("Wir sprechen heute", "This is quite another script than before")),
        ("wrong script", ("Это, кажется, не по-английски", "Это по-русски")),
        ("control characters", ("a\x00b", "а")),
        ("control characters", ("a", "а\x9f")),
        ("control characters", ("a\ufeffb", "а")),
        ("break inside", ("a\u2028b", "а")),
        ("break inside", ("a", "а\tб")),
        ("short copy", ("Windows XP", "Windows XP")),
        ("invisible characters", ("a\u200bb", "а")),
        ("direction marks", ("a", "\u202eа")),
        ("not NFC", ("cafe\u0301", "кафе")),
        ("garbled", ("a\ufffd", "а")),
        ("garbled", ("fÃ¼r", "для")),
        ("garbled", ("itâ€™s", "это")),
        ("CSV quotes", ('"a ""b"" c"', "а")),
        ("CSV quotes", ("a", '"""а"", сказал он"')),
        ("numbers differ", ("in 1984", "в 1985")),
        ("numbers differ", ("7 and 7", "7")),
        ("placeholders differ", ("%s files", "файлов")),
        ("placeholders differ", ("a <b>b</b>", "а <b>б")),
        ("placeholders differ", ("see www.x.org", "смотри")),
        ("sentences differ", ("One. Two. Three.", "Один, два, три.")),
        ("line breaks differ", ("a\nb", "а б")),
        ("held-out side", ("the test SENTENCE.", "Что-то")),
        ("held-out side", ("Something", "der Testsatz.")),
        ("held-out pair", ("the test sentence.", "Der  testsatz.")),
    ],
)
def test_each_kind_is_found_among_others(name: str, pair: tuple[str, str]) -> None:
    assert hits(name, *FINE[3:5], pair, FINE[5]) == [2]


@pytest.mark.parametrize("kind", DROPPING, ids=lambda kind: kind.name)
def test_nothing_fine_is_dropped(kind) -> None:
    assert hits(kind.name, *FINE) == []


@pytest.mark.parametrize(
    ("name", "pair"),
    [
        ("CSV quotes", ('"Hello"', '"" and ""')),
        ("CSV quotes", ('say ""yes""', '""да""')),
        ("numbers differ", ("1,000 and 2", "2 и 1.000")),
        ("numbers differ", ("in 1984", "в १९८४")),
        ("placeholders differ", ("{0} of %s", "%s {0}")),
        ("placeholders differ", ("5 % more", "на 5 % больше")),
        ("sentences differ", ("One. Two.", "Один, два.")),
        ("sentences differ", ("一。二。三。", "One. Two. Three.")),
        ("held-out pair", ("the test sentence.", "другое")),
        ("garbled", ("SÃO PAULO", "Сан-Паулу")),
        ("not NFC", ("café", "кафе")),
    ],
)
def test_what_only_looks_alike_is_left_in_peace(name: str, pair: tuple[str, str]) -> None:
    assert hits(name, pair) == []


def test_without_a_common_script_none_is_wrong() -> None:
    kind = next(kind for kind in KINDS if kind.name == "wrong script")
    assert list(kind.rule(Block(["это совсем другое письмо"], ["whatever this may be"], Standards(9.0)))) == []


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("Größe 7", "Latin"),
        ("Привет, Tom", "Cyrillic"),
        ("日本語のテキスト", "Han and kana"),
        ("한국어", "Hangul"),
        ("שלום", "Hebrew"),
        ("हिन्दी", "Devanagari"),
        ("12:30 !", None),
        ("", None),
    ],
)
def test_scripts(text: str, script: str | None) -> None:
    assert script_of(text) == script


def test_a_common_script_needs_its_share() -> None:
    texts = ["a"] * 94 + ["я"] * 6 + ["1"] * 50
    assert common_script(texts, 0.94) == "Latin"
    assert common_script(texts, 0.95) is None
    assert common_script(["1", ""], 0.5) is None


def test_blocks_of_scripts_do_not_overlap() -> None:
    ends = [tuple(int(end, 16) for end in block.split("-")) for blocks in BLOCKS.values() for block in blocks.split()]
    ordered = sorted((end[0], end[-1]) for end in ends)
    assert all(before[1] < after[0] for before, after in pairwise(ordered))


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("a\x00b\x1b", "ab"),
        ("\ufeffa", "a"),
        ("a\u2028\nb\tc\r", "a b c"),
        ("\n", ""),
        ("a\u00a0b\u200cc\u200bd\u200ee\u00adf", "a\u00a0b\u200cc\u200bd\u200ee\u00adf"),
        (" a ", " a "),
    ],
)
def test_cleaning(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned
