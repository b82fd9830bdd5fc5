"""Gettext catalogues: only the msgstr of filled entries changes, every other byte of the file stays.

Empty entries are filled (all, when asked to overwrite); plurals get as many forms as the header, or the language,
wants, the first from msgid and the others from msgid_plural. Obsolete entries and the header are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from clearhead.data.documents.content import read_text, save
from clearhead.data.documents.segment import Segment, check_count
from clearhead.data.readers.po import Entry, entries, header_field

ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r", "\a": "\\a", "\b": "\\b"}
ESCAPES |= {"\f": "\\f", "\v": "\\v"}
MOST_FORMS = 6  # Arabic's; a header that asks for more is not believed


@dataclass(frozen=True)
class PoDocument:
    lines: list[str]
    entries: list[Entry]
    """Those to be filled."""
    n_forms: int
    overwrite: bool
    mark: bool
    format: str = "PO"

    @property
    def segments(self) -> list[Segment]:
        return [Segment(text, entry.line) for entry in self.entries for text in messages(entry)]

    def write(self, translations: Sequence[str], path: Path) -> None:
        check_count(self.segments, translations)
        lines: list[str | None] = [*self.lines]
        inserted: dict[int, list[str]] = {}
        answers = iter(translations)
        for entry in self.entries:
            forms = [next(answers) for _ in messages(entry)]
            for number in range(entry.msgstr_first, entry.msgstr_last + 1):
                lines[number - 1] = None
            inserted[entry.msgstr_first] = msgstr_lines(entry, forms, self.n_forms, self.overwrite)
            self.flag(entry, lines, inserted)
        save(path, self.join(lines, inserted).encode())

    def flag(self, entry: Entry, lines: list[str | None], inserted: dict[int, list[str]]) -> None:
        """ "fuzzy" is set on a filled entry when asked for, and taken from one whose doubtful text has gone."""
        if self.mark == ("fuzzy" in entry.flags):
            return
        flags = sorted(entry.flags ^ {"fuzzy"}, key=lambda flag: flag != "fuzzy")
        if entry.flags_line:
            lines[entry.flags_line - 1] = None
        if flags:
            inserted[entry.flags_line or entry.start] = ["#, " + ", ".join(flags)]

    def join(self, lines: Sequence[str | None], inserted: dict[int, list[str]]) -> str:
        ending = "\r" if self.lines[0].endswith("\r") else ""
        result: list[str] = []
        for number, line in enumerate(lines, start=1):
            result += [new + ending for new in inserted.get(number, ())]
            if line is not None:
                result.append(line)
        return "\n".join(result)


def messages(entry: Entry) -> list[str]:
    return [text for text in (entry.msgid, entry.msgid_plural) if text is not None]


def msgstr_lines(entry: Entry, forms: Sequence[str], n_forms: int, overwrite: bool) -> list[str]:
    """The entry's msgstr; of a plural that was filled in part, the forms that were there stay."""
    if entry.msgid_plural is None:
        return field_lines("msgstr", forms[0])
    texts = [forms[1]] if n_forms == 1 else [forms[0]] + [forms[1]] * (n_forms - 1)
    there = {} if overwrite else entry.msgstr
    return [line for form, text in enumerate(texts) for line in field_lines(f"msgstr[{form}]", there.get(form) or text)]


def field_lines(keyword: str, text: str) -> list[str]:
    """A text of several lines stands below its keyword, one line each, as gettext's own tools write it."""
    parts = re.findall(r"[^\n]*\n|[^\n]+", text)
    quoted = ['"' + "".join(ESCAPES.get(c, c) for c in part) + '"' for part in parts] or ['""']
    return [f"{keyword} {quoted[0]}"] if len(quoted) == 1 else [f'{keyword} ""', *quoted]


def open_po(path: Path, target: str | None, overwrite: bool, mark: bool) -> PoDocument:
    lines = read_text(path).split("\n")
    parsed = list(entries((line.removeprefix("\ufeff").removesuffix("\r") for line in lines), path))
    header = parsed[0] if parsed else None
    fillable = [entry for entry in parsed if entry.msgid and entry.msgstr and (overwrite or not entry.is_filled)]
    return PoDocument(lines, fillable, count_forms(header, target), overwrite, mark)


def count_forms(header: Entry | None, target: str | None) -> int:
    """How many plural forms: as the header says, else as the language has, else two."""
    declared = re.search(r"nplurals\s*=\s*([0-9]+)", header_field(header, "Plural-Forms") or "")
    if declared and 1 <= int(declared[1]) <= MOST_FORMS:
        return int(declared[1])
    language = target or header_field(header, "Language")
    if language is None:
        return 2
    from babel.core import Locale, UnknownLocaleError  # here: Babel takes its time
    from babel.messages.plurals import get_plural

    try:
        return int(get_plural(Locale.parse(language.replace("-", "_"))).num_plurals)
    except (UnknownLocaleError, ValueError):
        return 2
