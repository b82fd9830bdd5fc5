"""The verb `train`: from files of pairs to a finished model folder; typed again, it goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch

import clearhead
from clearhead.config import Experiment, read_experiment
from clearhead.config.load import apply_overrides, build_experiment, refuse_misspelt, to_table, to_toml
from clearhead.data.batching import Batches
from clearhead.errors import DataError, UsageError
from clearhead.files import RunLock, sweep_partial, write_atomic
from clearhead.models.build import build
from clearhead.models.seq2seq import parameter_count
from clearhead.native import build as native
from clearhead.train.checkpoint import Checkpoints
from clearhead.train.loop import Listener, Stop, Training
from clearhead.train.state import RunState, Validation, difference
from clearhead.verbs import golden
from clearhead.verbs.card import write_card
from clearhead.verbs.device import described
from clearhead.verbs.device import device as choose
from clearhead.verbs.folder import (
    CARD,
    CONFIG,
    FINGERPRINT,
    GOLDEN,
    LOG,
    forget,
    holds_finished,
    is_ours,
    refuse_foreign,
    write_model,
)
from clearhead.verbs.log import RunLog
from clearhead.verbs.prepare import Corpus, located, prepare_batches, read_corpus, sample_to_learn_from
from clearhead.verbs.resolve import laid_over, refuse_other_size, resolve
from clearhead.verbs.ticker import Ticker
from clearhead.verbs.tokenizers import Tokenizers, learn, load
from clearhead.verbs.validation import Validator


@dataclass
class Finished:
    """What a run came to."""

    folder: Path
    best: Validation | None
    steps: int
    parameters: int
    already: bool = False
    """Nothing was left to do."""


@dataclass
class Prepared:
    """Everything a run needs, ready to train."""

    corpus: Corpus
    experiment: Experiment
    tokenizers: Tokenizers
    batches: Batches
    training: Training = field(repr=False)


def train(
    table: Mapping[str, Any],
    out: Path,
    listener: Listener,
    *,
    overrides: Sequence[str] = (),
    stop: Stop | None = None,
) -> Finished:
    """Train what `table` describes (a recipe's keys; only what was said) into the folder `out`."""
    return train_locked(apply_overrides(table, overrides), out, listener, stop or Stop())


def train_locked(table: Mapping[str, Any], out: Path, listener: Listener, stop: Stop) -> Finished:
    with RunLock(out) as lock:
        refuse_foreign(out)
        if lock.left_by:
            listener.say(f"the last run in this folder was killed ({lock.left_by}); going on from what it saved")
        for note in sweep_partial(out, is_ours):
            listener.say(note)
        begun = (out / CONFIG).exists()
        try:
            prepared = prepare(table, out, listener, stop)
        except (UsageError, DataError):
            if not begun:
                forget(out)
            raise
        training = prepared.training
        resumed = training.resume()
        log = training.listener
        assert isinstance(log, RunLog)
        log.truncate(training.state.step)
        parameters = parameter_count(training.model)
        if resumed and training.finished() and holds_finished(out, training.state.step):
            return Finished(out, training.state.best, training.state.step, parameters, already=True)
        announce(prepared, resumed, listener)
        weights = training.run()
        about = describe_model(prepared, training.state)
        files = {
            CARD: write_card(prepared.experiment, prepared.corpus, training.state, parameters).encode(),
            GOLDEN: golden.make(prepared.experiment, prepared.tokenizers, weights),
        }
        write_model(out, prepared.experiment, prepared.tokenizers, weights, files, about)
        return Finished(out, training.state.best, training.state.step, parameters)


def prepare(table: Mapping[str, Any], out: Path, listener: Listener, stop: Stop) -> Prepared:
    """Read, resolve, tokenise, build: everything before the first step."""
    stored = read_experiment(out / CONFIG) if (out / CONFIG).exists() else None
    known = laid_over(to_table(stored), table) if stored else table
    refuse_misspelt(known)  # before the data are read, which may take minutes
    refuse_other_size(known.get("size"))
    early = build_experiment({name: known[name] for name in ("files", "data", "train") if name in known})
    files = located(early.files)
    if not files:
        raise UsageError("no file of pairs was given", hint="clearhead train pairs.tsv -o run")
    corpus = read_corpus(files, early.data, early.train.seed, listener.say)
    experiment = settled(table, corpus.train_pairs, stored, out)
    if experiment.train.threads:
        torch.set_num_threads(experiment.train.threads)
    tokenizers = vocabulary(corpus, experiment, out, listener)
    ticker = Ticker(listener.say, "pairs tokenised", corpus.train_pairs)
    batches = prepare_batches(corpus, tokenizers, experiment, out, ticker.reached)
    if batches.store.dropped:
        listener.say(f"{batches.store.dropped:,} pairs left out: more than {experiment.longest:,} tokens on a side")
    if copies := corpus.train_pairs - len(batches.store) - batches.store.dropped:
        listener.say(f"{copies:,} pairs left out: the same are held out for validation")
    validator = Validator(corpus.valid, tokenizers, experiment)
    model = build(experiment.model, tokenizers.source.vocab_size, tokenizers.target.vocab_size, experiment.train.seed)
    model.to(choose(experiment.train.device))
    identity = run_identity(experiment, batches.store.content_hash, tokenizers)
    checkpoints = Checkpoints(out, identity, experiment.checkpoint.keep, listener.say)
    log = RunLog(out / LOG, listener)
    native.build(listener.say)  # before the first step: on how it is taken its last bits depend
    training = Training(model, batches, experiment, checkpoints, validator, log, stop)
    return Prepared(corpus, experiment, tokenizers, batches, training)


def settled(table: Mapping[str, Any], pairs: int, stored: Experiment | None, out: Path) -> Experiment:
    """The experiment this folder is for: resolved on the first call, held to on every later one."""
    experiment = resolve(table, pairs, stored)
    changed = difference(stored, experiment) if stored else []
    if changed:
        raise UsageError(
            "this folder holds a run with other settings:\n    " + "\n    ".join(changed),
            file=out,
            hint="choose another folder with -o, or the settings it was started with",
        )
    if experiment != stored:
        write_atomic(out / CONFIG, to_toml(experiment).encode())
    return experiment


def vocabulary(corpus: Corpus, experiment: Experiment, out: Path, listener: Listener) -> Tokenizers:
    """Learn it on the first call, load it on every later one."""
    marker = out / FINGERPRINT
    if marker.exists():
        if marker.read_text(encoding="utf-8") != corpus.fingerprint:
            raise UsageError(
                "this folder holds a run on other data (the files' bytes differ)",
                file=out,
                hint="choose another folder with -o",
            )
        return load(out, experiment.text)
    tokenizers = learn(partial(sample_to_learn_from, corpus), experiment.text)
    for name, data in tokenizers.files().items():
        write_atomic(out / name, data)
    write_atomic(marker, corpus.fingerprint.encode())
    return tokenizers


def run_identity(experiment: Experiment, content: str, tokenizers: Tokenizers) -> str:
    """Of everything a checkpoint must agree with."""
    model = experiment.model.model_dump(mode="json")
    parts = json.dumps([model, experiment.train.seed, content, tokenizers.fingerprint], sort_keys=True)
    return hashlib.sha256(parts.encode()).hexdigest()[:32]


def announce(prepared: Prepared, resumed: bool, listener: Listener) -> None:
    """What was decided, before the first step."""
    experiment, state = prepared.experiment, prepared.training.state
    model = experiment.model
    listener.say(
        f"size {experiment.size}: {parameter_count(prepared.training.model):,} parameters, "
        f"{model.encoder_layers}+{model.decoder_layers} layers, width {model.d_model}; "
        f"vocabulary {prepared.tokenizers.target.vocab_size:,}; {experiment.train.max_steps:,} steps "
        f"of up to {experiment.train.batch_tokens * experiment.train.accumulate:,} tokens, "
        f"products in {experiment.train.precision}, {described(prepared.training.model.output_weight.device)}"
    )
    waste = prepared.batches.plan.waste(0)
    listener.say(f"padding: {waste.source:.1%} of source, {waste.target:.1%} of target places")
    if resumed:
        listener.say(f"going on from step {state.step:,}")
    listener.say(f"however often this run is stopped, {state.promise}")


def describe_model(prepared: Prepared, state: RunState) -> dict[str, str | int]:
    """For the manifest: what a reader must know before opening. No time, path or host."""
    named = {"source": prepared.corpus.pairs.source, "target": prepared.corpus.pairs.target}
    languages: dict[str, str | int] = {side: code for side, code in named.items() if code}
    return languages | {
        "kind": "model",
        "clearhead": clearhead.__version__,
        "family": prepared.experiment.model.kind,
        "tokenizer": prepared.tokenizers.fingerprint,
        "best_step": state.best.step if state.best else state.step,
        "steps": state.step,
    }
