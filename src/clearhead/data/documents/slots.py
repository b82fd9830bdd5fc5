"""The places in XML where words stand, and putting words there.

A target is made as a copy of its source element, so every inline element comes along, in its place, with its
attributes; only the text between them changes. What stands inside codes, or is marked as not to be translated, is kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

from lxml import etree

from clearhead.data.documents.segment import Segment
from clearhead.data.protected import has_letters
from clearhead.data.readers.markup import LANG, Element, beside, refuse_entity

NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Keep = Callable[[Element], bool]


@dataclass(frozen=True)
class Slot:
    """The text before an element's first child, or after the element."""

    element: Element
    after: bool

    @property
    def text(self) -> str:
        return (self.element.tail if self.after else self.element.text) or ""

    def fill(self, text: str) -> None:
        safe = NOT_XML.sub("", text)
        if self.after:
            self.element.tail = safe
        else:
            self.element.text = safe


def slots(element: Element, keep: Keep) -> list[Slot]:
    """Every place with letters, in reading order; `keep` says which inline elements are left as they are."""
    return [slot for slot in walk(element, keep) if has_letters(slot.text)]


def walk(element: Element, keep: Keep) -> Iterator[Slot]:
    yield Slot(element, False)
    for inner in element:
        if isinstance(inner.tag, str) and not keep(inner):
            yield from walk(inner, keep)
        yield Slot(inner, True)


def has_content(element: Element) -> bool:
    """Text or inline elements: what is without letters is copied too."""
    return bool(len(element) or (element.text or "").strip())


def segments_in(element: Element, keep: Keep, path: Path) -> list[Segment]:
    for inner in element.iter(etree.Entity):
        refuse_entity(inner, path)
    return [Segment(slot.text, element.sourceline or 0) for slot in slots(element, keep)]


def filled_copy(element: Element, name: str, texts: Sequence[str], keep: Keep) -> Element:
    """A copy under another name, its slots filled in order; it says nothing about its language."""
    copy = deepcopy(element)
    copy.tag = beside(element, name)
    copy.tail = None
    copy.attrib.pop(LANG, None)
    for slot, text in zip(slots(copy, keep), texts, strict=True):
        slot.fill(text)
    return copy


def insert_after(new: Element, anchor: Element) -> None:
    """As the anchor's next sibling, indented like it."""
    parent = anchor.getparent()
    assert parent is not None, "a unit's part has a parent"
    tail, before = anchor.tail, parent.text
    parent.insert(parent.index(anchor) + 1, new)
    new.tail = tail
    anchor.tail = before if before is not None and not before.strip() else None


def replace(old: Element, new: Element) -> None:
    parent = old.getparent()
    assert parent is not None, "a unit's part has a parent"
    new.tail = old.tail
    parent.replace(old, new)
