"""A vocabulary as a list of different strings: what programs that know tokens by their text can hold."""

from __future__ import annotations

from clearhead.text.tokenizer import Tokenizer


def token_names(tokenizer: Tokenizer) -> list[str]:
    """The printed form of every token, in the order of their ids. Where two print alike — the byte 0x41, and the piece
    "<0x41>" — the later one is called by its number."""
    names: list[str] = []
    seen: set[str] = set()
    for token_id in range(tokenizer.vocab_size):
        name = tokenizer.token(token_id)
        if name in seen:
            name = f"<id {token_id}>"
        names.append(name)
        seen.add(name)
    return names
