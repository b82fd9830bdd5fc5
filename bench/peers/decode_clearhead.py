"""clearhead as a contestant: the model folder as it is, the precision as its setting says, the compiled engine where
there is a compiler and it is not left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from protocol import chunk_times, serve

from clearhead.config import DecodeSettings
from clearhead.decode.decode import decode
from clearhead.verbs.folder import open_folder


class Contestant:
    def __init__(self, folder: str, precision: str, threads: int, compiled: bool = True) -> None:
        self.compiled = compiled
        torch.set_num_threads(threads)
        opened = open_folder(Path(folder))
        self.network, self.max_len, self.precision = opened.model, opened.experiment.model.max_len, precision

    def decode(self, chunks: list[list[list[int]]], beam: int, max_length: int, raw_scores: bool = False) -> dict:
        settings = DecodeSettings(
            method="beam" if beam > 1 else "greedy",
            beam=beam,
            max_ratio=1e-9,
            max_extra=max_length,
            batch_tokens=1 << 24,
            precision=self.precision,
            compiled=self.compiled,
        )

        def work(chunk: list[list[int]]) -> list[dict[str, Any]]:
            found = decode(self.network, chunk, settings, max_len=self.max_len)
            return [{"tokens": list(best[0].tokens), "score": best[0].log_probability} for best in found]

        return chunk_times(chunks, work)


if __name__ == "__main__":
    serve(Contestant)
