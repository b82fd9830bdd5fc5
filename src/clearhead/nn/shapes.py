"""The words shape annotations are written in: `Float[Tensor, "B N Q H"]`.

jaxtyping checks them in the test run; a user needs no jaxtyping, so without it the words stand for nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int, UInt8
else:
    try:
        from jaxtyping import Bool, Float, Int, UInt8
    except ImportError:

        class _Unchecked:
            def __class_getitem__(cls, item: Any) -> type[Tensor]:
                return Tensor

        Bool = Float = Int = UInt8 = _Unchecked

__all__ = ["Bool", "Float", "Int", "Tensor", "UInt8"]
