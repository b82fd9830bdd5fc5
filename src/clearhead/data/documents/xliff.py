"""XLIFF 1.2 and 2.x: targets are filled, notes, proposals, skeletons and finished units stay as they are.

A unit is filled when it has no target, an empty one, or (1.2) one whose state says it is still to be translated. What
is marked translate="no" is left alone, inline too. A filled segment's state becomes "translated", or in 1.2, when asked
to mark it, "needs-review-translation".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from clearhead.data.documents.segment import Segment
from clearhead.data.documents.slots import filled_copy, has_content, insert_after, replace, segments_in
from clearhead.data.documents.tree import TreeDocument, parse
from clearhead.data.readers.languages import same_language
from clearhead.data.readers.markup import Element, child, local_name
from clearhead.data.readers.xliff import UNITS, UNTRANSLATED, describe, is_code, segments
from clearhead.errors import DataError, UsageError


@dataclass
class SegmentFill:
    """A segment to be filled: what to copy, and the target there is, if any."""

    holder: Element
    source: Element
    target: Element | None
    segments: list[Segment]
    mark: bool

    def put(self, texts: Sequence[str]) -> None:
        new = filled_copy(self.source, "target", texts, is_kept)
        if self.target is None:
            insert_after(new, self.source)
        else:
            new.attrib.update(self.target.attrib)
            replace(self.target, new)
        self.target = new
        if local_name(self.holder) == "trans-unit":
            new.set("state", "needs-review-translation" if self.mark else "translated")
        elif not self.mark:
            self.holder.set("state", "translated")


def is_kept(element: Element) -> bool:
    """Codes, and spans that are not to be translated."""
    return is_code(element) or element.get("translate") == "no" or element.get("mtype") == "protected"


def open_xliff(path: Path, source: str | None, target: str | None, overwrite: bool, mark: bool) -> TreeDocument:
    tree, content = parse(path, "xliff")
    units = [element for element in tree.getroot().iter("{*}*") if local_name(element) in UNITS]
    for unit in units:
        settle_languages(unit, source, target, path)
    holders = [holder for unit in units if is_translatable(unit) for holder in segments(unit)]
    fills = [fill for holder in holders if (fill := to_fill(holder, overwrite, mark, path)) is not None]
    return TreeDocument("XLIFF", tree, content, fills)


def settle_languages(unit: Element, source: str | None, target: str | None, path: Path) -> None:
    """The file's languages must be those asked for; a target language it does not name is written into it."""
    _, declared, into = describe(unit)
    for asked, found in ((source, declared), (target, into)):
        if asked and found and not same_language(asked, found):
            raise DataError(f"is {declared} → {into or '?'}; {asked} was asked for", file=path)
    if into is not None:
        return
    modern = local_name(unit) == "unit"
    if target is None and modern:
        raise UsageError("names no target language", file=path, hint="say which: --to")
    name = "trgLang" if modern else "target-language"
    place = next(e for e in unit.iterancestors() if local_name(e) == ("xliff" if modern else "file"))
    if target is not None:
        place.set(name, target)


def is_translatable(unit: Element) -> bool:
    """As the nearest element around it says."""
    said = (place.get("translate") for place in (unit, *unit.iterancestors()))
    return next((word for word in said if word), "yes") != "no"


def to_fill(holder: Element, overwrite: bool, mark: bool, path: Path) -> SegmentFill | None:
    source, target = child(holder, "seg-source"), child(holder, "target")
    source = child(holder, "source") if source is None else source
    if source is None or (not overwrite and target is not None and is_finished(target)):
        return None
    if not has_content(source):
        return None
    return SegmentFill(holder, source, target, segments_in(source, is_kept, path), mark)


def is_finished(target: Element) -> bool:
    return target.get("state") not in UNTRANSLATED and has_content(target)
