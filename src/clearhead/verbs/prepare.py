"""From files of pairs to batches: read, check, hold some out, learn the vocabulary, tokenise to disk.

Everything is a function of the files' bytes and the settings, so that a resumed run finds what it left.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from clearhead.config import DataSettings, Experiment
from clearhead.data.batching import Batches
from clearhead.data.gate import Gate
from clearhead.data.readers.pairs import Pairs
from clearhead.data.readers.read import open_pairs
from clearhead.data.store import open_store
from clearhead.data.store_builder import Coding, build_store
from clearhead.errors import DataError, UsageError
from clearhead.files import sha256_of
from clearhead.randomness import numpy_generator
from clearhead.verbs.folder import DATA
from clearhead.verbs.recut import word_store
from clearhead.verbs.sift import sift
from clearhead.verbs.ticker import Ticker
from clearhead.verbs.tokenizers import Tokenizers

Say = Callable[[str], None]
Progress = Callable[[int], None]
DATA_VARIABLE = "$CLEARHEAD_DATA"
ADDED_LATER = ("quotes", "drop_unpaired")
"""Settings of [data] that the first runs did not have: left at its default, none changes what a run is known by."""
MOST_TO_LEARN_FROM = 1_000_000
"""Pairs the vocabulary is learned from, at most."""


@dataclass(frozen=True)
class Corpus:
    """The pairs to learn from and the pairs held out, both re-iterable."""

    pairs: Pairs
    gate: Gate
    kept: int
    """Pairs that pass the gate, held-out ones included."""
    held_out: frozenset[int]
    """Places among the kept pairs."""
    valid: tuple[tuple[str, str], ...]
    fingerprint: str
    """Of the files' bytes and the settings that choose among their pairs."""

    @property
    def train_pairs(self) -> int:
        return self.kept - len(self.held_out)

    def train(self) -> Iterator[tuple[str, str]]:
        """Pairs that are neither held out nor copies of held-out ones."""
        known = set(self.valid)
        for place, pair in enumerate(self.gate(self.pairs)):
            if place not in self.held_out and (pair.source, pair.target) not in known:
                yield pair.source, pair.target


def read_corpus(files: tuple[Path, ...], settings: DataSettings, seed: int, say: Say) -> Corpus:
    pairs = open_pairs(files, settings)
    for line in pairs.said:
        say(line)
    gate = Gate.learn(pairs, settings)
    kept = sum(1 for _ in Ticker(say, "pairs read").each(gate(pairs)))
    for line in (*pairs.passed_over, *gate.said):
        say(line)
    if kept < 2:
        hint = "two are the least: look at them with `clearhead data check`"
        raise DataError(f"{kept} usable pairs", file=files[0], hint=hint)
    held_out: frozenset[int] = frozenset()
    if settings.valid:
        valid = held_out_pairs(settings, say)
    else:
        wanted = max(1, min(settings.valid_pairs, kept // 10))
        chosen = numpy_generator(seed, "held out").choice(kept, size=wanted, replace=False)
        held_out = frozenset(chosen.tolist())
        valid = tuple((p.source, p.target) for i, p in enumerate(gate(pairs)) if i in held_out)
    say(f"{kept - len(held_out):,} pairs to learn from, {len(valid):,} held out for validation")
    corpus = Corpus(pairs, gate, kept, held_out, valid, fingerprint(files, settings, seed))
    if next(corpus.train(), None) is None:
        hint = "hold out other pairs: --valid names files of their own" if settings.valid else "they are all the same"
        raise DataError("no pair is left to learn from: each is held out for validation too", file=files[0], hint=hint)
    return corpus


def held_out_pairs(settings: DataSettings, say: Say) -> tuple[tuple[str, str], ...]:
    """All pairs of the files named for validation, as they are."""
    pairs = open_pairs(located(settings.valid), settings)
    found = list(pairs)
    looked_at = sift(found, settings if settings.gate == "off" else settings.model_copy(update={"gate": "warn"}))
    for line in (*pairs.said, *pairs.passed_over, *looked_at.said):
        say(f"held out: {line}")
    return tuple((pair.source, pair.target) for pair in found)


def located(files: Iterable[str]) -> tuple[Path, ...]:
    """Paths of files as a person wrote them; a leading $CLEARHEAD_DATA is the folder that variable names."""
    found = []
    for name in files:
        if name.startswith(DATA_VARIABLE):
            folder = os.environ.get(DATA_VARIABLE[1:])
            if not folder:
                raise UsageError(
                    f"{DATA_VARIABLE} is not set", field=name, hint=f"export {DATA_VARIABLE[1:]}=/folder/with/the/data"
                )
            name = folder + name[len(DATA_VARIABLE) :]
        found.append(Path(name).expanduser())
    return tuple(found)


def fingerprint(files: Iterable[Path], settings: DataSettings, seed: int) -> str:
    """Hex digest over the bytes of every file and everything that chooses among their pairs."""
    untouched = {name for name in ADDED_LATER if getattr(settings, name) == DataSettings.model_fields[name].default}
    choosing = settings.model_dump(mode="json", exclude={"valid", "note", *untouched})
    digest = hashlib.sha256(json.dumps([choosing, seed]).encode())
    for path in chain(files, located(settings.valid)):
        digest.update(sha256_of(path).encode())
    return digest.hexdigest()


def sample_to_learn_from(corpus: Corpus) -> Iterator[tuple[str, str]]:
    """All training pairs, or evenly spread ones when there are very many."""
    stride = -(-corpus.train_pairs // MOST_TO_LEARN_FROM)
    for place, pair in enumerate(corpus.train()):
        if place % stride == 0:
            yield pair


def prepare_batches(
    corpus: Corpus, tokenizers: Tokenizers, experiment: Experiment, run: Path, progress: Progress | None = None
) -> Batches:
    """The tokenised store of a run, built once, and its batches."""
    text, train = experiment.text, experiment.train
    mark = f"{corpus.fingerprint[:32]}-{tokenizers.fingerprint}-{'words' if text.bpe_dropout else 'ids'}"
    if text.bpe_dropout:
        store, recut = word_store(corpus.train, tokenizers, experiment, run / DATA, mark)
        return Batches(store, train.batch_tokens, train.seed, recut)
    source, target = (Coding(t.encode_many, t.vocab_size) for t in (tokenizers.source, tokenizers.target))
    limit = experiment.longest
    try:
        store = open_store(run / DATA, mark)
    except DataError:
        store = build_store(
            corpus.train(), source, target, run / DATA, fingerprint=mark, max_tokens=limit, progress=progress
        )
    return Batches(store, train.batch_tokens, train.seed)
