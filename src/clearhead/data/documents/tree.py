"""An XML document whose units are to be filled, and its way back to bytes.

Written back, everything before the root, the encoding, the line endings and the end of the file stay as they were;
lxml itself decides on quotation marks around attributes and on the form of empty elements. Knows trees. Refuses to
know formats.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Protocol

from lxml import etree

from clearhead.data.documents.content import read_bytes, save
from clearhead.data.documents.segment import Segment, check_count
from clearhead.data.readers.markup import CLOSED, Element, check_root, name_faults

PROLOGUE = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s+|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>)*", re.DOTALL)


class Fill(Protocol):
    """One place to be filled."""

    segments: list[Segment]

    def put(self, texts: Sequence[str]) -> None:
        """The translations, one per segment, into the tree; again, if need be."""
        ...


@dataclass(frozen=True)
class TreeDocument:
    format: str
    tree: Any
    content: bytes
    fills: Sequence[Fill]

    @property
    def segments(self) -> list[Segment]:
        return [segment for fill in self.fills for segment in fill.segments]

    def write(self, translations: Sequence[str], path: Path) -> None:
        check_count(self.segments, translations)
        start = 0
        for fill in self.fills:
            end = start + len(fill.segments)
            fill.put(translations[start:end])
            start = end
        save(path, serialise(self.tree, self.content))


def parse(path: Path, root: str) -> tuple[Any, bytes]:
    """The document as a tree, and its bytes."""
    content = read_bytes(path)
    with name_faults(path):
        tree = etree.parse(BytesIO(content), etree.XMLParser(strip_cdata=False, **CLOSED))
    check_root(tree.getroot(), root, path)
    return tree, content


def serialise(tree: Any, content: bytes) -> bytes:
    encoding = tree.docinfo.encoding or "UTF-8"
    if encoding.upper().startswith("UTF-16"):
        return bytes(etree.tostring(tree, encoding="UTF-16", xml_declaration=True))
    root = tree.getroot()
    parts = [etree.tostring(part, encoding=encoding, xml_declaration=False, with_tail=False) for part in after(root)]
    body = b"\n".join(parts)
    if b"\r\n" in content and content.count(b"\n") == content.count(b"\r\n"):
        body = body.replace(b"\n", b"\r\n")
    prologue = PROLOGUE.match(content)
    epilogue = content[content.rindex(b">") + 1 :]
    return (prologue[0] if prologue else b"") + body + epilogue


def after(root: Element) -> list[Element]:
    """The root and the comments behind it."""
    return [root, *root.itersiblings()]
