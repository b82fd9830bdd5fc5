"""From text to ids and back.

    decode(encode(text)) == normalise(text)      for any text, when byte fallback is on

Encoding cuts the text into units (splitting.py), and each unit into ids (levels.py); units come again and again, so
their ids are remembered. Decoding is the concatenation of the tokens' bytes (vocabulary.py).

Knows its parts. Refuses to know models, batches and padding: special ids are never made from text.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from clearhead.config import TextSettings
from clearhead.files.atomic import write_atomic
from clearhead.text.levels import Segmenter, segmenter
from clearhead.text.normalise import normalise
from clearhead.text.parts import Parts, read_parts
from clearhead.text.splitting import mark, splitter, unmark
from clearhead.text.train import learn_parts

REMEMBERED_UNITS, REMEMBERED_LENGTH = 1 << 18, 512


class Memory(dict[str, tuple[int, ...]]):
    """The ids of units, made on first use; forgets everything rather than grow without end."""

    def __init__(self, segment: Segmenter) -> None:
        super().__init__()
        self.segment = segment

    def __missing__(self, unit: str) -> tuple[int, ...]:
        ids = self.segment(unit)
        if len(unit) <= REMEMBERED_LENGTH:
            if len(self) >= REMEMBERED_UNITS:
                self.clear()
            self[unit] = ids
        return ids


class Tokenizer:
    """Text to ids and back, at one level. Safe to use from several threads."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.vocabulary = parts.vocabulary
        self._cut = splitter(self.level)
        self._memory = Memory(segmenter(parts))

    @property
    def settings(self) -> TextSettings:
        """The settings that decide ids; all others stand at their defaults."""
        return self.parts.settings

    @property
    def level(self) -> str:
        return self.settings.level

    @property
    def vocab_size(self) -> int:
        return self.vocabulary.size

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the file `save` writes: equal for equal tokenizers."""
        return self.parts.fingerprint

    def words(self, text: str) -> list[str]:
        """The units that no token crosses; `encode` is the concatenation of what each of them gives."""
        return self._cut(mark(normalise(text, self.settings), self.level))

    def word_ids(self, word: str) -> tuple[int, ...]:
        """The ids of one unit that `words` gave."""
        return self._memory[word]

    def encode(self, text: str) -> list[int]:
        return list(chain.from_iterable(map(self._memory.__getitem__, self.words(text))))

    def encode_many(self, texts: Iterable[str]) -> list[list[int]]:
        return [self.encode(text) for text in texts]

    def decode(self, ids: Iterable[int]) -> str:
        """The text; special tokens say nothing, and bytes that are not UTF-8 read �."""
        return unmark(self.vocabulary.decode(ids), self.level)

    def decode_many(self, sequences: Iterable[Iterable[int]]) -> list[str]:
        return [self.decode(ids) for ids in sequences]

    def token(self, token_id: int) -> str:
        """The printed form of one token: ▁ for a space, <0x41> for a byte, escapes for what cannot be seen."""
        return self.vocabulary.token(token_id)

    def pieces(self, text: str) -> list[str]:
        """The printed tokens of a text."""
        return [self.token(token_id) for token_id in self.encode(text)]

    def unknown_rate(self, texts: Iterable[str]) -> float:
        """Share of tokens that the vocabulary had no piece for: bytes, or the unknown token."""
        total = lacking = 0
        for ids in map(self.encode, texts):
            total += len(ids)
            lacking += sum(map(self.vocabulary.is_lacking, ids))
        return lacking / total if total else 0.0

    def save(self, path: str | Path) -> None:
        """Write tokenizer.json: whole, or not at all."""
        write_atomic(Path(path), self.to_bytes())

    def to_bytes(self) -> bytes:
        """What `save` writes."""
        return self.parts.to_bytes()


def train_tokenizer(texts: Iterable[str], settings: TextSettings) -> Tokenizer:
    """A tokenizer for these texts; equal texts and settings give an equal one."""
    return Tokenizer(learn_parts(texts, settings))


def load_tokenizer(path: str | Path) -> Tokenizer:
    """The tokenizer of a file, after every part of it was checked."""
    return Tokenizer(read_parts(path))
