"""Which two columns of a table are the pair: as asked, as the header names them, or as their content suggests.

Knows names, numbers and the look of cells. Refuses to know files.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from clearhead.config import DataSettings
from clearhead.data.readers.languages import is_code, same_language
from clearhead.errors import UsageError

NAMED = (
    ("source", "target"),
    ("src", "tgt"),
    ("src", "trg"),
    ("source", "translation"),
    ("source_text", "target_text"),
)
ALSO_WORDS = frozenset({"id", "no"})  # codes too, but as a column's name more often "identifier" and "number"


def asked_columns(settings: DataSettings) -> tuple[int, int] | tuple[str, str] | None:
    """`data.columns` as two indices from 0 or two names."""
    if settings.columns is None:
        return None
    names = [name.strip() for name in settings.columns.split(",")]
    if len(names) != 2 or not all(names) or names[0] == names[1]:
        raise UsageError(
            f"{settings.columns!r} does not name two columns", field="data.columns", hint='for example "1,2" or "en,de"'
        )
    if not all(re.fullmatch(r"[0-9]+", name) for name in names):
        return names[0], names[1]
    first, second = (int(name) - 1 for name in names)
    if first < 0 or second < 0 or first == second:
        raise UsageError("columns are counted from 1", field="data.columns", hint='for example "1,2"')
    return first, second


def named_pair(names: Sequence[str], settings: DataSettings) -> tuple[int, int] | None:
    """The two places whose names say they are the pair; None when no two do."""
    lower = [name.strip().lower() for name in names]
    for one, other in NAMED:
        if one in lower and other in lower:
            return lower.index(one), lower.index(other)
    places = language_places(names, settings)
    if len(places) < 2:
        return None
    source = find_language(names, places, settings.source)
    target = find_language(names, places, settings.target)
    if source is None:
        source = next(place for place in places if place != target)
    if target is None:
        target = next(place for place in places if place != source)
    return (source, target) if source != target else None


def language_places(names: Sequence[str], settings: DataSettings) -> list[int]:
    wanted = {settings.source, settings.target}
    places = [i for i, name in enumerate(names) if name.strip() in wanted or is_code(name.strip())]
    sure = [i for i in places if names[i].strip() not in ALSO_WORDS - wanted]
    return sure if len(sure) >= 2 else places


def find_language(names: Sequence[str], places: Sequence[int], wanted: str | None) -> int | None:
    """The column of a wanted language, the exact code before a longer or shorter one."""
    exact = [i for i in places if names[i].strip() == wanted]
    near = [i for i in places if same_language(names[i].strip(), wanted)]
    if wanted is not None and not near:
        listed = ", ".join(names[i].strip() for i in places)
        raise UsageError(
            f"there is no column {wanted}; the columns are {listed}", hint="name the columns: data.columns"
        )
    return next(iter(exact or near), None)


def text_columns(rows: Sequence[Sequence[str]]) -> list[int]:
    """Columns that look like sentences: letters in most cells, not one value all the way down, not addresses."""
    return [i for i, column in enumerate(zip(*rows, strict=True)) if is_text(column)]


def is_text(cells: Sequence[str]) -> bool:
    worded = sum(any(map(str.isalpha, cell)) for cell in cells)
    addresses = sum(cell.startswith(("http://", "https://")) for cell in cells)
    constant = len(cells) >= 5 and len(set(cells)) == 1
    return worded * 2 > len(cells) and addresses * 2 <= len(cells) and not constant
