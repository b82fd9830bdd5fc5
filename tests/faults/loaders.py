"""Every function that reads bytes from elsewhere, by name, as a function of these bytes. Not a test: test_corpus.py
runs the kept inputs through them, fuzz_loaders.py looks for new ones.

A loader returns, or raises one of our errors; anything else is a finding.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from clearhead.config import DataSettings
from clearhead.data.documents import open_document
from clearhead.data.readers.read import open_pairs
from clearhead.errors import ClearheadError
from clearhead.files import check_tensors, read_manifest
from clearhead.text.tokenizer import load_tokenizer
from clearhead.train.checkpoint import read_state
from clearhead.verbs import golden
from clearhead.verbs.folder import read_config

Loader = Callable[[Path], object]
MOST_PAIRS = 1000


def pairs(path: Path) -> object:
    return [pair for pair, _ in zip(open_pairs([path], DataSettings()), range(MOST_PAIRS), strict=False)]


def document(path: Path) -> object:
    """Opened, and written again as it was."""
    found = open_document(path, source="en", target="de")
    found.write([segment.text for segment in found.segments], path.with_name(f"written{path.suffix}"))
    return found


LOADERS: dict[str, tuple[str, Loader]] = {
    # name: the file's name, what reads it
    "weights": ("model.safetensors", check_tensors),
    "manifest": ("manifest.json", lambda path: read_manifest(path.parent)),
    "config": ("config.toml", read_config),
    "tokenizer": ("tokenizer.json", lambda path: load_tokenizer(path).encode("a b")),
    "state": ("state.json", read_state),
    "golden": ("golden.json", golden.read),
    "tsv": ("pairs.tsv", pairs),
    "jsonl": ("pairs.jsonl", pairs),
    "tmx": ("pairs.tmx", pairs),
    "po": ("pairs.po", pairs),
    "xliff": ("pairs.xlf", pairs),
    "tmx-document": ("text.tmx", document),
    "po-document": ("text.po", document),
    "xliff-document": ("text.xlf", document),
}


def load(name: str, data: bytes, folder: Path) -> str:
    """What became of it: "read" or "refused"."""
    file, loader = LOADERS[name]
    path = folder / file
    path.write_bytes(data)
    try:
        loader(path)
    except ClearheadError as error:
        assert str(error) and len(str(error)) < 30_000
        return "refused"
    return "read"
