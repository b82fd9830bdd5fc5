"""The list of tokens: special ones, bytes, pieces of text; each with its number, its bytes and its printed form.

    id 0 … 4     <pad> <bos> <eos> <unk> <mask>: never made from text
    next 256     the bytes, when byte fallback is on
    the rest     pieces

Every token is a string of bytes, and text is their concatenation; so decoding is exact and one line long.

Knows tokens one by one. Refuses to know how a text is cut into them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from clearhead.errors import UsageError

PAD, BOS, EOS, UNK, MASK = range(5)
SPECIAL = ("<pad>", "<bos>", "<eos>", "<unk>", "<mask>")
REPLACEMENT = "\ufffd"  # how the unknown token and broken byte sequences read


@dataclass(frozen=True)
class Vocabulary:
    """Pieces in the order of their ids, and whether the 256 bytes come before them."""

    pieces: tuple[str, ...]
    byte_fallback: bool

    @property
    def first_piece(self) -> int:
        """The id of the first piece."""
        return len(SPECIAL) + 256 * self.byte_fallback

    @property
    def size(self) -> int:
        return self.first_piece + len(self.pieces)

    @cached_property
    def ids(self) -> dict[str, int]:
        return {piece: index for index, piece in enumerate(self.pieces, self.first_piece)}

    def lacking(self, text: str) -> list[int]:
        """The ids of a text that is no piece: its bytes, or one unknown token."""
        if not self.byte_fallback:
            return [UNK]
        return [len(SPECIAL) + byte for byte in text.encode()]

    def is_lacking(self, token_id: int) -> bool:
        """Is this what `lacking` answers with: a byte, or the unknown token?"""
        return token_id == UNK or len(SPECIAL) <= token_id < self.first_piece

    def decode(self, ids: Iterable[int]) -> str:
        """The text of the ids; special tokens say nothing, what is not UTF-8 reads �."""
        wanted = list(ids)
        if wanted and not (min(wanted) >= 0 and max(wanted) < self.size):
            raise UsageError(f"token ids {min(wanted)} to {max(wanted)} are not all within 0 to {self.size - 1}")
        return b"".join(map(self._bytes.__getitem__, wanted)).decode("utf-8", "replace")

    @cached_property
    def _bytes(self) -> list[bytes]:
        special = [REPLACEMENT.encode() if index == UNK else b"" for index in range(len(SPECIAL))]
        fallback = [bytes([byte]) for byte in range(256 * self.byte_fallback)]
        return special + fallback + [piece.encode() for piece in self.pieces]

    def token(self, token_id: int) -> str:
        """A printed form: ▁ for a space, escapes for what cannot be seen, <0x41> for a byte."""
        if not 0 <= token_id < self.size:
            raise UsageError(f"token id {token_id} is not within 0 to {self.size - 1}")
        if token_id < len(SPECIAL):
            return SPECIAL[token_id]
        if token_id < self.first_piece:
            return f"<0x{token_id - len(SPECIAL):02X}>"
        return "".join(map(printed, self.pieces[token_id - self.first_piece]))


def printed(character: str) -> str:
    if character == " ":
        return "▁"
    return character if character.isprintable() else character.encode("unicode_escape").decode()
