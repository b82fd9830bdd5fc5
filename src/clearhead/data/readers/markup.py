"""XML from strangers, streamed, with every door shut.

An ordinary DOCTYPE opens; entity declarations are refused; nothing is loaded from disk or network; depth (256) and text
nodes (10 MB) have libxml2's limits, one unit has 64 MiB. Knows elements and inline codes.
Refuses to know TMX and XLIFF.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from lxml import etree

from clearhead.data.readers.opening import open_bytes, read_block
from clearhead.errors import DataError

LARGEST_UNIT = 64 << 20
DEEPEST_INLINE = 100
CLOSED: dict[str, Any] = {"resolve_entities": False, "no_network": True, "load_dtd": False, "huge_tree": False}

Element: TypeAlias = etree._Element
LANG = "{http://www.w3.org/XML/1998/namespace}lang"


class Metered:
    """Bytes for the parser, refused when too many come between two units."""

    def __init__(self, stream: BinaryIO, path: Path) -> None:
        self.stream, self.path, self.since = stream, path, 0

    def read(self, size: int = -1) -> bytes:
        block = read_block(self.stream, self.path, size)
        self.since += len(block)
        if self.since > LARGEST_UNIT:
            raise DataError(f"a unit is larger than {LARGEST_UNIT >> 20} MiB", file=self.path)
        return block


def stream_units(path: Path, root: str, units: frozenset[str]) -> Iterator[Element]:
    """Each complete unit inside its ancestors; memory is given back before the next one."""
    with open_bytes(path) as stream, name_faults(path):
        metered = Metered(stream, path)
        tags = [f"{{*}}{name}" for name in (root, *units)]
        context = etree.iterparse(metered, events=("start", "end"), tag=tags, **CLOSED)
        for event, element in context:
            if event == "start" and element.getparent() is None:
                check_root(element, root, path)
            elif event == "end" and local_name(element) in units:
                yield element
                metered.since = 0
                forget(element)
        check_root(context.root, root, path)


@contextmanager
def name_faults(path: Path) -> Iterator[None]:
    """The parser's complaints, in one sentence with file and line."""
    try:
        yield
    except etree.XMLSyntaxError as error:
        reason = str(error.msg or "it breaks off").split(", line ")[0].rstrip(" !")
        raise DataError(f"is not well-formed XML: {reason}", file=path, line=error.lineno or None) from None
    except LookupError as error:
        raise DataError(f"cannot be decoded: {error}", file=path) from None


def check_root(element: Element, root: str, path: Path) -> None:
    dtd = element.getroottree().docinfo.internalDTD
    if dtd is not None and (entity := next(dtd.iterentities(), None)) is not None:
        raise DataError(
            f"declares the entity {entity.name!r}",
            file=path,
            hint="entity declarations can hide harm and are refused: write the characters themselves",
        )
    if local_name(element) != root:
        raise DataError(f"is XML with the root <{local_name(element)}>, not <{root}>", file=path)


def forget(element: Element) -> None:
    """Empty a finished element and drop what stands before it and before its ancestors."""
    element.clear()
    for place in (element, *element.iterancestors()):
        while place.getprevious() is not None:
            parent = place.getparent()
            if parent is None:  # a comment before the root
                break
            del parent[0]


def local_name(element: Element) -> str:
    """The name without its namespace; empty for comments, instructions and entities."""
    # not etree.QName: it refuses namespaces with a } in them, which the parser let through
    return str(element.tag).rpartition("}")[2] if isinstance(element.tag, str) else ""


def beside(element: Element, name: str) -> str:
    """The tag of that name in the element's own namespace."""
    return "".join(str(element.tag).rpartition("}")[:2]) + name


def children(element: Element, name: str) -> list[Element]:
    """Direct children of that name in the element's own namespace: extensions may use the same words."""
    wanted = beside(element, name)
    return [child for child in element if child.tag == wanted]


def child(element: Element, name: str) -> Element | None:
    return next(iter(children(element, name)), None)


def text_inside(element: Element, path: Path, is_code: Callable[[Element], bool]) -> str:
    """The words of a segment: all text but what stands inside inline codes."""
    parts: list[str] = []
    gather(element, path, is_code, parts, 0)
    return "".join(parts)


def gather(element: Element, path: Path, is_code: Callable[[Element], bool], parts: list[str], depth: int) -> None:
    if depth > DEEPEST_INLINE:
        raise DataError(f"inline markup is nested more than {DEEPEST_INLINE} deep", file=path, line=element.sourceline)
    parts.append(element.text or "")
    for inner in element:
        refuse_entity(inner, path)
        if isinstance(inner.tag, str) and not is_code(inner):
            gather(inner, path, is_code, parts, depth + 1)
        parts.append(inner.tail or "")


def refuse_entity(element: Element, path: Path) -> None:
    if element.tag is etree.Entity:
        raise DataError(
            f"the entity {element.text} is not declared in the file",
            file=path,
            line=element.sourceline,
            hint="external definitions are not loaded: write the character itself",
        )
