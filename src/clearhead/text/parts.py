"""What a tokenizer consists of: five settings, a list of pieces, and merges or scores. And its file.

    tokenizer.json = {"format", "version", "settings", "special", "pieces", "merges", "scores"}

Only data, strings and numbers: no pattern, no component, nothing that runs. The file is canonical JSON, so equal
tokenizers are equal files, and the SHA-256 of the file is the tokenizer's fingerprint. Whatever bytes stand in a
file, `read_parts` answers with parts that are safe to use or with a ModelFileError that names the field.

Knows the file and what must hold in it. Refuses to know texts.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

from pydantic import ValidationError

from clearhead.config import TextSettings
from clearhead.errors import ModelFileError
from clearhead.text.vocabulary import SPECIAL, Vocabulary

FORMAT, VERSION = "clearhead tokenizer", 1
FIELDS = ("format", "version", "settings", "special", "pieces", "merges", "scores")
MEANT = ("normalise", "lowercase", "level", "algorithm", "byte_fallback")  # the settings that change ids
LARGEST_FILE, MOST_PIECES, LONGEST_PIECE = 64 << 20, 1_000_000, 1024


@dataclass(frozen=True)
class Parts:
    """Everything that decides ids. Merges are pairs of ids, best first; scores are log-probabilities of pieces."""

    settings: TextSettings
    pieces: tuple[str, ...]
    merges: tuple[tuple[int, int], ...] = ()
    scores: tuple[float, ...] = ()

    @cached_property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary(self.pieces, self.settings.byte_fallback)

    def to_bytes(self) -> bytes:
        fields = (
            FORMAT,
            VERSION,
            {name: getattr(self.settings, name) for name in MEANT},
            SPECIAL,
            self.pieces,
            self.merges,
            self.scores,
        )
        content = dict(zip(FIELDS, fields, strict=True))
        return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode() + b"\n"

    @cached_property
    def fingerprint(self) -> str:
        return hashlib.sha256(self.to_bytes()).hexdigest()


def meant_settings(settings: TextSettings) -> TextSettings:
    """The settings with all that does not change ids at its default, so that equal means equal."""
    kept = {name: getattr(settings, name) for name in MEANT}
    if settings.level != "subword":
        del kept["algorithm"]
    return TextSettings(**kept)


class Refusal(Exception):
    """What is wrong in which field; becomes a ModelFileError where the file's name is known."""

    def __init__(self, field: str | None, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = message


def read_parts(path: str | Path) -> Parts:
    """Parts from a file, checked."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise ModelFileError(f"cannot be read: {error.strerror}", file=path) from None
    try:
        return parts_from_bytes(content)
    except Refusal as refusal:
        raise ModelFileError(
            refusal.message,
            file=path,
            field=refusal.field,
            hint="take the file again from where the model came from; it was damaged or made by something else",
        ) from None


def parts_from_bytes(content: bytes) -> Parts:
    """Parts from the bytes of a file; anything that does not hold raises Refusal."""
    if len(content) > LARGEST_FILE:
        raise Refusal(None, f"larger than {LARGEST_FILE >> 20} MiB")
    fields = parse_object(content)
    if fields.get("format") != FORMAT or type(fields.get("version")) is not int:
        raise Refusal("format", f'is {short(fields.get("format"))}, not "{FORMAT}" with a version')
    if fields["version"] != VERSION:
        raise Refusal("version", f"is {short(fields['version'])}; this program reads version {VERSION}")
    if set(fields) != set(FIELDS):
        wrong = ", ".join(sorted(set(fields) ^ set(FIELDS)))
        raise Refusal(None, f"fields unknown or missing: {wrong[:200]}")
    if fields["special"] != list(SPECIAL):
        raise Refusal("special", f"is not {list(SPECIAL)}")
    settings = checked_settings(fields["settings"])
    parts = Parts(settings, checked_pieces(fields["pieces"], settings))
    return Parts(
        settings, parts.pieces, checked_merges(fields["merges"], parts), checked_scores(fields["scores"], parts)
    )


def parse_object(content: bytes) -> dict[str, Any]:
    try:
        value = json.loads(content.decode(), parse_constant=no_constant)
    except (ValueError, RecursionError) as error:
        raise Refusal(None, f"is not JSON in UTF-8: {str(error)[:120]}") from None
    if not isinstance(value, dict):
        raise Refusal(None, "is not a JSON object")
    return value


def no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def checked_settings(value: Any) -> TextSettings:
    if not isinstance(value, dict) or set(value) != set(MEANT):
        raise Refusal("settings", f"must have exactly {', '.join(MEANT)}")
    try:
        return TextSettings.model_validate(value, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        raise Refusal(f"settings.{first['loc'][0]}", first["msg"]) from None


def checked_pieces(value: Any, settings: TextSettings) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MOST_PIECES:
        raise Refusal("pieces", f"must be a list of at most {MOST_PIECES} pieces")
    for index, piece in enumerate(value):
        fault = piece_fault(piece, settings.level)
        if fault:
            raise Refusal(f"pieces[{index}]", f"{fault}: {short(piece)}")
    if len(set(value)) != len(value):
        raise Refusal("pieces", f"{len(value) - len(set(value))} pieces stand there twice")
    return tuple(value)


def piece_fault(piece: Any, level: str) -> str | None:
    if not isinstance(piece, str) or not piece:
        return "is not a piece of text"
    if level == "character" and len(piece) != 1:
        return "is not one character"
    try:
        size = len(piece.encode())
    except UnicodeEncodeError:
        return "has half of a surrogate pair"
    return f"has more than {LONGEST_PIECE} bytes" if size > LONGEST_PIECE else None


def checked_merges(value: Any, parts: Parts) -> tuple[tuple[int, int], ...]:
    if not isinstance(value, list) or len(value) > MOST_PIECES:
        raise Refusal("merges", f"must be a list of at most {MOST_PIECES} pairs")
    if value and (parts.settings.level, parts.settings.algorithm) != ("subword", "bpe"):
        raise Refusal("merges", "belong to BPE only")
    vocabulary = parts.vocabulary
    pieces = range(vocabulary.first_piece, vocabulary.size)
    for index, pair in enumerate(value):
        if not (isinstance(pair, list) and len(pair) == 2 and all(type(i) is int and i in pieces for i in pair)):
            raise Refusal(f"merges[{index}]", f"is not a pair of pieces: {short(pair)}")
        left, right = (parts.pieces[token_id - vocabulary.first_piece] for token_id in pair)
        if left + right not in vocabulary.ids:
            raise Refusal(f"merges[{index}]", f"makes {short(left + right)}, which is no piece")
    merges = tuple((left, right) for left, right in value)
    if len(set(merges)) != len(merges):
        raise Refusal("merges", f"{len(merges) - len(set(merges))} merges stand there twice")
    return merges


def checked_scores(value: Any, parts: Parts) -> tuple[float, ...]:
    if not isinstance(value, list):
        raise Refusal("scores", "must be a list of numbers")
    unigram = (parts.settings.level, parts.settings.algorithm) == ("subword", "unigram")
    wanted = len(parts.pieces) if unigram else 0
    if len(value) != wanted:
        raise Refusal("scores", f"{len(value)} scores where {wanted} belong")
    for index, score in enumerate(value):
        if type(score) not in (int, float) or not -1e6 <= score <= 0:
            raise Refusal(f"scores[{index}]", f"is not a log-probability: {short(score)}")
    return tuple(float(score) for score in value)


def short(value: Any) -> str:
    """A value for a message: escaped, and cut where it gets long."""
    text = ascii(value)
    return text if len(text) <= 60 else text[:57] + "…"
