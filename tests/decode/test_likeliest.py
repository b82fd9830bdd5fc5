"""The short way to the largest numbers = sorting them all."""

from __future__ import annotations

import pytest
import torch

from clearhead.decode.likeliest import largest_sums

SIZES = [
    (3, 5, 200, 10),
    (2, 1, 1024, 10),
    (4, 3, 31, 6),
    (2, 5, 64, 10),
    (3, 5, 1023, 10),
    (2, 4, 129, 8),
    (1, 2, 3, 9),
]


@pytest.mark.parametrize(("sources", "width", "vocab", "k"), SIZES)
@pytest.mark.parametrize("forbidden", [False, True])
def test_the_largest_sums(sources: int, width: int, vocab: int, k: int, forbidden: bool) -> None:
    generator = torch.Generator().manual_seed(vocab)
    x, begun = (
        torch.randn(sources * width, vocab, generator=generator),
        torch.randn(sources, width, generator=generator),
    )
    if forbidden:
        x[:, ::2], x[0] = -torch.inf, -torch.inf
        begun[0, 0] = -torch.inf
    sums, parents, tokens = largest_sums(begun, x, k)
    every = (begun[:, :, None] + x.view(sources, width, vocab)).flatten(1)
    assert torch.equal(sums, every.topk(min(k, width * vocab)).values)
    assert torch.equal(every.gather(1, parents * vocab + tokens), sums)
    for row, finite in zip((parents * vocab + tokens), sums.isfinite(), strict=True):
        assert len(set(row[finite].tolist())) == int(finite.sum())
