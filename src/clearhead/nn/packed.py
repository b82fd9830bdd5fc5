"""Linear maps made ready for many products: the weights are brought into their precision once, not at every call.

    float32    y = x Wᵀ + β        in the layout of the processor's library where it has one: on processors that are not
                                   Intel's twice as fast as torch's own product, seven times for a few rows
    bfloat16   both factors rounded to 8 bits of mantissa, the sum in float32
    int8       x ≈ s ⊙ q,  s = max|x| / 127 of each row;   W ≈ t ⊙ Q,  t = max|W| / 127 of each output
               y = s ⊙ t ⊙ (q Qᵀ) + β           the product of whole numbers is exact       (Dettmers et al. 2022, §2.1)

A row's scale is its own, so that in int8 too a sentence does not depend on its neighbours in the batch.
Knows weights and a precision. Refuses to know gradients: nothing here can be trained.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.utils.weak import WeakIdKeyDictionary

from clearhead.nn.shapes import Float, Int, Tensor

Product = Callable[[Tensor], Tensor]
"""x (…, input) → y (…, output)."""

ROWS = 64
"""Rows the layout is made for; it serves other numbers as well."""
NEAR = 1 << 18
"""Numbers in weights that fit in the nearer caches."""
STEPS = 127.0
"""Whole numbers to each side of zero."""
TINY = 1e-30
"""A row of zeros has a scale too."""


def pack(weight: Float[Tensor, "O I"], bias: Float[Tensor, "O"] | None, products: torch.dtype) -> Product:
    """The map of these weights in this precision. Numbers other than float32 are left as they are."""
    if products == torch.int8 and weight.dtype == torch.float32:
        return EightBit(weight, bias)
    if products == torch.bfloat16 and weight.dtype == torch.float32:
        return Rounded(weight, bias)
    if weight.dtype == torch.float32 and weight.device.type == "cpu" and torch.backends.mkldnn.is_available():
        return Arranged(weight, bias)
    return Whole(weight, bias)


class Whole:
    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.weight, self.bias = weight, bias

    def __call__(self, x: Tensor) -> Tensor:
        return torch.nn.functional.linear(x, self.weight, self.bias)


class Arranged:
    """float32 by oneDNN, whose layout of the weights is made once. A single row is a product of another kind: there
    torch's own is faster while the weights fit in the processor's nearer caches."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.weight, self.bias = weight, bias
        self.near = weight.numel() <= NEAR
        with torch.inference_mode(False), torch.no_grad():
            self.arranged = torch.ops.mkldnn._reorder_linear_weight(weight.detach().contiguous(), ROWS)

    def __call__(self, x: Tensor) -> Tensor:
        rows = x.numel() // x.shape[-1]
        if rows == 1 and self.near:
            return torch.nn.functional.linear(x, self.weight, self.bias)
        padded = alike(rows)
        if padded == rows:
            return torch.ops.mkldnn._linear_pointwise(x, self.arranged, self.bias, "none", [], "")
        x, shape = x.reshape(rows, -1), x.shape[:-1]
        x = torch.cat((x, x.new_zeros(padded - rows, x.shape[1])))
        return torch.ops.mkldnn._linear_pointwise(x, self.arranged, self.bias, "none", [], "")[:rows].view(*shape, -1)


class Rounded:
    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.weight = weight.bfloat16()
        self.bias = None if bias is None else bias.bfloat16()

    def __call__(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, x.shape[-1])
        missing = alike(len(rows)) - len(rows)
        if missing:
            rows = torch.cat((rows, rows.new_zeros(missing, rows.shape[1])))
        y = torch.nn.functional.linear(rows.bfloat16(), self.weight, self.bias)
        return y[: len(rows) - missing].float().view(*x.shape[:-1], -1)


def alike(rows: int) -> int:
    """As many, or a few more: a power of two up to 32, then multiples of 32. The processor's library writes a kernel
    for every new shape of rounded products, which takes milliseconds (docs/log.md)."""
    return 1 << max(0, rows - 1).bit_length() if rows <= 32 else -(-rows // 32) * 32


class EightBit:
    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        whole, scale = whole_numbers(weight)
        self.weight, self.scale, self.bias = whole.T, scale[:, 0].contiguous(), bias

    def __call__(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, x.shape[-1])
        whole, scale = whole_numbers(rows)
        y = torch._int_mm(whole, self.weight).float().mul_(scale)
        y = y.mul_(self.scale) if self.bias is None else torch.addcmul(self.bias, y, self.scale)
        return y.view(*x.shape[:-1], -1)


def whole_numbers(x: Float[Tensor, "R I"]) -> tuple[Int[Tensor, "R I"], Float[Tensor, "R 1"]]:
    """Each row as whole numbers from -127 to 127, and what one of them stands for."""
    scale = x.abs().amax(-1, keepdim=True).clamp_(min=TINY).mul_(1 / STEPS)
    return (x / scale).round_().to(torch.int8), scale


_packs: WeakIdKeyDictionary = WeakIdKeyDictionary()
"""weight → (its version, precision, its map): made again when the weight has changed."""


def packed(weight: Float[Tensor, "O I"], bias: Float[Tensor, "O"] | None, products: torch.dtype) -> Product:
    """`pack`, remembered for as long as the weight lives and stays as it is."""
    if weight.is_inference():  # carries no version: whether it has changed cannot be told
        return pack(weight, bias, products)
    known = _packs.get(weight)
    if known is None or known[0] != weight._version or known[1] != products:
        known = (weight._version, products, pack(weight.detach(), None, products))
        _packs[weight] = known
    if bias is None:
        return known[2]
    product, beta = known[2], bias
    return lambda x: product(x).add_(beta)
