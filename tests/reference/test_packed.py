"""Packed products against the plain one in float64: exact where exactness is promised, close elsewhere."""

from __future__ import annotations

import pytest
import torch

from clearhead.nn.linear import Linear, products_in
from clearhead.nn.packed import alike, pack, packed, whole_numbers


def made(rows: int, inputs: int, outputs: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(rows)
    return tuple(torch.randn(*shape, generator=generator) for shape in ((rows, inputs), (outputs, inputs), (outputs,)))


@pytest.mark.parametrize("rows", [1, 5, 37])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.bfloat16, 0.01), (torch.int8, 0.02)])
@pytest.mark.parametrize("with_bias", [True, False])
def test_close_to_the_plain_product(rows: int, dtype: torch.dtype, tolerance: float, with_bias: bool) -> None:
    x, weight, bias = made(rows, 46, 23)
    exact = x.double() @ weight.double().T + (bias.double() if with_bias else 0.0)
    found = pack(weight, bias if with_bias else None, dtype)(x[None])[0]
    assert found.dtype == torch.float32
    assert (found - exact).abs().max() <= tolerance * exact.abs().max()


def test_eight_bits_are_what_they_say() -> None:
    """The same, number by number: whole numbers times whole numbers times two scales."""
    x, weight, bias = made(3, 46, 23)
    (q, s), (w, t) = whole_numbers(x), whole_numbers(weight)
    assert q.abs().max() == 127 and (q * s - x).abs().max() <= s.max() / 2 * 1.001
    expected = (q.long() @ w.long().T).double() * s.double() * t.double().T + bias
    torch.testing.assert_close(pack(weight, bias, torch.int8)(x).double(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.int8])
def test_a_row_does_not_depend_on_its_neighbours(dtype: torch.dtype) -> None:
    x, weight, bias = made(37, 46, 23)
    product = pack(weight, bias, dtype)
    together = product(x)
    assert torch.equal(
        product(torch.zeros(2, 46)), bias.to(dtype if dtype == torch.bfloat16 else bias.dtype).expand(2, 23).float()
    )
    for row in (0, 5, 36):
        torch.testing.assert_close(product(x[row : row + 1])[0], together[row], rtol=1e-5, atol=1e-5)


def test_a_changed_weight_is_packed_again() -> None:
    layer = Linear(46, 23)
    x = torch.randn(2, 46, generator=torch.Generator().manual_seed(1))
    with torch.inference_mode(), products_in(torch.int8):
        before = layer(x)
        assert packed(layer.weight, None, torch.int8) is packed(layer.weight, None, torch.int8)
    with torch.no_grad():
        layer.weight.mul_(2)
    with torch.inference_mode(), products_in(torch.int8):
        torch.testing.assert_close(layer(x), 2 * before)


def test_few_different_shapes() -> None:
    assert [alike(n) for n in (1, 2, 3, 5, 9, 17, 32, 33, 64, 65, 100)] == [1, 2, 4, 8, 16, 32, 32, 64, 64, 96, 128]
    assert len({alike(n) for n in range(1, 321)}) == 15
