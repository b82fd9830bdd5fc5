"""Which document it is, by its name.

Knows the formats. Refuses anything else, with the list.
"""

from __future__ import annotations

from pathlib import Path

from clearhead.data.documents.po import open_po
from clearhead.data.documents.segment import Document
from clearhead.data.documents.tmx import open_tmx
from clearhead.data.documents.txt import open_txt
from clearhead.data.documents.xliff import open_xliff
from clearhead.errors import UsageError, nearest

FORMATS = {
    ".txt": "plain text, line by line",
    ".po": "gettext catalogue",
    ".pot": "gettext template",
    ".tmx": "translation memory",
    ".xlf": "XLIFF 1.2 or 2",
    ".xliff": "XLIFF 1.2 or 2",
}


def open_document(
    path: Path,
    *,
    source: str | None = None,
    target: str | None = None,
    overwrite: bool = False,
    mark: bool = False,
) -> Document:
    """The document, its segments ready to be translated.

    `source` and `target` are language codes, needed where the document does not name them; `overwrite` replaces the
    translations it already holds; `mark` labels the new ones for review (PO: fuzzy; XLIFF 1.2:
    needs-review-translation).
    """
    suffix = path.suffix.lower()
    if suffix in (".po", ".pot"):
        return open_po(path, target, overwrite, mark)
    if suffix == ".tmx":
        return open_tmx(path, source, target, overwrite)
    if suffix in (".xlf", ".xliff"):
        return open_xliff(path, source, target, overwrite, mark)
    if suffix == ".txt":
        return open_txt(path)
    likely = nearest(suffix, FORMATS) if suffix else None
    if likely and path.exists() and not path.with_suffix(likely).exists():
        likely = None  # the name is right, the format is another
    raise UsageError(
        f"documents ending in {suffix!r} cannot be translated; {' '.join(FORMATS)} can",
        file=path,
        hint=f"did you mean {path.with_suffix(likely)}?" if likely else "plain sentences: save them as .txt",
    )
