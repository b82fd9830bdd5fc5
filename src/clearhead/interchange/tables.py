"""Tables of names, and what they do to tensors.

A table's line says: the foreign module on the left is our modules on the right, their rows one after the other (more
than one where the other program keeps, say, queries, keys and values in one matrix). A foreign module has parts, which
have other words too: our "weight" of a norm may be their "gamma".
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from clearhead.errors import UsageError

Modules = Mapping[str, tuple[str, ...]]
Weights = Mapping[str, Tensor]


def in_layers(layer: Modules, theirs: str, ours: str, n_layers: int) -> dict[str, tuple[str, ...]]:
    """The table of one layer for all of a stack; `theirs` and `ours` hold {n}, the layer's number."""
    return {
        f"{theirs.format(n=n)}{name}": tuple(f"{ours.format(n=n)}{module}" for module in modules)
        for n in range(n_layers)
        for name, modules in layer.items()
    }


def renamed(weights: Weights, modules: Modules, words: Mapping[str, str], separator: str = ".") -> dict[str, Tensor]:
    """Every part that our modules have, under its foreign name. `words`: our name of a part → theirs."""
    found: dict[str, Tensor] = {}
    for name, ours in modules.items():
        for part, word in words.items():
            tensors = [weights[f"{module}.{part}"] for module in ours if f"{module}.{part}" in weights]
            if not tensors:
                continue
            if len(tensors) < len(ours):
                raise ValueError(f"{name}: only some of {', '.join(ours)} have a {part}")
            found[f"{name}{separator}{word}"] = tensors[0] if len(tensors) == 1 else torch.cat(tensors)
    return found


def left_over(weights: Weights, *tables: Modules) -> list[str]:
    """Our tensors that no table speaks of: the result would be another model."""
    known = {module for table in tables for modules in table.values() for module in modules}
    return sorted(name for name in weights if name.rpartition(".")[0] not in known)


def refuse_left_over(weights: Weights, program: str, *tables: Modules) -> None:
    if names := left_over(weights, *tables):
        raise UsageError(f"{program} has no place for {', '.join(names)}", field="model")
