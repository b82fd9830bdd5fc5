"""Products in bfloat16 against an oracle that rounds where they round."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from clearhead.nn.dropout import draws
from clearhead.nn.feedforward import FeedForward
from clearhead.nn.linear import Linear, in_heads, linear, product_dtype, products_in
from clearhead.nn.rounded import ROWS
from clearhead.randomness import Site

R, L, INPUT, OUTPUT = 2, 3, 101, 7


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def rounded(x: Tensor) -> Tensor:
    """To 8 bits of mantissa, ties to even, by arithmetic alone."""
    exponent = torch.frexp(x.double())[1]
    unit = torch.ldexp(torch.ones_like(x, dtype=torch.float64), exponent - 8)
    return torch.round(x.double() / unit) * unit


def product(x: Tensor, weight: Tensor) -> Tensor:
    """Σ of exact products of rounded factors."""
    y = torch.zeros(*x.shape[:-1], len(weight), dtype=torch.float64)
    for o, row in enumerate(rounded(weight)):
        y[..., o] = (rounded(x) * row).sum(-1)
    return y


def within_a_rounding(ours: Tensor, exact: Tensor, size: Tensor) -> None:
    """Half a unit in the last of 8 places of the result, and float32's error of the sum before it."""
    assert ((ours.double() - exact).abs() <= 2**-8 * exact.abs() + 1e-5 * size).all()


def test_the_oracle_rounds_as_bfloat16_does() -> None:
    x = torch.cat((draw(1009), torch.tensor([0.0, 1.00390625, 1.01171875, -3e-30, 1e30])))
    assert torch.equal(rounded(x), x.bfloat16().double())


def test_values_and_gradients() -> None:
    x, weight, bias = draw(R, L, INPUT, seed=1), draw(OUTPUT, INPUT, seed=2), draw(OUTPUT, seed=3)
    leaves = [leaf.requires_grad_() for leaf in (x, weight, bias)]
    with products_in(torch.bfloat16):
        y = linear(x, weight, bias)
    within_a_rounding(y, product(x, weight) + rounded(bias), x.abs().sum(-1, keepdim=True))
    back = draw(R, L, OUTPUT, seed=4)
    to_x, to_weight, to_bias = torch.autograd.grad(y, leaves, back)
    within_a_rounding(to_x, product(back, weight.T), back.abs().sum(-1, keepdim=True))
    rows, columns = back.reshape(-1, OUTPUT), x.reshape(-1, INPUT)
    within_a_rounding(to_weight, product(rows.T, columns.T), columns.abs().sum(0))
    torch.testing.assert_close(to_bias, rows.sum(0))


def test_whole_numbers_stay_exact() -> None:
    x, weight = torch.arange(-6.0, 7)[None].repeat(3, 1), torch.arange(13.0)[None].repeat(2, 1)
    with products_in(torch.bfloat16):
        assert linear(x, weight).tolist() == [[182.0, 182.0]] * 3


def test_only_inside_the_block_and_only_float32() -> None:
    x, made = draw(R, L, INPUT), Linear(INPUT, OUTPUT)
    exact = made(x)
    with products_in(torch.bfloat16):
        assert product_dtype() == torch.bfloat16
        assert made(x).dtype == torch.float32
        assert not torch.equal(made(x), exact)
        torch.testing.assert_close(made.double()(x.double()), exact.double(), rtol=0, atol=1e-5)
    made.float()
    assert product_dtype() == torch.float32
    assert torch.equal(made(x), exact)


def test_the_precision_is_put_back_after_an_error() -> None:
    with pytest.raises(RuntimeError), products_in(torch.bfloat16):
        raise RuntimeError
    assert product_dtype() == torch.float32


def some_maps(bias: bool) -> list[tuple[Linear, int]]:
    maps = [(Linear(INPUT, width, bias=bias), heads) for width, heads in ((21, 3), (14, 2), (22, 2))]
    for seed, (linear_map, _) in enumerate(maps):
        for parameter in linear_map.parameters():
            parameter.data = draw(*parameter.shape, seed=seed)
    return maps


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("length", [L, ROWS // R, ROWS])
def test_heads_of_several_maps_are_those_of_each(bias: bool, length: int) -> None:
    """One product for all of them, values and gradients; also where the rows need no filling up."""
    maps, x = some_maps(bias), draw(R, length, INPUT, seed=7).requires_grad_()
    leaves = [x, *(parameter for linear_map, _ in maps for parameter in linear_map.parameters())]
    with products_in(torch.bfloat16):
        together = in_heads(x, maps)
        apart = [m(x).unflatten(-1, (n, -1)).transpose(1, 2) for m, n in maps]
    back = [draw(*y.shape, seed=9 + place) for place, y in enumerate(together)]
    for ours, exact in zip(together, apart, strict=True):
        assert ours.is_contiguous() and torch.equal(ours, exact)
    found = torch.autograd.grad(together, leaves, back)
    for ours, exact in zip(found, torch.autograd.grad(apart, leaves, back), strict=True):
        torch.testing.assert_close(ours, exact, rtol=2**-7, atol=2**-7 * exact.abs().max().item())


def test_heads_need_not_all_be_used() -> None:
    maps, x = some_maps(True), draw(R, L, INPUT).requires_grad_()
    with products_in(torch.bfloat16):
        query, key, value = in_heads(x, maps)
    (query.sum() + value.sum()).backward()
    assert maps[1][0].weight.grad is not None and not maps[1][0].weight.grad.any() and key.shape == (R, 2, L, 7)


@pytest.mark.parametrize("activation", ["relu", "relu2", "swiglu"])
def test_hidden_units_that_stay_rounded_are_the_same(activation: str) -> None:
    """To the bit: relu's only; the other kinds are widened."""
    part = FeedForward(INPUT, 8, activation, dropout=0.25)
    x, places = draw(R, L, INPUT).requires_grad_(), torch.arange(R)
    site = Site(1, "dropout", 1)
    with products_in(torch.bfloat16):
        with draws(site, places):
            ours = part(x)
        with draws(site, places):
            hidden = part.activation(part.up(x))
            hidden = hidden if part.gate is None else hidden * part.gate(x)
            plain = part.down(part.dropout(hidden))
    assert ours.dtype == torch.float32 and torch.equal(ours, plain)
    back = draw(*ours.shape, seed=5)
    leaves = [x, *part.parameters()]
    pairs = zip(torch.autograd.grad(ours, leaves, back), torch.autograd.grad(plain, leaves, back), strict=True)
    for a, b in pairs:
        torch.testing.assert_close(a, b, rtol=2**-7, atol=2**-7 * b.abs().max().item())
