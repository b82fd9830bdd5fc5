"""The model folder: what a finished run leaves and every verb opens.

    manifest.json      size and SHA-256 of every file below; written last
    config.toml        every value, resolved
    model.safetensors  weights only: equal runs give equal files
    tokenizer.json     or tokenizer.source.json and tokenizer.target.json
    card.md            what it is, made from what, how good
    golden.json        built-in sentences with the outputs they must give; never the user's text

Beside them, not in the manifest: log.jsonl, checkpoints/, data/ (the tokenised pairs).
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from clearhead.config import Experiment, ModelSettings, read_experiment
from clearhead.config.load import to_toml
from clearhead.errors import ClearheadError, ModelFileError, UsageError
from clearhead.files import MANIFEST, check_tensors, disk, verify
from clearhead.files.atomic import PARTIAL
from clearhead.files.headers import Header
from clearhead.files.manifest import Manifest, check_file, describe, to_bytes
from clearhead.models.build import Undrawn, build
from clearhead.models.protocol import EncoderDecoder
from clearhead.train.checkpoint import FOLDER as CHECKPOINTS
from clearhead.train.checkpoint import STATE, is_step, read_tensors
from clearhead.train.checkpoint import to_bytes as tensor_bytes
from clearhead.train.weights import Weights, named_weights, put_weights
from clearhead.verbs.tokenizers import SHARED, SOURCE, TARGET, Tokenizers, load, tokenizer_names

CONFIG, WEIGHTS, CARD, GOLDEN = "config.toml", "model.safetensors", "card.md", "golden.json"
LOG, DATA, WORDS, FINGERPRINT = "log.jsonl", "data", "data-words.json", "data-fingerprint"
OURS = {MANIFEST, CONFIG, WEIGHTS, CARD, GOLDEN, LOG, DATA, WORDS, FINGERPRINT, SHARED, SOURCE, TARGET}
"""Every name that training writes into a run's folder, beside the lock, the checkpoints and crash reports."""
LARGEST_CONFIG = 1_000_000
FLOATS, INTEGERS = {"F32", "BF16", "F16"}, {"I64"}
SIZES = ("d_model", "d_ff", "n_heads", "n_kv_heads", "d_head", "d_value", "encoder_layers", "decoder_layers")
WAVES_PER_NUMBER, WAVES_ALWAYS = 8, 1 << 22
"""How large the table of positions, which is made and not stored, may be beside the weights."""


@dataclass(frozen=True)
class Opened:
    """A model folder, checked and in memory."""

    path: Path
    experiment: Experiment
    tokenizers: Tokenizers
    model: EncoderDecoder
    about: dict[str, str | int]


def is_ours(name: str) -> bool:
    return name in OURS


def refuse_foreign(folder: Path) -> None:
    """Training writes into an empty folder or one of its own; `config.toml` is the first thing it writes. A model
    that was packed has settings too, but no run to go on with: another would take its place."""
    if (folder / CONFIG).exists():
        if (folder / MANIFEST).exists() and not any((folder / name).exists() for name in (FINGERPRINT, CHECKPOINTS)):
            raise UsageError(
                "holds a finished model without its run, which training would replace",
                file=folder,
                hint="choose another -o",
            )
        return
    for name in sorted(OURS):
        if (folder / name).exists():
            raise UsageError(
                "is there already, and this folder is not a run's", file=folder / name, hint="choose another -o"
            )


def forget(folder: Path) -> None:
    """A run that was refused before its first step leaves nothing, least of all the settings it was refused for:
    the next call would be held to them. Only for a folder that was no run's before this call."""
    with suppress(ClearheadError):  # what is told is why the run was refused
        for name in sorted(OURS, key=lambda name: name == CONFIG):  # which says whose folder it is, so it goes last
            if (folder / name).is_dir():
                disk.remove_tree(folder / name)
            else:
                disk.remove_file(folder / name)


def holds_finished(folder: Path, step: int) -> bool:
    """Is the model in this folder whole, and the one a run of that many steps came to?"""
    try:
        return verify(folder, needed=(CONFIG, WEIGHTS)).about.get("steps") == step
    except ModelFileError:
        return False


def write_model(
    folder: Path,
    experiment: Experiment,
    tokenizers: Tokenizers,
    weights: Weights,
    others: dict[str, bytes],
    about: dict[str, str | int],
) -> None:
    """Write or replace the finished model. The manifest is taken away first and comes back last, so that no mixture
    of old and new files is ever taken for whole."""
    files = {CONFIG: to_toml(experiment).encode(), WEIGHTS: tensor_bytes(weights), **tokenizers.files(), **others}
    manifest = Manifest.of({name: describe(data) for name, data in files.items()}, about)
    disk.require_space(folder, sum(map(len, files.values())))
    try:
        for name, data in files.items():
            disk.write_synced(folder / (name + PARTIAL), data)
            check_file(folder / (name + PARTIAL), manifest.files[name])
        disk.write_synced(folder / (MANIFEST + PARTIAL), to_bytes(manifest))
    except BaseException:
        for name in [*files, MANIFEST]:
            with suppress(ClearheadError):
                disk.remove_file(folder / (name + PARTIAL))
        raise
    disk.remove_file(folder / MANIFEST)
    disk.sync_folder(folder)
    for name in files:
        disk.rename(folder / (name + PARTIAL), folder / name)
    disk.sync_folder(folder)
    disk.rename(folder / (MANIFEST + PARTIAL), folder / MANIFEST)
    disk.sync_folder(folder)


def open_folder(path: Path) -> Opened:
    """Everything is checked before anything big is given memory: hashes, the weights' header, the settings, the
    vocabulary, and that the weights are those of the model the settings describe."""
    refuse_no_folder(path)
    refuse_unfinished(path)
    manifest = verify(path, needed=(CONFIG, WEIGHTS))
    header = check_tensors(path / WEIGHTS)
    experiment = read_config(path / CONFIG)
    for name in tokenizer_names(experiment.text):
        if name not in manifest.files:
            raise ModelFileError("is not in the manifest", file=path / name)
    tokenizers = load(path, experiment.text)
    if manifest.about.get("tokenizer") != tokenizers.fingerprint:
        raise ModelFileError(
            "the vocabulary is not the one these weights were trained with",
            file=path,
            hint="put back the tokenizer files that came with the model",
        )
    sizes = tokenizers.source.vocab_size, tokenizers.target.vocab_size
    refuse_other_shapes(header, experiment.model, sizes, path / WEIGHTS)
    with Undrawn():
        model = build(experiment.model, *sizes)
    put_weights(model, finite_tensors(path / WEIGHTS))
    return Opened(path, experiment, tokenizers, model.eval(), dict(manifest.about))


def refuse_no_folder(path: Path) -> None:
    try:
        if path.is_dir():
            return
        message = "is not a folder" if path.exists() else "does not exist"
    except (OSError, ValueError) as error:
        message = f"is not the name of a folder: {getattr(error, 'strerror', None) or error}"
    raise ModelFileError(message, file=str(path)[:200], hint="give the folder a model was trained into")


def refuse_unfinished(path: Path) -> None:
    """A run's folder before its end, and one of its checkpoints, look like models and are none yet."""
    if is_step(path.name) and (path / STATE).exists():
        raise ModelFileError("is a checkpoint, not a model", file=path, hint="give the run's folder, two levels above")
    if (path / CHECKPOINTS).is_dir() and not (path / MANIFEST).exists():
        raise ModelFileError(
            "holds a run that is not finished",
            file=path,
            hint="the same `clearhead train` command goes on; a smaller train.max_steps ends it earlier",
        )


def read_config(path: Path) -> Experiment:
    """config.toml of a folder that anybody may have made."""
    if path.stat().st_size > LARGEST_CONFIG:
        raise ModelFileError(f"has more than {LARGEST_CONFIG:,} bytes", file=path)
    try:
        return read_experiment(path)
    except UsageError as error:  # nobody typed this: the folder is what is wrong
        raise ModelFileError(error.message, file=path, line=error.line, field=error.field, hint=error.hint) from None
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"is not valid TOML: {str(error)[:200]}", file=path) from None


def refuse_other_shapes(header: Header, settings: ModelSettings, vocabularies: tuple[int, int], path: Path) -> None:
    """Names, shapes and types must be exactly those of the model the settings describe. That model is drawn up
    without memory first; so that even this takes no time, no size may be larger than the file has numbers."""
    numbers = sum(math.prod(shape) for _, shape in header.values())
    for name in SIZES:
        size = getattr(settings, name)
        if size is not None and size > numbers:
            raise ModelFileError(f"wants {size:,}; the weights are {numbers:,} numbers in all", file=path, field=name)
    if settings.max_len * settings.d_model > WAVES_PER_NUMBER * numbers + WAVES_ALWAYS:
        raise ModelFileError(
            f"wants {settings.max_len:,} positions for {numbers:,} weights", file=path, field="max_len"
        )
    try:
        with torch.device("meta"), Undrawn():
            wanted = {name: layout(tensor) for name, tensor in named_weights(build(settings, *vocabularies)).items()}
    except (RuntimeError, ValueError, OverflowError) as error:
        raise ModelFileError(f"config.toml describes no model: {str(error)[:200]}", file=path) from None
    for name in sorted(wanted.keys() | header.keys()):
        dtype, shape = header.get(name, ("", "none"))
        types, wanted_shape = wanted.get(name, (FLOATS, "no such tensor"))
        if shape != wanted_shape:
            raise ModelFileError(f"has shape {shape}, config.toml wants {wanted_shape}", file=path, field=name)
        if dtype not in types:
            raise ModelFileError(f"holds {dtype} numbers, not {' or '.join(sorted(types))}", file=path, field=name)


def layout(tensor: Tensor) -> tuple[set[str], tuple[int, ...]]:
    """The types a tensor may be stored in (narrow ones are widened on loading), and its shape."""
    return FLOATS if tensor.is_floating_point() else INTEGERS, tuple(tensor.shape)


def finite_tensors(path: Path) -> Weights:
    tensors = read_tensors(path)
    for name, tensor in tensors.items():
        if not tensor.isfinite().all():
            raise ModelFileError("holds numbers that are not finite", file=path, field=name)
    return tensors
