"""Optimisers: AdamW for everything, or Muon for the matrices and AdamW for the rest.

    AdamW   θ ← θ − η (m̂ / (√v̂ + ε) + λ θ)                Loshchilov & Hutter 2019
    Muon    θ ← θ − η (orthogonalise(momentum) + λ θ)     Jordan et al. 2024; torch's own implementation

Embeddings, tables of positions, norms and biases always go to AdamW; norms and biases are never decayed.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from clearhead.config import TrainSettings
from clearhead.nn.embedding import TokenTable
from clearhead.nn.positions import AbsolutePositions, ScorePositions

TABLES = (TokenTable, AbsolutePositions, ScorePositions)
"""Bricks whose parameters are looked up row by row: no map from vectors to vectors, so nothing to orthogonalise."""


class Optimiser:
    """One or two torch optimisers behind one `step`; the state's tensors have stable names."""

    def __init__(self, model: nn.Module, settings: TrainSettings) -> None:
        self.settings = settings
        self.names = {id(p): name for name, p in model.named_parameters()}
        matrices, tables, vectors = split_parameters(model)
        self.parts: list[tuple[torch.optim.Optimizer, float]] = []
        if settings.optimiser == "muon":
            muon = torch.optim.Muon(matrices, lr=settings.muon_lr, weight_decay=settings.weight_decay)
            self.parts.append((muon, settings.muon_lr))
            matrices = []
        groups = [
            {"params": matrices + tables, "weight_decay": settings.weight_decay},
            {"params": vectors, "weight_decay": 0.0},
        ]
        adamw = torch.optim.AdamW(
            [g for g in groups if g["params"]], lr=settings.lr, betas=settings.betas, eps=1e-9, fused=True
        )
        self.parts.append((adamw, settings.lr))

    def step(self, factor: float) -> None:
        """One update at this factor of each peak learning rate."""
        for part, peak in self.parts:
            for group in part.param_groups:
                group["lr"] = peak * factor
            part.step()

    def tensors(self) -> dict[str, Tensor]:
        """The state, each tensor under its parameter's name."""
        found: dict[str, Tensor] = {}
        for part, _ in self.parts:
            for parameter, state in part.state.items():
                for key, value in state.items():
                    found[f"{self.names[id(parameter)]}/{key}"] = torch.as_tensor(value)
        return found

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Put back what `tensors` gave."""
        by_parameter: dict[str, dict[str, Tensor]] = {}
        for name, value in tensors.items():
            parameter_name, _, key = name.rpartition("/")
            by_parameter.setdefault(parameter_name, {})[key] = value.clone()
        for part, _ in self.parts:
            for group in part.param_groups:
                for parameter in group["params"]:
                    stored = by_parameter.get(self.names[id(parameter)], {})
                    part.state[parameter] = {key: value.to(parameter.device) for key, value in stored.items()}


def split_parameters(model: nn.Module) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """(matrices of linear maps, tables whose rows are looked up, vectors), each learned tensor once."""
    tables = {id(p) for m in model.modules() if isinstance(m, TABLES) for p in m.parameters(recurse=False)}
    parameters = list(model.parameters())
    return (
        [p for p in parameters if p.ndim == 2 and id(p) not in tables],
        [p for p in parameters if id(p) in tables],
        [p for p in parameters if p.ndim != 2 and id(p) not in tables],
    )


def gradient_norm(parameters: Iterable[Tensor]) -> Tensor:
    """√Σ g² over all gradients, in one fixed order."""
    norms = [p.grad.norm() for p in parameters if p.grad is not None]
    return torch.stack(norms).norm()
