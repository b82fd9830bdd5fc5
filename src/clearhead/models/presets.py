"""Sizes by name, and the size that fits an amount of data."""

from __future__ import annotations

from typing import Any

SIZES: dict[str, dict[str, Any]] = {
    "tiny": {"encoder_layers": 4, "decoder_layers": 4, "d_model": 128, "d_ff": 256, "n_heads": 4},
    "small": {"encoder_layers": 4, "decoder_layers": 4, "d_model": 256, "d_ff": 1024, "n_heads": 4},
    "base": {"encoder_layers": 6, "decoder_layers": 6, "d_model": 512, "d_ff": 2048, "n_heads": 8},
    "big": {"encoder_layers": 6, "decoder_layers": 6, "d_model": 1024, "d_ff": 4096, "n_heads": 16},
}
"""tiny wins on 30 thousand pairs (Wu et al. 2021); base and big are the paper's (Vaswani et al. 2017, table 3)."""


def size_for(pairs: int) -> str:
    """The size to start from with this many training pairs."""
    if pairs < 100_000:
        return "tiny"
    if pairs < 1_000_000:
        return "small"
    return "base" if pairs < 10_000_000 else "big"
