"""The one entry: files as they are, to a stream of pairs.

Knows which reader reads which format, and how files go together: two of plain text are two sides, anything else is a
file of pairs, and several of those are read one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from clearhead.config import DataSettings
from clearhead.data.readers.columns import asked_columns
from clearhead.data.readers.guess import Format, guess_formats
from clearhead.data.readers.jsonl import open_jsonl
from clearhead.data.readers.languages import same_language
from clearhead.data.readers.pairs import Pairs, Source, refuse_if_empty
from clearhead.data.readers.plain import open_plain
from clearhead.data.readers.po import open_po
from clearhead.data.readers.tmx import open_tmx
from clearhead.data.readers.tsv import open_tsv
from clearhead.data.readers.xliff import open_xliff
from clearhead.errors import DataError, UsageError

FORMATS = {
    "tsv": "tab-separated columns, one pair per line",
    "jsonl": "one JSON object or list per line",
    "plain": "two text files, one per language, line by line",
    "tmx": "translation memory exchange",
    "po": "gettext catalogue",
    "xliff": "XLIFF 1.2 and 2",
}
OPENERS: dict[Format, Callable[[Path, DataSettings], Source]] = {
    "tsv": open_tsv,
    "jsonl": open_jsonl,
    "tmx": open_tmx,
    "po": open_po,
    "xliff": open_xliff,
}


def open_pairs(files: Sequence[Path], settings: DataSettings) -> Pairs:
    """All pairs of the files, checked as far as that is possible before reading them all."""
    if not files:
        raise UsageError("no file of pairs was given", hint=f"formats: {', '.join(FORMATS)}")
    paths = [Path(file) for file in files]
    formats = guess_formats(paths)
    refuse_columns_in_vain(formats, settings)
    if formats == ["plain", "plain"]:
        sources: list[Source] = [open_plain(paths[0], paths[1], settings)]
    else:
        sources = [open_one(path, format, settings) for path, format in zip(paths, formats, strict=True)]
    for source in sources:
        refuse_if_empty(source)
    refuse_mixed_languages(sources)
    return Pairs(sources)


def open_one(path: Path, format: Format, settings: DataSettings) -> Source:
    if format == "plain":
        raise DataError(
            "is plain text without tabs, so it holds one side only",
            file=path,
            hint="give exactly two such files (train.en train.de), or one with a tab between source and target",
        )
    try:
        return OPENERS[format](path, settings)
    except UsageError as error:
        error.file = error.file or str(path)
        raise


def refuse_columns_in_vain(formats: Sequence[Format], settings: DataSettings) -> None:
    if asked_columns(settings) and not {"tsv", "jsonl"} & set(formats):
        raise UsageError(
            f"there are no columns to choose from in {', '.join(sorted(set(formats)))}", field="data.columns"
        )


def refuse_mixed_languages(sources: Sequence[Source]) -> None:
    """Files that name their languages must agree."""
    first = sources[0].guess
    for guess in (source.guess for source in sources[1:]):
        for one, other in ((first.source, guess.source), (first.target, guess.target)):
            if one and other and not same_language(one, other) and not same_language(one, other.split("-")[0]):
                raise DataError(
                    f"is {guess.source} → {guess.target}, but {first.file} is {first.source} → {first.target}",
                    file=guess.file,
                    hint="name the languages (data.source, data.target), or train on one direction",
                )
