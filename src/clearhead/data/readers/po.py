"""Gettext catalogues: PO and POT.

`entries` parses one into entries that remember which lines they came from, so that the documents room can change
those lines and no others. As pairs: msgid → msgstr, and a plural gives one pair per form. Fuzzy and empty entries are
counted; obsolete ones (#~) are comments.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from clearhead.config import DataSettings
from clearhead.data.readers.languages import orient
from clearhead.data.readers.lines import BadBytes, read_lines
from clearhead.data.readers.pairs import Guess, Pair
from clearhead.errors import DataError

KEYWORD = re.compile(r'(msgctxt|msgid_plural|msgid|msgstr)(?:\[([0-9]{1,3})\])?\s*(".*")$')
ESCAPE = re.compile(r"\\(x[0-9A-Fa-f]{1,2}|[0-7]{1,3}|.)")
ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


@dataclass
class Entry:
    """One message. Lines are numbers from 1, 0 where there is none: of its first keyword (`start`), of msgid."""

    msgctxt: str | None = None
    msgid: str | None = None
    msgid_plural: str | None = None
    msgstr: dict[int, str] = field(default_factory=dict)
    flags: set[str] = field(default_factory=set)
    start: int = 0
    line: int = 0
    flags_line: int = 0
    msgstr_first: int = 0
    msgstr_last: int = 0
    damaged: bool = False

    @property
    def is_header(self) -> bool:
        return self.msgid == "" and self.msgctxt is None

    @property
    def is_filled(self) -> bool:
        return bool(self.msgstr) and all(self.msgstr.values())


def entries(lines: Iterable[str | None], path: Path) -> Iterator[Entry]:
    """Every entry that has a msgid."""
    parser = Parser(path)
    for number, line in enumerate(lines, start=1):
        if (done := parser.take(number, line)) is not None:
            yield done
    if (done := parser.finish()) is not None:
        yield done


class Parser:
    """A line at a time; `take` gives back the entry that this line has shown to be complete."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entry: Entry | None = None
        self.keyword = ""
        self.form = 0

    def take(self, number: int, line: str | None) -> Entry | None:
        if line is None:
            self.started().damaged = True
            return None
        text = line.strip()
        if not text or text.startswith("#~"):
            return self.finish()
        if text.startswith("#"):
            return self.take_comment(number, text)
        if match := KEYWORD.fullmatch(text):
            return self.take_keyword(number, match[1], int(match[2] or 0), unquote(match[3]))
        if self.keyword and len(text) >= 2 and text[0] == text[-1] == '"':
            self.append(number, unquote(text))
            return None
        raise DataError(f"is not PO: {text[:60]!r}", file=self.path, line=number)

    def started(self) -> Entry:
        if self.entry is None:
            self.entry = Entry()
        return self.entry

    def take_comment(self, number: int, text: str) -> Entry | None:
        done = self.finish() if self.keyword else None
        entry = self.started()
        if text.startswith("#,"):
            entry.flags |= {flag.strip() for flag in text[2:].split(",")}
            entry.flags_line = number
        return done

    def take_keyword(self, number: int, keyword: str, form: int, text: str) -> Entry | None:
        begins = keyword == "msgctxt" or (keyword == "msgid" and self.keyword != "msgctxt")
        done = self.finish() if begins and self.keyword else None
        entry = self.started()
        if keyword in ("msgstr", "msgid_plural") and entry.msgid is None:
            raise DataError(f"{keyword} without a msgid before it", file=self.path, line=number)
        self.keyword, self.form = keyword, form
        entry.start = entry.start or number
        if keyword == "msgstr":
            entry.msgstr_first = entry.msgstr_first or number
            entry.msgstr[form] = ""
        else:
            setattr(entry, keyword, "")
            entry.line = number if keyword == "msgid" else entry.line
        self.append(number, text)
        return done

    def append(self, number: int, text: str) -> None:
        entry = self.started()
        if self.keyword == "msgstr":
            entry.msgstr[self.form] += text
            entry.msgstr_last = number
        else:
            setattr(entry, self.keyword, getattr(entry, self.keyword) + text)

    def finish(self) -> Entry | None:
        entry, self.entry, self.keyword = self.entry, None, ""
        return entry if entry is not None and entry.msgid is not None else None


def unquote(text: str) -> str:
    return ESCAPE.sub(unescape, text[1:-1])


def unescape(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] == "x" and len(code) > 1:
        return chr(int(code[1:], 16))
    if code[0] in "01234567":
        return chr(int(code, 8))
    return ESCAPED.get(code, code)


def header_field(entry: Entry | None, name: str) -> str | None:
    """A field of the header entry, such as Language."""
    if entry is None or not entry.is_header:
        return None
    found = re.search(rf"^{name}:[ \t]*(\S.*)$", entry.msgstr.get(0, ""), re.MULTILINE | re.IGNORECASE)
    return found[1].strip() if found else None


@dataclass(frozen=True)
class PoFile:
    path: Path
    guess: Guess
    swapped: bool
    bad_utf8: BadBytes

    def read(self, skipped: Counter[str]) -> Iterator[Pair]:
        for entry in entries(read_lines(self.path, self.bad_utf8, skipped), self.path):
            if entry.is_header or entry.damaged:
                continue
            if "fuzzy" in entry.flags:
                skipped["fuzzy entry"] += 1
                continue
            for source, target in texts(entry):
                if not target:
                    skipped["entry without a translation"] += 1
                    continue
                sides = (target, source) if self.swapped else (source, target)
                yield Pair(*sides, str(self.path), entry.line)


def texts(entry: Entry) -> list[tuple[str, str]]:
    """The first form translates the singular, all others the plural; a language with one form has the plural only."""
    if entry.msgid_plural is None or not entry.msgstr:
        return [(entry.msgid or "", entry.msgstr.get(0, ""))]
    if len(entry.msgstr) == 1:
        return [(entry.msgid_plural, next(iter(entry.msgstr.values())))]
    first = min(entry.msgstr)
    return [(entry.msgid or "" if form == first else entry.msgid_plural, text) for form, text in entry.msgstr.items()]


def open_po(path: Path, settings: DataSettings) -> PoFile:
    header = next(entries(read_lines(path, settings.bad_utf8), path), None)
    found = header_field(header, "X-Source-Language"), header_field(header, "Language")
    swapped, source, target = orient(*found, settings)
    places = ("msgstr", "msgid") if swapped else ("msgid", "msgstr")
    return PoFile(path, Guess(str(path), "PO", places, "", source, target), swapped, settings.bad_utf8)
