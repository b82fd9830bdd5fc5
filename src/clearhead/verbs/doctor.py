"""The verb `doctor`: what is installed, what is wrong, what to type."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch

import clearhead
from clearhead.errors import ClearheadError
from clearhead.native import build as native
from clearhead.verbs import golden
from clearhead.verbs.device import device
from clearhead.verbs.folder import GOLDEN, open_folder
from clearhead.verbs.resolve import fast_bfloat16

NEEDED = "torch numpy tokenizers safetensors pydantic tomli-w typer rich sacrebleu babel lxml"
OPTIONAL = {
    "ctranslate2": "pip install 'clearhead[export]'",
    "tensorboard": "pip install 'clearhead[tensorboard]'",
    "resvg-py": "pip install 'clearhead[png]'",
}


@dataclass(frozen=True)
class Finding:
    state: Literal["ok", "note", "missing", "ill"]
    what: str
    todo: str = ""

    def __str__(self) -> str:
        mark = {"ok": "ok     ", "note": "note   ", "missing": "MISSING", "ill": "ILL    "}[self.state]
        return f"{mark}  {self.what}" + (f"\n           → {self.todo}" if self.todo else "")

    def as_table(self) -> dict[str, Any]:
        return asdict(self)


def examine(model: Path | None = None) -> list[Finding]:
    findings = [*machine(), *packages()]
    return findings if model is None else [*findings, *model_health(model)]


def exit_code(findings: list[Finding]) -> int:
    states = {finding.state for finding in findings}
    return 2 if "ill" in states else 3 if "missing" in states else 0


def machine() -> Iterator[Finding]:
    yield Finding("ok", f"clearhead {clearhead.__version__}, Python {platform.python_version()}, {platform.system()}")
    capability = torch.backends.cpu.get_cpu_capability()
    yield Finding("ok", f"torch {torch.__version__}, {torch.get_num_threads()} threads, {capability}")
    if fast_bfloat16(device("auto")):
        yield Finding("ok", "products in bf16 are fast here: training uses them (train.precision)")
    else:
        yield Finding("note", "no fast bf16 on this processor: training uses float32")
    yield engine()
    if torch.cuda.is_available():
        yield Finding("ok", f"GPU: {torch.cuda.get_device_name()}")
    free = shutil.disk_usage(os.getcwd()).free
    state: Literal["ok", "note"] = "ok" if free > 1 << 30 else "note"
    yield Finding(state, f"{free / 2**30:.1f} GB free here", "" if state == "ok" else "checkpoints may not fit")
    if sys.getfilesystemencoding().lower() != "utf-8":
        yield Finding("note", f"file names are {sys.getfilesystemencoding()}", "export PYTHONUTF8=1")


def engine() -> Finding:
    """Builds it, where it can be and has not been."""
    if native.build() is not None and native.library() is not None:
        return Finding("ok", "the compiled engine: translating takes it (decode.compiled)")
    if os.environ.get(native.OFF) == "0":
        return Finding("note", f"the compiled engine is switched off ({native.OFF}=0): translating takes torch alone")
    todo = "" if native.compiler() else "install a C++ compiler, for example: apt install g++"
    return Finding("note", "no compiled engine (optional): translating takes torch alone and is slower", todo)


def packages() -> Iterator[Finding]:
    for name in NEEDED.split():
        try:
            yield Finding("ok", f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            yield Finding("missing", name, f"pip install {name}")
    for name, command in OPTIONAL.items():
        try:
            yield Finding("ok", f"{name} {importlib.metadata.version(name)} (optional)")
        except importlib.metadata.PackageNotFoundError:
            yield Finding("note", f"{name} is not installed (optional)", command)


def model_health(path: Path) -> Iterator[Finding]:
    """Hashes, shapes, vocabulary, and the stored outputs."""
    try:
        opened = open_folder(path)
        stored = golden.read(path / GOLDEN)
        changed = golden.differences(stored, opened.model, opened.tokenizers, opened.experiment.model.max_len)
    except ClearheadError as error:
        yield Finding("ill", f"{error.where}: {error.message}" if error.where else error.message, error.hint or "")
        return
    yield Finding("ok", f"{path}: every file is as its manifest says")
    if changed:
        yield Finding("ill", f"{path}: outputs differ from the stored ones:\n" + "\n".join(changed))
    else:
        yield Finding("ok", f"{path}: the {len(stored)} stored outputs come out again")
