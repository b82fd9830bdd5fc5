"""CTranslate2 as a contestant. Ids become its tokens before the clock starts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ctranslate2
from protocol import chunk_times, serve


class Contestant:
    def __init__(self, folder: str, precision: str, threads: int, workers: int = 1) -> None:
        self.tokens: list[str] = json.loads((Path(folder) / "shared_vocabulary.json").read_text(encoding="utf-8"))
        self.ids = {token: place for place, token in enumerate(self.tokens)}
        self.translator = ctranslate2.Translator(
            folder, compute_type=precision, inter_threads=workers, intra_threads=max(1, threads // workers)
        )
        self.workers = workers

    def decode(self, chunks: list[list[list[int]]], beam: int, max_length: int, raw_scores: bool = False) -> dict:
        words = [[[self.tokens[i] for i in source] for source in chunk] for chunk in chunks]
        penalty = 0.0 if raw_scores else 1.0

        def work(chunk: list[list[str]]) -> list[dict[str, Any]]:
            found = self.translator.translate_batch(
                chunk,
                max_batch_size=-(-len(chunk) // self.workers),
                beam_size=beam,
                length_penalty=penalty,
                min_decoding_length=0,
                max_decoding_length=max_length,
                return_scores=raw_scores,
            )
            return [{"tokens": f.hypotheses[0], "score": f.scores[0] if raw_scores else 0.0} for f in found]

        answer = chunk_times(words, work)
        answer["outputs"] = [[self.ids[token] for token in tokens] for tokens in answer["outputs"]]
        return answer


if __name__ == "__main__":
    serve(Contestant)
