"""Dropout's masks: the same numbers as the counted draws without torch, and the same however a batch is cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch

from clearhead.nn.attention import attend_explicit
from clearhead.nn.dropout import Dropout, Masked, draws, dropout, keep_mask, mix, signed
from clearhead.nn.tap import listen
from clearhead.randomness import Site, counted

SITE = Site(7, "dropout", 3)


def masks(places: Sequence[int], *shape: int, rate: float = 0.3, calls: int = 1, site: Site = SITE) -> torch.Tensor:
    """The last of `calls` masks drawn for these places."""
    with draws(site, torch.tensor(places)):
        for _ in range(calls):
            drawn = keep_mask((len(places), *shape), rate)
    return drawn[0]


def test_mix_is_the_counted_mix_bit_for_bit() -> None:
    words = [0, 1, 2**63 - 1, 2**63, 2**64 - 1, *(counted.key(i, "words") for i in range(1009))]
    ours = mix(torch.tensor([signed(word) for word in words]))
    assert [word % 2**64 for word in ours.tolist()] == [counted.mix(word) for word in words]


def test_a_mask_is_eight_bytes_of_one_word_after_another() -> None:
    """In Python's own integers, from the header's sentence."""
    places, n, rate = [0, 5, 2**40 + 1], 3 * 7, 0.3
    for calls in (1, 2):
        ours = masks(places, 3, 7, rate=rate, calls=calls)
        for row, place in enumerate(places):
            start = counted.mix((place + SITE.key(calls)) % 2**64)
            expected = []
            for i in range(n):
                word = counted.mix((start + i // 8 * counted.GOLDEN) % 2**64)
                expected.append((word >> 8 * (i % 8)) % 256 >= round(rate * 256))
            assert ours[row].flatten().tolist() == expected


@pytest.mark.parametrize("shape", [(13,), (5, 7), (3, 5, 7)])
def test_a_split_batch_has_the_masks_of_the_whole(shape: tuple[int, ...]) -> None:
    whole = masks(range(7), *shape)
    parts = torch.cat([masks(range(3), *shape), masks(range(3, 4), *shape), masks(range(4, 7), *shape)])
    assert torch.equal(whole, parts)
    assert torch.equal(whole[[6, 2]], masks([6, 2], *shape))


def test_padding_further_leaves_masks_by_position_and_channel() -> None:
    assert torch.equal(masks(range(3), 5, 11), masks(range(3), 13, 11)[:, :5])
    assert torch.equal(masks(range(3), 5), masks(range(3), 13)[:, :5])


def test_padding_further_moves_the_masks_of_patterns() -> None:
    """What does not hold, and the header says so: patterns are counted by head, query and key."""
    assert not torch.equal(masks(range(3), 2, 5, 7), masks(range(3), 2, 5, 11)[..., :7])


def test_seed_purpose_step_site_and_place_each_matter() -> None:
    one = masks([4], 1009)
    others = [
        masks([4], 1009, calls=2),
        masks([5], 1009),
        masks([4], 1009, site=Site(8, "dropout", 3)),
        masks([4], 1009, site=Site(7, "other", 3)),
        masks([4], 1009, site=Site(7, "dropout", 4)),
    ]
    for other in others:
        assert (one == other).float().mean().item() == pytest.approx(0.7**2 + 0.3**2, abs=0.08)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_as_many_are_dropped_as_asked_and_the_mean_is_kept(rate: float) -> None:
    x = torch.ones(11, 101, 97)
    with draws(SITE, torch.arange(11)):
        y = dropout(x, rate)
    exact = round(rate * 256) / 256
    n = x.numel()
    assert (y == 0).double().mean().item() == pytest.approx(exact, abs=4 * (exact * (1 - exact) / n) ** 0.5)
    assert y.max().item() == pytest.approx(1 / (1 - exact), rel=1e-6)
    assert y.double().mean().item() == pytest.approx(1.0, abs=4 * (exact / (1 - exact) / n) ** 0.5)


def test_neighbours_are_independent() -> None:
    """Side by side, eight apart, next row, next site: agreement as of strangers."""
    bits = masks(range(53), 1009, rate=0.5).double() * 2 - 1
    n = bits.numel()
    later = masks(range(53), 1009, rate=0.5, calls=2).double() * 2 - 1
    for a, b in ((bits[:, 1:], bits[:, :-1]), (bits[:, 8:], bits[:, :-8]), (bits[1:], bits[:-1]), (bits, later)):
        assert abs((a * b).mean().item()) < 4 / n**0.5


def test_outside_of_draws_nothing_happens() -> None:
    x = torch.randn(3, 5)
    assert dropout(x, 0.5) is x
    with draws(SITE, torch.arange(3)):
        assert dropout(x, 0.0) is x
        assert not torch.equal(Dropout(0.5)(x), x)
    assert Dropout(0.5)(x) is x


def test_nearly_everything_may_be_dropped() -> None:
    """Rates that round to 1 keep one number in 256."""
    with draws(SITE, torch.arange(53)):
        y = dropout(torch.ones(53, 1009), 0.9999)
    assert y.max().item() == 256.0
    assert 0 < (y > 0).double().mean().item() < 0.01


def test_draws_end_after_an_error() -> None:
    with pytest.raises(RuntimeError), draws(SITE, torch.arange(3)):
        raise RuntimeError
    assert keep_mask((3, 5), 0.5) is None


def test_the_gradient_goes_where_the_mask_lets_it() -> None:
    x, mask = torch.randn(3, 5, dtype=torch.float64, requires_grad=True), torch.rand(3, 5) > 0.3
    assert torch.autograd.gradcheck(lambda x: Masked.apply(x, mask, 1.7), [x])
    assert torch.equal(Masked.apply(x, mask, 1.7), x * mask * 1.7)


def test_dropout_on_patterns_is_dropout_on_the_weights() -> None:
    q, k, v = (torch.randn(2, 3, n, 5, dtype=torch.float64) for n in (7, 11, 11))
    with draws(SITE, torch.arange(2)):
        ours = attend_explicit(q, k, v, None, None, 1.0, 0.3)
    kept = masks(range(2), 3, 7, 11).double() / (1 - round(0.3 * 256) / 256)
    torch.testing.assert_close(ours, (torch.softmax(q @ k.transpose(-2, -1), -1) * kept) @ v)


def test_every_kind_of_dropout_drops_only_while_training(tiny_model: Callable, ids: Callable) -> None:
    source, target = ids(3, 7), ids(3, 5)
    for kind in ("dropout", "attention_dropout", "activation_dropout", "word_dropout"):
        model = tiny_model(**{kind: 0.4})
        silent = model(source, target)
        with draws(SITE, torch.arange(3)):
            dropped = model(source, target)
        assert not torch.equal(dropped, silent)
        assert torch.equal(model(source, target), silent)


def test_listening_leaves_the_masks(tiny_model: Callable, ids: Callable) -> None:
    """Hearing the pattern changes the road, not the draws."""
    model, source, target = tiny_model(dropout=0.4, attention_dropout=0.4).double(), ids(3, 7), ids(3, 5)
    found = []
    for names in (set(), {"pattern"}):
        wants = lambda name, names=names: name.rpartition(".")[2] in names  # noqa: E731
        with draws(SITE, torch.arange(3)), listen(model, lambda name, t: t, wants):
            found.append(model(source, target))
    torch.testing.assert_close(*found, rtol=1e-12, atol=1e-12)
