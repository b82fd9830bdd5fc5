"""XLIFF 1.2 and 2.x, streamed.

Only a unit's own `source` and `target` count: proposals (`alt-trans`, `mtc:match`) hold elements of the same names. The
content of codes is dropped, the text of spans (`g mrk pc`) kept. Units without a translation are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from clearhead.config import DataSettings
from clearhead.data.readers.languages import orient, same_language
from clearhead.data.readers.markup import Element, child, children, local_name, stream_units, text_inside
from clearhead.data.readers.pairs import Guess, Pair
from clearhead.errors import DataError

UNITS = frozenset({"trans-unit", "unit"})
CODES = frozenset({"x", "bx", "ex", "bpt", "ept", "it", "ph", "sc", "ec", "cp", "sm", "em"})
UNTRANSLATED = frozenset({"new", "needs-translation"})  # states of 1.2; in 2.x "initial" is merely the default


@dataclass(frozen=True)
class XliffFile:
    path: Path
    guess: Guess
    swapped: bool

    def read(self, skipped: Counter[str]) -> Iterator[Pair]:
        name = str(self.path)
        for unit in stream_units(self.path, "xliff", UNITS):
            for holder in segments(unit):
                source, target = child(holder, "source"), child(holder, "target")
                if source is None or target is None or target.get("state") in UNTRANSLATED:
                    skipped["segment without a translation"] += 1
                    continue
                texts = [text_inside(side, self.path, is_code) for side in (source, target)]
                if not texts[1].strip():
                    skipped["segment without a translation"] += 1
                    continue
                if self.swapped:
                    texts.reverse()
                yield Pair(texts[0], texts[1], name, holder.sourceline or 0)


def is_code(element: Element) -> bool:
    return local_name(element) in CODES


def segments(unit: Element) -> list[Element]:
    """What holds source and target: a 1.2 unit itself, a 2.x unit's segments."""
    return [unit] if local_name(unit) == "trans-unit" else children(unit, "segment")


def open_xliff(path: Path, settings: DataSettings) -> XliffFile:
    unit = next(stream_units(path, "xliff", UNITS), None)
    if unit is None:
        raise DataError("holds no units", file=path)
    version, *languages = describe(unit)
    swapped, source, target = orient(languages[0], languages[1], settings)
    for asked, found in ((settings.source, languages[swapped]), (settings.target, languages[not swapped])):
        if asked and found and not same_language(asked, found):
            raise DataError(f"is {languages[0]} → {languages[1] or '?'}; {asked} was asked for", file=path)
    notes = ("read from target to source",) if swapped else ()
    return XliffFile(path, Guess(str(path), f"XLIFF {version}", source=source, target=target, notes=notes), swapped)


def describe(unit: Element) -> tuple[str, str | None, str | None]:
    """Version, source and target language, as the unit's ancestors say."""
    version, source, target = "?", None, None
    for place in unit.iterancestors():
        source = source or place.get("source-language") or place.get("srcLang")
        target = target or place.get("target-language") or place.get("trgLang")
        version = place.get("version") or version
    return version, source, target
