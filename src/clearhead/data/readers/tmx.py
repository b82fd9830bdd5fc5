"""Translation memories: TMX 1.x, streamed.

A unit (`tu`) holds variants (`tuv`) by language; en asks for en-US too, an exact code first. Inside a segment the text
of `hi` counts, the content of `bpt ept it ph ut` is foreign markup and does not. Units without both languages are
counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from clearhead.config import DataSettings
from clearhead.data.readers.languages import same_language
from clearhead.data.readers.markup import (
    LANG,
    Element,
    child,
    children,
    local_name,
    stream_units,
    text_inside,
)
from clearhead.data.readers.pairs import Guess, Pair
from clearhead.errors import DataError

CODES = frozenset({"bpt", "ept", "it", "ph", "ut"})
LOOKED_AT = 1000  # units seen to guess the languages
UNITS = frozenset({"header", "tu"})


@dataclass(frozen=True)
class TmxFile:
    path: Path
    guess: Guess

    def read(self, skipped: Counter[str]) -> Iterator[Pair]:
        name, wanted = str(self.path), (self.guess.source, self.guess.target)
        for unit in stream_units(self.path, "tmx", UNITS):
            if local_name(unit) != "tu":
                continue
            texts = [variant_text(unit, language, self.path) for language in wanted]
            if texts[0] is None or texts[1] is None:
                skipped[f"unit without both {wanted[0]} and {wanted[1]}"] += 1
            else:
                yield Pair(texts[0], texts[1], name, unit.sourceline or 0)


def variant_text(unit: Element, language: str | None, path: Path) -> str | None:
    variant = find_variant(unit, language)
    segment = None if variant is None else child(variant, "seg")
    return None if segment is None else text_inside(segment, path, is_code)


def is_code(element: Element) -> bool:
    return local_name(element) in CODES


def find_variant(unit: Element, language: str | None) -> Element | None:
    """The variant in exactly this language, or the first in a form of it."""
    near = [variant for variant in children(unit, "tuv") if same_language(language_of(variant), language)]
    exact = (variant for variant in near if language_of(variant).lower() == (language or "").lower())
    return next(exact, near[0] if near else None)


def language_of(variant: Element) -> str:
    return str(variant.get(LANG) or variant.get("lang") or "")


def open_tmx(path: Path, settings: DataSettings) -> TmxFile:
    declared, languages = languages_inside(path)
    source, target = choose_languages(declared, languages, settings, path)
    others = [code for code in languages if not same_language(code, source) and not same_language(code, target)]
    notes = (f"also there: {', '.join(others[:8])}",) if others else ()
    return TmxFile(path, Guess(str(path), "TMX", source=source, target=target, notes=notes))


def languages_inside(path: Path) -> tuple[str | None, list[str]]:
    """The header's source language, and the languages of the first units in order of appearance."""
    declared: str | None = None
    seen: dict[str, None] = {}
    for unit in islice(stream_units(path, "tmx", UNITS), LOOKED_AT + 1):
        if local_name(unit) == "header":
            declared = unit.get("srclang")
        else:
            seen.update(dict.fromkeys(filter(None, map(language_of, children(unit, "tuv")))))
    return declared, list(seen)


def choose_languages(
    declared: str | None, languages: Sequence[str], settings: DataSettings, path: Path
) -> tuple[str, str]:
    """As asked; else the header's source language, and the first other one."""
    source, target = settings.source, settings.target
    if source is None:
        fits = [code for code in languages if same_language(code, declared)] or languages
        source = next((code for code in fits if not same_language(code, target)), None)
    if target is None:
        target = next((code for code in languages if not same_language(code, source)), None)
    if source is None or target is None:
        found = f"{', '.join(languages)} only" if languages else "none"
        raise DataError(f"two languages expected, {found} found in its first units", file=path)
    return source, target
