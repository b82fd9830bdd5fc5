"""Every setting with its type, bounds, default and meaning, as text: from the settings themselves.

    python -m clearhead.config.document > docs/settings.md
    clearhead train --settings

Knows the settings and two ways to write them down. Refuses to know what a default becomes once the data are known.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from clearhead.config.experiment import Experiment

PREAMBLE = """\
# Settings

Made from the code by `python -m clearhead.config.document > docs/settings.md`; `clearhead train --settings` prints the
same list. How settings are given, and which defaults depend on the amount of data, is in [config.md](config.md)."""
PLAIN = {bool: "true or false", int: "whole number", float: "number", str: "text"}
SIGNS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}


@dataclass(frozen=True)
class Entry:
    """One setting, in words."""

    name: str
    kind: str
    default: str
    meaning: str


@dataclass(frozen=True)
class Section:
    """The settings of one room; the first section has those that stand above all tables."""

    name: str
    meaning: str
    entries: tuple[Entry, ...]


def sections() -> list[Section]:
    """Every setting there is, in the order of a recipe."""
    rooms = {name: kind for name, field in Experiment.model_fields.items() if (kind := room_of(field)) is not None}
    top = [(name, field) for name, field in Experiment.model_fields.items() if name not in rooms]
    found = [Section("", "Above all tables.", tuple(entry(name, field) for name, field in top))]
    for room, kind in rooms.items():
        entries = tuple(entry(f"{room}.{name}", field) for name, field in kind.model_fields.items())
        found.append(Section(room, str(kind.__doc__).splitlines()[0], entries))
    return found


def room_of(field: FieldInfo) -> type[BaseModel] | None:
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def entry(name: str, field: FieldInfo) -> Entry:
    kind = "; ".join([in_words(field.annotation), *bounds(field)])
    return Entry(name, kind, written(field.default), " ".join(str(field.description).split()))


def in_words(kind: Any) -> str:
    """ "whole number", "text or empty", "one of …"."""
    options = get_args(kind)
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(map(written, options))
    if type(None) in options:
        return f"{in_words(options[0])} or empty"
    if get_origin(kind) is tuple:
        return "list of texts" if Ellipsis in options else f"list of {len(options)} numbers"
    return PLAIN[kind]


def bounds(field: FieldInfo) -> Iterator[str]:
    for bound in field.metadata:
        for name, sign in SIGNS.items():
            if hasattr(bound, name):
                value = getattr(bound, name)
                yield f"{sign} {'2^63' if value == 2**63 else format(value, ',')}"


def written(value: Any) -> str:
    """As in a recipe; "empty" where TOML writes nothing."""
    return "empty" if value is None else json.dumps(value)


def markdown() -> str:
    """docs/settings.md."""
    parts = [PREAMBLE]
    for section in sections():
        title = f"## {section.name}\n\n{section.meaning}" if section.name else f"## {section.meaning.rstrip('.')}"
        rows = [f"| `{e.name}` | {e.kind} | `{e.default}` | {e.meaning} |" for e in section.entries]
        parts.append("\n".join([title, "", "| name | type | default | meaning |", "|---|---|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def lines() -> list[str]:
    """The same for a terminal."""
    text: list[str] = []
    for section in sections():
        text += [f"[{section.name}]  {section.meaning}" if section.name else section.meaning]
        for e in section.entries:
            text += [f"  {e.name} = {e.default}    ({e.kind})", f"      {e.meaning}"]
        text.append("")
    return text[:-1]


if __name__ == "__main__":
    sys.stdout.write(markdown())
