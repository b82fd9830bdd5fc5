"""Translation memories: every unit with a segment in the source language gets one in the target language.

A target segment that is there and not empty is left alone, unless asked to overwrite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lxml import etree

from clearhead.data.documents.segment import Segment
from clearhead.data.documents.slots import filled_copy, has_content, insert_after, replace, segments_in
from clearhead.data.documents.tree import TreeDocument, parse
from clearhead.data.readers.markup import LANG, Element, child, children
from clearhead.data.readers.tmx import find_variant, is_code, language_of
from clearhead.errors import DataError, UsageError


@dataclass
class UnitFill:
    """A unit to be filled: the variant to copy, and the target's, if there is one."""

    source: Element
    target: Element | None
    segments: list[Segment]
    language: str

    def put(self, texts: Sequence[str]) -> None:
        model = child(self.source, "seg")
        assert model is not None, "only variants with a segment are filled"
        segment = filled_copy(model, "seg", texts, is_code)
        if self.target is None:
            self.target = add_variant(self.source, self.language)
        if (old := child(self.target, "seg")) is None:
            self.target.append(segment)
            segment.tail = model.tail
        else:
            replace(old, segment)


def add_variant(source: Element, language: str) -> Element:
    """An empty variant after the unit's last one, in the manner of the source's."""
    parent = source.getparent()
    assert parent is not None, "a variant stands in a unit"
    variant = etree.Element(source.tag, {LANG if source.get(LANG) else "lang": language}, nsmap=source.nsmap)
    variant.text = source.text
    insert_after(variant, children(parent, "tuv")[-1])
    return variant


def open_tmx(path: Path, source: str | None, target: str | None, overwrite: bool) -> TreeDocument:
    tree, content = parse(path, "tmx")
    source = source or declared_source(tree.getroot())
    if source is None or target is None:
        missing, flag = ("target", "--to") if source else ("source", "--from")
        raise UsageError(f"which {missing} language?", file=path, hint=f"say which: {flag}")
    fills: list[UnitFill] = []
    units = list(tree.getroot().iter("{*}tu"))
    refuse_unspoken(units, source, path)
    for unit in units:
        spoken, wanted = find_variant(unit, source), find_variant(unit, target)
        model = None if spoken is None else child(spoken, "seg")
        if spoken is None or model is None or spoken is wanted or (not overwrite and is_finished(wanted)):
            continue
        if has_content(model):
            fills.append(UnitFill(spoken, wanted, segments_in(model, is_code, path), target))
    return TreeDocument("TMX", tree, content, fills)


def refuse_unspoken(units: Sequence[Element], source: str, path: Path) -> None:
    """A document without a unit in the source language is not finished, but another one."""
    if units and all(find_variant(unit, source) is None for unit in units):
        there = sorted({language_of(variant) for unit in units for variant in children(unit, "tuv")})
        hint = f"there are {', '.join(there[:8])}: name one with --from" if there else None
        raise DataError(f"no unit is in {source}", file=path, hint=hint)


def declared_source(root: Element) -> str | None:
    """The header's source language; "*all*" is none."""
    header = child(root, "header")
    language = None if header is None else header.get("srclang")
    return None if language == "*all*" else language


def is_finished(variant: Element | None) -> bool:
    segment = None if variant is None else child(variant, "seg")
    return segment is not None and has_content(segment)
