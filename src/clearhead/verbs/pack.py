"""The verb `pack`: from a run's folder to one that can be handed on.

Taken along: the weights (as they are, or in half the bytes), the vocabulary, the card, the built-in examples, and the
settings without the names of the files it was trained on. Left behind: log, checkpoints, optimiser, tokenised text.
What the vocabulary itself says of the training text cannot be left behind, so it is said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from clearhead.config import Experiment
from clearhead.config.load import to_toml
from clearhead.errors import UsageError
from clearhead.files import publish, verify
from clearhead.train.checkpoint import to_bytes
from clearhead.train.weights import copy_weights
from clearhead.verbs import golden
from clearhead.verbs.folder import CARD, CONFIG, GOLDEN, WEIGHTS, Opened, open_folder
from clearhead.verbs.tokenizers import tokenizer_names

OF_VOCABULARIES = {
    "subword": "its vocabulary holds pieces of words of the training text, common words whole",
    "word": "its vocabulary holds the words of the training text",
    "character": "its vocabulary holds the characters of the training text",
}


def pack(run: Path, out: Path, *, half: bool = False, notes: Mapping[str, bytes] | None = None) -> list[str]:
    """Write the folder `out`; returns what to tell a person. `half`: the weights in bfloat16, half the bytes; `notes`:
    files that go along, by name."""
    opened = open_folder(run)
    refuse_sentences(opened)
    if out.exists():
        raise UsageError("is there already", file=out, hint="choose another -o")
    names = {WEIGHTS, *tokenizer_names(opened.experiment.text), CARD, GOLDEN} & verify(run).files.keys()
    files: dict[str, bytes | Callable[[], bytes]] = {name: (run / name).read_bytes for name in sorted(names)}
    files |= {CONFIG: to_toml(without_paths(opened.experiment)).encode(), **(notes or {})}
    if half:
        files |= rounded(opened)
    manifest = publish(out, files, opened.about)
    open_folder(out)
    size = sum(entry.size for entry in manifest.files.values())
    told = OF_VOCABULARIES[opened.tokenizers.source.level]
    what = f"{len(manifest.files)} files and their manifest, {size:,} bytes"
    return [f"{out}: {what}; no log, no optimiser, no training text", f"  {told}"]


def rounded(opened: Opened) -> dict[str, bytes]:
    """The weights in bfloat16, and the outputs of those: what is opened again computes in float32."""
    weights = {n: t.bfloat16() if t.is_floating_point() else t for n, t in copy_weights(opened.model).items()}
    return {WEIGHTS: to_bytes(weights), GOLDEN: golden.make(opened.experiment, opened.tokenizers, weights)}


def refuse_sentences(opened: Opened) -> None:
    if "sentence" in (opened.tokenizers.source.level, opened.tokenizers.target.level):
        raise UsageError(
            "every token of this vocabulary is a whole sentence of the training text",
            file=opened.path,
            field="text.level",
            hint="train with text.level subword, word or character for a model to hand on",
        )


def without_paths(experiment: Experiment) -> Experiment:
    data = experiment.data.model_copy(update={"valid": ()})
    return experiment.model_copy(update={"files": (), "data": data})
