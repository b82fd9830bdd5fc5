"""Which format a file is in: by what it holds, and by its name where the content leaves it open.

Knows the first 64 KiB. Refuses to read further.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from clearhead.data.readers.languages import bare_name, language_of_file
from clearhead.data.readers.opening import is_utf16, read_head
from clearhead.errors import DataError

Format = Literal["tsv", "jsonl", "plain", "tmx", "po", "xliff"]

BY_SUFFIX: dict[str, Format] = {
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".tmx": "tmx",
    ".po": "po",
    ".pot": "po",
    ".xlf": "xliff",
    ".xliff": "xliff",
}
ROOT = re.compile(r"<(?:[\w.-]+:)?(tmx|xliff)[\s>/]")


def guess_formats(paths: Sequence[Path]) -> list[Format]:
    """One per file. Two files named for two languages are two sides, tabs or not."""
    formats = [guess_format(path) for path in paths]
    names = [language_of_file(path) for path in paths]
    if len(paths) == 2 and names[0] and names[1] and names[0] != names[1] and set(formats) <= {"tsv", "plain"}:
        return ["plain", "plain"]
    return formats


def guess_format(path: Path) -> Format:
    head = read_head(path)
    text = decode_head(head)
    named = BY_SUFFIX.get(Path(bare_name(path)).suffix.lower())
    found = xml_format(text, path) or named
    if is_utf16(head) and found not in ("tmx", "xliff"):
        raise DataError("is UTF-16, not UTF-8", file=path, hint="convert it: `iconv -f UTF-16 -t UTF-8`")
    if found is None:
        found = text_format(text)
    refuse_other_line_ends(head, found, path)
    if found == "plain" and path.suffix.lower() == ".csv":
        raise DataError("is comma-separated", file=path, hint="save it as tab-separated text (UTF-8)")
    return found


def decode_head(head: bytes) -> str:
    return head.decode("utf-16" if is_utf16(head) else "utf-8-sig", errors="replace")


def xml_format(text: str, path: Path) -> Format | None:
    start = text.lstrip()
    if not start.startswith("<"):
        return None
    if root := ROOT.search(start):
        return "tmx" if root[1] == "tmx" else "xliff"
    if start.startswith("<?xml"):
        raise DataError("is XML, but neither TMX nor XLIFF", file=path, hint="export it as TMX or tab-separated text")
    return None


def text_format(text: str) -> Format:
    lines = [line for line in text.split("\n") if line.strip()][:50]
    if re.search(r'^msgid\s*"', text, re.MULTILINE) and re.search(r'^msgstr(\[0\])?\s*"', text, re.MULTILINE):
        return "po"
    if lines and is_record(lines[0]):
        return "jsonl"
    return "tsv" if sum("\t" in line for line in lines) * 2 > len(lines) else "plain"


def is_record(line: str) -> bool:
    if not line.lstrip().startswith(("{", "[")):
        return False
    try:
        return isinstance(json.loads(line), dict | list)
    except (ValueError, RecursionError):
        return False


def refuse_other_line_ends(head: bytes, found: Format, path: Path) -> None:
    if found not in ("tmx", "xliff") and b"\n" not in head and head.rstrip(b"\r").count(b"\r") >= 2:
        hint = r"convert it: `tr '\r' '\n' < old > new`"
        raise DataError("has lines that end in a carriage return alone", file=path, hint=hint)
