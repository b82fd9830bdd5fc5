"""Hugging Face `generate` as a contestant, on the Marian layout."""

from __future__ import annotations

from itertools import takewhile
from typing import Any

import torch
from protocol import chunk_times, serve
from transformers import MarianMTModel, logging

PAD, BOS, EOS = 0, 1, 2


class Contestant:
    def __init__(self, folder: str, precision: str, threads: int) -> None:
        torch.set_num_threads(threads)
        logging.set_verbosity_error()
        dtype = {"float32": torch.float32, "bf16": torch.bfloat16}[precision]
        self.model = MarianMTModel.from_pretrained(folder, dtype=dtype).eval()

    def decode(self, chunks: list[list[list[int]]], beam: int, max_length: int, raw_scores: bool = False) -> dict:
        def work(chunk: list[list[int]]) -> list[dict[str, Any]]:
            return self.generate(chunk, beam, max_length, raw_scores)

        return chunk_times(chunks, work)

    @torch.inference_mode()
    def generate(self, chunk: list[list[int]], beam: int, max_length: int, raw_scores: bool) -> list[dict[str, Any]]:
        width = max(map(len, chunk)) + 1
        ids = torch.tensor([[*source, EOS, *[PAD] * (width - 1 - len(source))] for source in chunk])
        found = self.model.generate(
            input_ids=ids,
            attention_mask=(ids != PAD).long(),
            num_beams=beam,
            do_sample=False,
            early_stopping=beam > 1,
            max_new_tokens=max_length,
            max_length=None,
            return_dict_in_generate=True,
            output_scores=raw_scores,
        )
        outputs = [list(takewhile(lambda token: token not in (PAD, EOS), row[1:])) for row in found.sequences.tolist()]
        scores = [0.0] * len(outputs)
        if raw_scores:
            steps = self.model.compute_transition_scores(found.sequences, found.scores, normalize_logits=True)
            scores = steps.masked_fill(~steps.isfinite(), 0.0).sum(1).tolist()
        return [{"tokens": tokens, "score": score} for tokens, score in zip(outputs, scores, strict=True)]


if __name__ == "__main__":
    serve(Contestant)
