"""What all contestants are given: data, batches, weights — and the judge of what they give back.

    tiny   trained here, on the data, for a few minutes; translations are worth a BLEU
    base   random weights; <eos> has a row of zeros, so it is never among the best and every output has full length
    deep   as base, of the tiny width and any number of layers

Both have the architecture all contestants can express: post-norm, sinusoidal positions in halves, ReLU, tied, biases.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import sacrebleu
import torch
from protocol import serve, timed

from clearhead.config import ModelSettings
from clearhead.config.load import build_experiment
from clearhead.data.batching import Batch, Batches
from clearhead.data.order import Cursor
from clearhead.data.phrasebook import phrasebook
from clearhead.decode.step import BOS, EOS, MASK, PAD, padded
from clearhead.files import sha256_of
from clearhead.models.build import build
from clearhead.models.presets import SIZES
from clearhead.native import build as native
from clearhead.text.tokenizer import Tokenizer
from clearhead.train.loop import Stop
from clearhead.train.weights import copy_weights
from clearhead.verbs import limits
from clearhead.verbs.demo import write_book
from clearhead.verbs.export import export
from clearhead.verbs.folder import open_folder, write_model
from clearhead.verbs.quiet import Quiet
from clearhead.verbs.train import Prepared, prepare, train

BENCHED = {"norm_order": "post", "positions": "sinusoidal-halves", "activation": "relu", "tie": "all", "dropout": 0.1}
VOCAB = 8000
SEED = 1
BATCH_TOKENS = {"tiny": 4096, "base": 2048}
BATCHES = 16
LONGEST_SOURCE = 60
RESCORED_AT_ONCE = 8


class Workshop:
    def __init__(self, threads: int, folder: str, files: dict[str, list[str]] | None, steps: int) -> None:
        torch.set_num_threads(threads)
        self.folder, self.steps = Path(folder), steps
        self.train_files, self.test_files = made_up(self.folder) if files is None else (files["train"], files["test"])
        self.recipe = {
            "files": self.train_files,
            "size": "tiny",
            "data": {"gate": "off", "max_tokens": 128},
            "text": {"vocab_size": VOCAB},
            "model": BENCHED,
            "train": {"max_steps": steps, "batch_tokens": BATCH_TOKENS["tiny"], "seed": SEED, "lr": 2e-3}
            | {"schedule": "cosine", "warmup_steps": max(1, steps // 5)},
            "validation": {"every_steps": steps, "metric": "loss", "decode_pairs": 0},
            "checkpoint": {"every_steps": steps, "keep": 1},
        }
        native.build()
        self.place = self.folder / f"work-{self.key()}"
        (self.place / "tiny").mkdir(parents=True, exist_ok=True)
        if len(self.test_files) == 2:
            sides = [Path(name).read_text(encoding="utf-8").splitlines() for name in self.test_files]
            self.test = list(zip(*sides, strict=True))
        else:
            lines = Path(self.test_files[0]).read_text(encoding="utf-8").splitlines()
            self.test = [(line.split("\t")[0], line.split("\t")[1]) for line in lines]

    def key(self) -> str:
        hashes = [sha256_of(Path(name)) for name in (*self.train_files, *self.test_files)]
        said = json.dumps([self.recipe, hashes], sort_keys=True)
        return hashlib.sha256(said.encode()).hexdigest()[:12]

    def tiny(self) -> dict[str, Any]:
        """The trained model. A second run of the bench finds it."""
        finished = train(self.recipe, self.place / "tiny", Quiet())
        return {"folder": str(finished.folder), "parameters": finished.parameters, "loss": finished.best.loss}

    def random(self, name: str, size: str, layers: int | None = None) -> dict[str, Any]:
        """Random weights, with the tokenizer of the tiny model. A row of zeros keeps <eos> from being the likeliest."""
        tokenizers = self.prepared.tokenizers
        depth = {} if layers is None else {"encoder_layers": layers, "decoder_layers": layers}
        experiment = build_experiment({"size": size, "model": SIZES[size] | BENCHED | depth, "files": []})
        model = build(experiment.model, *[tokenizers.source.vocab_size] * 2, seed=SEED)
        with torch.no_grad():
            model.output_weight[EOS] = 0.0
        folder = self.place / name
        folder.mkdir(exist_ok=True)
        about = {"kind": "model", "tokenizer": tokenizers.fingerprint, "steps": 0}
        write_model(folder, experiment, tokenizers, copy_weights(model), {}, about)
        return {"folder": str(folder), "vocabulary": tokenizers.source.vocab_size}

    @cached_property
    def prepared(self) -> Prepared:
        """Read the data, learn the vocabulary, tokenise: what training does before its first step. Done once."""
        return prepare(self.recipe, self.place / "tiny", Quiet(), Stop())

    def export(self, name: str, to: str, packages: str | None = None) -> dict[str, Any]:
        """`packages`: the folder where the other program is installed."""
        if packages is not None and packages not in sys.path:
            sys.path.append(packages)
        out = self.place / f"{name}-{to}"
        shutil.rmtree(out, ignore_errors=True)
        export(self.place / name, to, out)
        return {"folder": str(out)}

    def chunks(self, size: int, count: int, fixed: bool = False) -> dict[str, Any]:
        """`count` chunks of `size` test sources of about equal length, their places in the test set, and how long an
        output may be. `fixed`: from the middle of the lengths alone."""
        ids = self.prepared.tokenizers.source.encode_many([source for source, _ in self.test])
        places = sorted((i for i in range(len(ids)) if 0 < len(ids[i]) <= LONGEST_SOURCE), key=lambda i: -len(ids[i]))
        every = [places[at : at + size] for at in range(0, len(places) - size + 1, size)] or [places]
        if fixed:
            every = every[len(every) // 2 :][:1] * count
        step = max(1, len(every) // count)
        chosen = every[::step][:count]
        sources = [[ids[place] for place in chunk] for chunk in chosen]
        longest = max(len(source) for chunk in sources for source in chunk)
        return {"chunks": sources, "places": chosen, "max_length": 2 * longest + 20}

    def text(self, place: int) -> dict[str, Any]:
        """A source of the test set."""
        return {"text": self.test[place][0]}

    def batches(self, size: str) -> dict[str, Any]:
        """The first batches of a run, in a file that all can read: source_0, in_0, out_0, source_1 …"""
        out = self.place / f"batches-{size}.npz"
        prepared = self.prepared
        vocabulary = prepared.tokenizers.source.vocab_size
        found = Batches(prepared.batches.store, BATCH_TOKENS[size], SEED)
        some = [found.at(Cursor(0, number)) for number in range(min(BATCHES, found.plan.n_batches(0)))]
        arrays: dict[str, np.ndarray] = {}
        for number, batch in enumerate(some):
            arrays |= {f"source_{number}": batch.source, f"in_{number}": batch.target_in}
            arrays |= {f"out_{number}": batch.target_out}
        np.savez(out, **arrays)
        settings = self.settings(size)
        operations = sum(limits.step_operations(settings, vocabulary, *lengths(batch)) for batch in some)
        shape = SIZES[size] | BENCHED
        per_token = operations / sum(batch.n_target_tokens for batch in some)
        return {"file": str(out), "vocabulary": vocabulary, "shape": shape, "operations_per_token": per_token}

    def settings(self, size: str) -> ModelSettings:
        return ModelSettings.model_validate(SIZES[size] | BENCHED)

    def own_rate(self, size: str, precision: str) -> dict[str, Any]:
        """GFLOP/s of the products of one training step, each at its own shape."""
        rows, vocabulary = BATCH_TOKENS[size], self.prepared.tokenizers.source.vocab_size
        products = limits.step_products(self.settings(size), vocabulary, rows, rows)
        return {"gflops": limits.rate(products, {"float32": torch.float32, "bf16": torch.bfloat16}[precision])}

    def machine(self) -> dict[str, Any]:
        return limits.measure().as_table()

    def tokenise(self) -> dict[str, Any]:
        """Tokens a second: with nothing remembered, and again, when the words are known; and batches made of them."""
        prepared = self.prepared
        texts = [side for pair in prepared.corpus.train() for side in pair]
        tokenizer = Tokenizer(prepared.tokenizers.source.parts)
        first, again = (timed(lambda: sum(map(len, tokenizer.encode_many(texts)))) for _ in range(2))
        batches = prepared.batches
        epoch = range(min(200, batches.plan.n_batches(0)))
        read, seconds = timed(lambda: sum(batches.at(Cursor(0, n)).n_target_tokens for n in epoch))
        rates = {"first": first[0] / first[1], "again": again[0] / again[1], "batches": read / seconds}
        return {"tokens_per_s": rates, "tokens": first[0]}

    def bleu(self, outputs: list[list[int]], places: list[int]) -> dict[str, Any]:
        tokenizer = self.prepared.tokenizers.target
        texts = tokenizer.decode_many(outputs)
        return {"bleu": sacrebleu.corpus_bleu(texts, [[self.test[place][1] for place in places]]).score}

    def score_error(
        self, name: str, sources: list[list[int]], outputs: list[list[int]], scores: list[float], never: bool
    ) -> dict[str, Any]:
        """How far the log-probability a contestant claims for its own output is from the one in float64, per token.
        `never`: it counts padding, start and mask as impossible, so its probabilities sum to one without them."""
        model = open_folder(self.place / name).model.double()
        errors = []
        for at in range(0, len(sources), RESCORED_AT_ONCE):
            some = slice(at, at + RESCORED_AT_ONCE)
            exact = exact_scores(model, sources[some], outputs[some], never)
            for claimed, right, tokens in zip(scores[some], exact, outputs[some], strict=True):
                errors.append(abs(claimed - right) / max(1, len(tokens)))
        return {"score_error": sum(errors) / len(errors)}


def lengths(batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    """Of every pair, ends included."""
    return tuple(torch.from_numpy((ids != PAD).sum(1)) for ids in (batch.source, batch.target_out))


@torch.inference_mode()
def exact_scores(model: Any, sources: list[list[int]], outputs: list[list[int]], never: bool) -> list[float]:
    """Without <eos>: outputs are taken to be cut off."""
    hidden = model(padded([[*source, EOS] for source in sources]), padded([[BOS, *tokens] for tokens in outputs]))
    logits = model.logits(hidden).double()
    if never:
        logits[..., [PAD, BOS, MASK]] = -torch.inf
    log_p = torch.log_softmax(logits, -1)
    return [
        float(log_p[row, torch.arange(len(tokens)), torch.tensor(tokens, dtype=torch.long)].sum())
        for row, tokens in enumerate(outputs)
    ]


def made_up(folder: Path) -> tuple[list[str], list[str]]:
    """Without a data folder: the phrasebook in the package, English to German."""
    place = folder / "phrasebook"
    if not (place / "phrasebook.test.tsv").exists():
        write_book(phrasebook("en", "de"), place)
    return [str(place / "phrasebook.train.tsv")], [str(place / "phrasebook.test.tsv")]


if __name__ == "__main__":
    serve(Workshop)
