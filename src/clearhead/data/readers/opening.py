"""Opening a file of text: plain or gzip, and a clear word about what is not text at all.

Knows files, folders, compression and how other things look from the outside (an unfetched Git-LFS pointer, a saved
web page, a workbook). Refuses to know lines and formats.
"""

from __future__ import annotations

import codecs
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from clearhead.errors import DataError, nearest

HEAD = 64 << 10
GZIP = b"\x1f\x8b"
UTF16 = (b"\xff\xfe", b"\xfe\xff")

# First bytes, what such a file is, and what to do about it.
FOREIGN = (
    (b"PK\x03\x04", "a zip archive or an office document", "save its table as tab-separated text (UTF-8)"),
    (b"\xd0\xcf\x11\xe0", "an old office document", "save its table as tab-separated text (UTF-8)"),
    (b"%PDF-", "a PDF", "export its text first"),
    (b"\xfd7zXZ\x00", "compressed with xz", "decompress it with `xz -d`"),
    (b"BZh", "compressed with bzip2", "decompress it with `bzip2 -d`"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd", "decompress it with `zstd -d`"),
    (b"\x89PNG", "a picture", "give a file of text"),
    (b"\xff\xd8\xff", "a picture", "give a file of text"),
    (b"GIF8", "a picture", "give a file of text"),
    (b"\x7fELF", "a program", "give a file of text"),
    (b"SQLite format 3\x00", "a database", "export its table as tab-separated text"),
    (b"PAR1", "a Parquet table", "export it as JSON lines"),
    (b"version https://git-lfs.github.com/spec/", "a Git-LFS pointer, not the data", "fetch it with `git lfs pull`"),
)


@contextmanager
def open_bytes(path: Path) -> Iterator[BinaryIO]:
    """The file's bytes, decompressed when its first two say gzip."""
    refuse_missing(path)
    with name_errors(path):
        raw = path.open("rb")
    with raw:
        packed = read_block(raw, path, 2) == GZIP
        raw.seek(0)
        if packed:
            with gzip.GzipFile(fileobj=raw) as unpacked:
                yield cast(BinaryIO, io.BufferedReader(unpacked, buffer_size=1 << 20))
        else:
            yield raw


def refuse_missing(path: Path) -> None:
    if path.is_dir():
        raise DataError("is a folder", file=path, hint="give the files in it by name")
    if not path.exists():
        folder = path.parent
        likely = nearest(path.name, [p.name for p in folder.iterdir()]) if folder.is_dir() else None
        hint = f"did you mean {folder / likely}?" if likely else None
        raise DataError("there is no such file", file=path, hint=hint)
    if not path.is_file():
        raise DataError("is not an ordinary file", file=path, hint="pairs are read more than once: save them first")


def read_block(stream: BinaryIO, path: Path, size: int) -> bytes:
    with name_errors(path):
        return stream.read(size)


@contextmanager
def name_errors(path: Path) -> Iterator[None]:
    """Whatever the system or a damaged archive says, with the file's name."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"is damaged gzip: {error}", file=path, hint="was the download complete?") from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file=path) from None


def read_head(path: Path) -> bytes:
    """The first 64 KiB (decompressed), refused when they are not the beginning of a text."""
    with open_bytes(path) as stream:
        head = read_block(stream, path, HEAD)
    if not head:
        raise DataError("is empty", file=path)
    for magic, what, hint in FOREIGN:
        if head.startswith(magic):
            raise DataError(f"is {what}", file=path, hint=hint)
    if re.match(rb"(\xef\xbb\xbf)?\s*<(!doctype\s+html|html[\s>])", head, re.IGNORECASE):
        raise DataError("is a web page, not the data", file=path, hint="download the file itself")
    if looks_binary(head):
        raise DataError("is binary, not text", file=path, hint="give a file of text in UTF-8")
    return head


def looks_binary(head: bytes) -> bool:
    """Many control bytes, and either many zeros or no UTF-8: a text may hold some control characters by accident.
    UTF-16 is told apart by its mark."""
    if head.startswith(UTF16) or len(head) < 32:
        return False
    odd = len(re.findall(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]", head))
    return odd > 0.1 * len(head) and (head.count(0) > 0.3 * len(head) or not begins_as_utf8(head))


def begins_as_utf8(head: bytes) -> bool:
    """Whether it is UTF-8, but for a last character that was cut."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def is_utf16(head: bytes) -> bool:
    return head.startswith(UTF16)
