"""A plain loop as a contestant: torch.nn.Transformer, cross entropy, AdamW, as in many tutorials."""

from __future__ import annotations

import math
import time

import torch
from gate import Batches
from protocol import serve
from torch import Tensor, nn

PAD = 0


class Translator(nn.Module):
    def __init__(self, vocabulary: int, shape: dict) -> None:
        super().__init__()
        d_model = shape["d_model"]
        self.scale = math.sqrt(d_model)
        self.table = nn.Embedding(vocabulary, d_model, padding_idx=PAD)
        nn.init.normal_(self.table.weight, std=d_model**-0.5)
        self.dropout = nn.Dropout(shape["dropout"])
        self.transformer = nn.Transformer(
            d_model,
            shape["n_heads"],
            shape["encoder_layers"],
            shape["decoder_layers"],
            shape["d_ff"],
            shape["dropout"],
            batch_first=True,
        )
        self.transformer.encoder.norm = self.transformer.decoder.norm = None  # post-norm layers end with one
        angle = torch.arange(1024)[:, None] / 10000 ** (torch.arange(0, d_model, 2) / d_model)
        self.register_buffer("waves", torch.cat((angle.sin(), angle.cos()), -1))

    def embed(self, ids: Tensor) -> Tensor:
        return self.dropout(self.table(ids) * self.scale + self.waves[: ids.shape[1]])

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        causal = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        hidden = self.transformer(
            self.embed(source),
            self.embed(target),
            tgt_mask=causal,
            src_key_padding_mask=source == PAD,
            memory_key_padding_mask=source == PAD,
            tgt_is_causal=True,
        )
        return hidden @ self.table.weight.T


class Contestant:
    def __init__(self, file: str, vocabulary: int, shape: dict, precision: str, threads: int, seed: int) -> None:
        torch.set_num_threads(threads)
        torch.manual_seed(seed)
        self.batches = Batches(file)
        self.endless = iter(self.batches)
        self.model = Translator(vocabulary, shape).train()
        self.loss = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=0.1)
        self.optimiser = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        self.precision = precision

    def train(self, steps: int) -> dict:
        start = time.perf_counter()
        for _ in range(steps):
            self.step()
        return {"seconds": time.perf_counter() - start, "tokens": self.batches.count(steps)}

    def step(self) -> None:
        source, target_in, target_out = (torch.from_numpy(ids) for ids in next(self.endless))
        self.optimiser.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=self.precision == "bf16"):
            logits = self.model(source, target_in)
            loss = self.loss(logits.flatten(0, 1), target_out.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimiser.step()


if __name__ == "__main__":
    serve(Contestant)
