"""Pairs as JSON, one value per line: an object with a field per side, or a list of two.

Knows which fields are the sides: as asked, `source` and `target`, two language codes, the same inside `translation`,
or the only two texts there are. Every side must be a text that UTF-8 can hold: half of a surrogate pair is refused.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clearhead.config import DataSettings
from clearhead.data.readers.columns import asked_columns, named_pair
from clearhead.data.readers.languages import is_code, orient
from clearhead.data.readers.lines import BadBytes, read_lines
from clearhead.data.readers.pairs import Guess, Pair
from clearhead.errors import DataError, UsageError

Field = tuple[str | int, ...]  # the keys to follow from the line's value to a side's text


@dataclass(frozen=True)
class JsonlFile:
    path: Path
    guess: Guess
    fields: tuple[Field, Field]
    width: int | None
    """Texts in each line's list; None where the lines are objects."""
    bad_utf8: BadBytes

    def read(self, skipped: Counter[str]) -> Iterator[Pair]:
        name, (source, target) = str(self.path), self.fields
        for number, line, record in records(self.path, self.bad_utf8, skipped):
            refuse_other_shape(record, self.width, self.path, number)
            pair = Pair(
                text_at(record, source, self.path, number), text_at(record, target, self.path, number), name, number
            )
            if "\\u" in line:  # only an escape can bring in a surrogate: the bytes themselves were checked
                refuse_surrogates(pair, (source, target), self.path)
            yield pair


def records(path: Path, bad_utf8: BadBytes, skipped: Counter[str]) -> Iterator[tuple[int, str, Any]]:
    for number, line in enumerate(read_lines(path, bad_utf8, skipped), start=1):
        if line is None:
            continue
        if not line.strip():
            skipped["blank line"] += 1
            continue
        yield number, line, parse(line, path, number)


def parse(line: str, path: Path, number: int) -> Any:
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        hint = "one complete JSON value per line: `jq -c '.[]'` turns a JSON list into that"
        raise DataError(
            f"is not JSON: {error.msg} at column {error.colno}", file=path, line=number, hint=hint
        ) from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"is not usable JSON: {error}", file=path, line=number) from None


def refuse_other_shape(record: Any, width: int | None, path: Path, number: int) -> None:
    if width is None and not isinstance(record, dict):
        raise DataError(f"an object expected, {kind_of(record)} found", file=path, line=number)
    if width is not None and not (isinstance(record, list) and len(record) == width):
        found = len(record) if isinstance(record, list) else kind_of(record)
        raise DataError(f"a list of {width} expected, {found} found", file=path, line=number)


def kind_of(value: Any) -> str:
    kinds = {type(None): "null", bool: "true or false", int: "a number", float: "a number", list: "a list"}
    return "a text" if isinstance(value, str) else kinds.get(type(value), "an object")


def text_at(record: Any, field: Field, path: Path, number: int) -> str:
    value = record
    for key in field:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            there = f"; the fields are {', '.join(map(str, record))[:200]}" if isinstance(record, dict) else ""
            raise DataError(f"is missing{there}", file=path, line=number, field=dotted(field)) from None
    if not isinstance(value, str):
        raise DataError(f"is {kind_of(value)}, not a text", file=path, line=number, field=dotted(field))
    return value


def refuse_surrogates(pair: Pair, fields: tuple[Field, Field], path: Path) -> None:
    for text, field in zip((pair.source, pair.target), fields, strict=True):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise DataError(
                f"character {error.start + 1} is half of a surrogate pair (U+{ord(text[error.start]):04X})",
                file=path,
                line=pair.line,
                field=dotted(field),
                hint="the text was cut inside a character by whatever wrote it",
            ) from None


def dotted(field: Field) -> str:
    return ".".join(str(key + 1) if isinstance(key, int) else key for key in field)


def open_jsonl(path: Path, settings: DataSettings) -> JsonlFile:
    first = next(records(path, settings.bad_utf8, Counter()), None)
    if first is None:
        raise DataError("holds nothing but blank lines", file=path)
    fields = choose_fields(first[2], settings, path, first[0])
    names = [str(field[-1]) if is_code(str(field[-1])) else None for field in fields]
    if settings.columns is not None:
        source, target = settings.source or names[0], settings.target or names[1]
    else:
        swap, source, target = orient(names[0], names[1], settings)
        fields = (fields[1], fields[0]) if swap else fields
    guess = Guess(str(path), "JSON lines", (dotted(fields[0]), dotted(fields[1])), "fields", source, target)
    width = len(first[2]) if isinstance(first[2], list) else None
    return JsonlFile(path, guess, fields, width, settings.bad_utf8)


def choose_fields(record: Any, settings: DataSettings, path: Path, number: int) -> tuple[Field, Field]:
    """From the first record: where each side stands."""
    asked = asked_columns(settings)
    if isinstance(record, list):
        if asked and isinstance(asked[0], str):
            raise UsageError(
                "the lines are lists: give columns by number", file=path, line=number, field="data.columns"
            )
        if len(record) != 2 and not asked:
            objects = any(isinstance(value, dict | list) for value in record)
            hint = "one record per line: `jq -c '.[]'` turns a JSON list into that" if objects else None
            raise DataError(f"a list of 2 texts expected, {len(record)} found", file=path, line=number, hint=hint)
        return ((asked[0],), (asked[1],)) if asked else ((0,), (1,))
    if not isinstance(record, dict):
        raise DataError(f"an object or a list expected, not {json.dumps(record)[:40]}", file=path, line=number)
    if asked and not isinstance(asked[0], str):
        raise UsageError("the lines are objects: give fields by name", file=path, line=number, field="data.columns")
    if asked:
        return follow(record, str(asked[0])), follow(record, str(asked[1]))
    return guess_fields(record, settings, path, number)


def follow(record: Mapping[str, Any], name: str) -> Field:
    """A name with dots leads inside, unless a field has that very name."""
    return (name,) if name in record else tuple(name.split("."))


def guess_fields(record: Mapping[str, Any], settings: DataSettings, path: Path, number: int) -> tuple[Field, Field]:
    inner = record.get("translation")
    if isinstance(inner, dict) and len(inner) >= 2:
        keys = list(inner)
        first, second = named_pair(keys, settings) or (0, 1)
        return ("translation", keys[first]), ("translation", keys[second])
    keys = [key for key, value in record.items() if isinstance(value, str)]
    found = named_pair(keys, settings) or ((0, 1) if len(keys) == 2 else None)
    if found is None:
        keys = list(record)  # a side that is no text in the first line is told when it is read
        found = named_pair(keys, settings)
    if found is None:
        raise UsageError(
            f"which fields are source and target? There are: {', '.join(record)[:200]}",
            file=path,
            line=number,
            field="data.columns",
            hint='for example data.columns = "source,target"',
        )
    return (keys[found[0]],), (keys[found[1]],)
