"""A whole document in memory, within reason, and back to the disk in one step."""

from __future__ import annotations

from pathlib import Path

from clearhead.data.readers.lines import not_utf8
from clearhead.data.readers.opening import open_bytes, read_block, read_head
from clearhead.errors import DataError, UsageError
from clearhead.files.atomic import write_atomic

LARGEST = 64 << 20


def read_bytes(path: Path) -> bytes:
    """An empty document is a document; a web page or a workbook under another name is not."""
    with open_bytes(path) as stream:
        content = read_block(stream, path, LARGEST + 1)
    if len(content) > LARGEST:
        raise DataError(f"is larger than {LARGEST >> 20} MiB", file=path, hint="translate it in parts")
    if content:
        read_head(path)
    return content


def read_text(path: Path) -> str:
    content = read_bytes(path)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        refusal = not_utf8(path, line, error.start, content[error.start])
        refusal.hint = "convert the document (for example `iconv -f LATIN1 -t UTF-8`)"  # nothing is left out of one
        raise refusal from None


def save(path: Path, content: bytes) -> None:
    if not path.parent.is_dir():
        raise UsageError("there is no such folder", file=path.parent, hint="make it first, or write elsewhere")
    if path.is_dir():
        raise UsageError("is a folder", file=path, hint="name the file to write")
    write_atomic(path, content)
