"""The verb `translate`: texts, lines or a document through a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BufferedIOBase
from pathlib import Path
from typing import Any

import torch

from clearhead.data.documents import FORMATS, open_document, translate_document
from clearhead.errors import DataError, UsageError
from clearhead.files import disk
from clearhead.text.segment import split_sentences
from clearhead.verbs.device import described
from clearhead.verbs.model import Model, Translation, load

LINES_AT_ONCE = 512
BLOCK = 1 << 16


def open_model(
    path: Path, threads: int | None = None, on: str = "auto", say: Callable[[str], None] = lambda text: None
) -> Model:
    """`on`: a device, by name. Which it is is said, unless it is the processor and nobody asked."""
    if threads:
        torch.set_num_threads(threads)
    model = load(path, on)
    if on != "auto" or model.device.type != "cpu":
        say(f"{path}: {model.parameters:,} parameters, {described(model.device)}")
    return model


def translations(model: Model, texts: list[str], first: int = 0, **changes: Any) -> list[Translation]:
    """`first`: how many texts came before these."""
    return model.translations(texts, model.settings(**changes), first=first)


def line_batches(stream: BufferedIOBase) -> Iterator[list[str]]:
    """Lines of a byte stream, some at a time: split at \\n alone, so that lines out are as many as lines in.

    Only the lines that are there are waited for, so that whoever writes one line and reads its answer, a person or a
    program, gets it before writing the next.
    """
    number = 0
    for lines in arriving_lines(stream):
        for start in range(0, len(lines), LINES_AT_ONCE):
            some = lines[start : start + LINES_AT_ONCE]
            yield [decoded(line, place) for place, line in enumerate(some, number + 1)]
            number += len(some)


def arriving_lines(stream: BufferedIOBase) -> Iterator[list[bytes]]:
    """Whole lines, as many as each read brings; the last one may lack its end."""
    begun: list[bytes] = []
    while data := stream.read1(BLOCK):
        *ended, rest = data.split(b"\n")
        if ended:
            ended[0] = b"".join([*begun, ended[0]])
            begun = []
            yield ended
        begun.append(rest)
    if last := b"".join(begun):
        yield [last]


def decoded(line: bytes, number: int) -> str:
    try:
        text = line.removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"is not UTF-8 at byte {error.start + 1}", file="stdin", line=number, hint="convert it with iconv"
        ) from None
    return text.removeprefix("\ufeff") if number == 1 else text


def translate_file(
    model: Model,
    path: Path,
    out: Path,
    say: Callable[[str], None],
    *,
    source: str | None = None,
    target: str | None = None,
    **changes: Any,
) -> str:
    """A document with its structure, markup and placeholders kept. Returns a sentence about what was done.

    `source` and `target`: codes of the languages, where the model does not know its own, or the document calls them
    otherwise.
    """
    disk.require_place(out)
    refuse_other_suffix(path, out)
    if out.exists() and out.samefile(path):
        raise UsageError("is the document itself, which would be lost", file=out, hint="choose another -o")
    source, target = source or model.source_language, target or model.target_language
    document = open_document(path, source=source, target=target)
    settings = model.settings(**changes)
    say(f"{path}: {len(document.segments):,} segments")

    def translate(texts: list[str]) -> list[str]:
        return by_sentence(texts, lambda flat: [t.text for t in model.translations(flat, settings)])

    translated = translate_document(document, translate)
    document.write(translated, out)
    nothing = "" if document.segments else ": nothing in the document is left to translate"
    return f"{out}: {len(document.segments):,} segments written{nothing}"


def refuse_other_suffix(path: Path, out: Path) -> None:
    """A document stays what it is; another format's name would make a file that no program opens."""
    formats = {".pot": ".po", ".xliff": ".xlf"}
    is_now, is_to_be = (formats.get(p.suffix.lower(), p.suffix.lower()) for p in (path, out))
    if is_to_be in FORMATS and is_now in FORMATS and is_to_be != is_now:
        hint = f"-o {out.with_suffix(path.suffix)}"
        raise UsageError(f"is to hold the translation of {path}, whose format stays", file=out, hint=hint)


def refuse_documents(texts: Sequence[str], say: Callable[[str], None]) -> None:
    """Whoever names a document as the text wants the document translated, not its name. A name that no file has may be
    a text, or misspelt: it is translated, and that is said."""
    for text in texts:
        path = Path(text)
        if path.suffix.lower() not in FORMATS:
            continue
        if is_file(path):
            hint = f"-o out{path.suffix} translates it as a document; `< {text}` line by line"
            raise UsageError("is a document: where is its translation to go?", file=text, hint=hint)
        if len(text.split()) == 1:
            say(f"{text}: there is no such document, so its name is translated")


def is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a long text, or one with NUL, is no file's name
        return False


def by_sentence(texts: Iterable[str], translate: Callable[[list[str]], list[str]]) -> list[str]:
    """Each text cut into sentences, all translated at once, and joined again with their own white space."""
    cut = [split_sentences(text) for text in texts]
    flat = translate([sentence.text for sentences in cut for sentence in sentences])
    remaining = iter(flat)
    return ["".join(next(remaining) + sentence.separator for sentence in sentences) for sentences in cut]
