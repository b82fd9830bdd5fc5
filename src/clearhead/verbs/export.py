"""The verb `export`: a model folder in the layout of another program.

The other program gets the weights and the list of tokens. How text is cut into tokens it cannot know: our tokenizer's
file goes along, under a name of its own, and `clearhead.text.tokenizer` reads it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from clearhead.errors import UsageError, nearest
from clearhead.files import publish
from clearhead.interchange import ctranslate, huggingface
from clearhead.interchange.vocabularies import token_names
from clearhead.train.weights import named_weights
from clearhead.verbs.folder import Opened, open_folder
from clearhead.verbs.pack import refuse_sentences

FORMATS: dict[str, ModuleType] = {"ctranslate2": ctranslate, "hf": huggingface}


def export(run: Path, to: str, out: Path) -> list[str]:
    """Write the folder `out`; returns what to tell a person."""
    if to not in FORMATS:
        likely = nearest(to, FORMATS)
        hint = f"did you mean {likely}?" if likely else " or ".join(FORMATS)
        raise UsageError(f"there is no format {to!r}", field="--to", hint=hint)
    if out.exists():
        raise UsageError("is there already", file=out, hint="choose another -o")
    opened = open_folder(run)
    refuse_sentences(opened)
    written = publish(out, contents(opened, to), {"kind": f"export {to}", **languages(opened)})
    size = sum(entry.size for entry in written.files.values())
    return [
        f"{out}: {len(written.files)} files, {size:,} bytes",
        "  token ids in, token ids out: the text is cut by clearhead.*.json, which clearhead.text.tokenizer reads",
    ]


def contents(opened: Opened, to: str) -> dict[str, bytes | Callable[[], bytes]]:
    """File name → content."""
    source = token_names(opened.tokenizers.source)
    target = source if opened.tokenizers.shared else token_names(opened.tokenizers.target)
    weights = named_weights(opened.model)
    files: dict[str, bytes | Callable[[], bytes]] = FORMATS[to].files(opened.experiment.model, weights, source, target)
    return {**files, **{f"clearhead.{name}": data for name, data in opened.tokenizers.files().items()}}


def languages(opened: Opened) -> dict[str, str | int]:
    return {side: opened.about[side] for side in ("source", "target") if side in opened.about}
