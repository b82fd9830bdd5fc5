"""Readers: what goes in comes out; and any bytes at all are pairs or one clear error."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clearhead.config import DataSettings
from clearhead.data.duplicates import Repeats
from clearhead.data.gate import Gate
from clearhead.data.readers import Pair, open_pairs
from clearhead.data.readers.lines import count_lines, read_lines
from clearhead.data.readers.plain import line_sizes, slip
from clearhead.data.report import check, lines
from clearhead.errors import ClearheadError

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
in_table = text.map(lambda t: t.replace("\t", " ").replace("\n", " ").rstrip("\r") + ".")
FORMATS = ["a.tsv", "a.jsonl", "a.po", "a.tmx", "a.xlf", "a.txt", "a"]
STARTS = [
    b"",
    b"\xef\xbb\xbf",
    b"\x1f\x8b",
    b"en\tde\n",
    b'{"en": "a", "de": "b"}\n',
    b'msgid "a"\nmsgstr "b"\n',
    b'<tmx><body><tu><tuv lang="en"><seg>a</seg></tuv><tuv lang="de"><seg>b</seg></tuv></tu>',
    b'<xliff version="2.0" srcLang="en"><file><unit><segment><source>a</source><target>b</target>',
]


def put(folder: str, name: str, content: bytes) -> Path:
    path = Path(folder, name)
    path.write_bytes(content)
    return path


@settings(deadline=None)
@given(st.lists(text.map(lambda t: t.replace("\n", "")), max_size=6), st.booleans(), st.sampled_from(["\n", "\r\n"]))
def test_lines_are_what_stood_between_newlines(parts: list[str], closed: bool, ending: str) -> None:
    content = ending.join(parts) + (ending if closed and parts else "")
    expected = content.removeprefix("\ufeff").split("\n")
    expected = expected[:-1] if content.endswith("\n") or not content else expected
    expected = [line.removesuffix("\r") for line in expected]
    with tempfile.TemporaryDirectory() as folder:
        path = put(folder, "a", content.encode())
        assert list(read_lines(path)) == expected
        assert count_lines(path) == len(expected)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(in_table, in_table), min_size=1, max_size=5))
def test_tables_and_records_come_back(pairs: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = put(folder, "a.tsv", ("x.\ty.\n" + "".join(f"{s}\t{t}\n" for s, t in pairs)).encode())
        records = put(folder, "a.jsonl", "".join(json.dumps({"src": s, "tgt": t}) + "\n" for s, t in pairs).encode())
        assert [(p.source, p.target) for p in open_pairs([table], DataSettings())][1:] == pairs
        assert [(p.source, p.target) for p in open_pairs([records], DataSettings())] == pairs


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(STARTS),
    st.binary(max_size=40) | text.map(str.encode),
    st.sampled_from(["error", "replace", "skip"]),
)
def test_any_bytes_are_pairs_or_one_clear_error(name: str, start: bytes, rest: bytes, bad_utf8: str) -> None:
    given_settings = DataSettings(bad_utf8=bad_utf8)
    with tempfile.TemporaryDirectory() as folder:
        path = put(folder, name, start + rest)
        try:
            pairs = open_pairs([path], given_settings)
            report = check(pairs, given_settings)
        except ClearheadError as error:
            assert error.exit_code == 2
            assert folder in str(error)
        else:
            assert report.read >= 1
            assert all(line.isprintable() for line in lines(report))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(text, text), max_size=30), st.sampled_from(["drop", "warn", "off"]))
def test_the_gate_adds_up_and_does_nothing_twice(sides: list[tuple[str, str]], mode: str) -> None:
    given_settings = DataSettings(gate=mode, max_ratio=2.0)
    pairs = [Pair(s, t, "f", i) for i, (s, t) in enumerate(sides)]
    gate = Gate.learn(pairs, given_settings)
    kept = list(gate(pairs))
    assert gate.read == len(pairs)
    assert gate.kept == len(kept) == len(pairs) - (gate.dropped.total() if mode == "drop" else 0)
    if mode != "off":
        assert Counter(reason for pair in pairs for reason in gate.reasons([pair]).values()) == gate.dropped
    assert list(gate(kept)) == kept


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), max_size=40))
def test_repeats_are_counted_exactly(pairs: list[tuple[str, str]]) -> None:
    repeats = Repeats()
    for start in range(0, len(pairs), 7):
        part = pairs[start : start + 7]
        repeats.add([s for s, _ in part], [t for _, t in part])
    different = set(pairs)
    assert repeats.counts() == (len(pairs) - len(different), len(different) - len({s for s, _ in different}))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 30), st.integers(1, 3), st.randoms(use_true_random=False))
def test_the_slip_is_found_where_a_line_was_lost(lost: int, count: int, random) -> None:
    sizes = [random.choice([4, 30, 200]) for _ in range(34)]
    with tempfile.TemporaryDirectory() as folder:
        whole = put(folder, "a", "\n".join("x" * size for size in sizes).encode())
        less = put(folder, "b", "\n".join("y" * size for size in sizes[:lost] + sizes[lost + count :]).encode())
        found = slip(line_sizes(whole), line_sizes(less))
    # Lines of equal length around the gap cannot be told apart: the answer must explain the sizes as the truth does.
    assert sizes[:found] + sizes[found + count :] == sizes[:lost] + sizes[lost + count :]
