"""The peers' own Python environments: made once, kept in a cache folder, never mixed with ours.

torch comes first, in exactly the build that clearhead itself runs on here, so that no peer pulls another one in its
wake. A peer that cannot be installed is reported with the reason; the others go on.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

CACHE = Path.home() / ".cache" / "clearhead-bench"
MARKER = "installed.json"
MINUTES = 15


@dataclass(frozen=True)
class Recipe:
    """What to install, in this order; each item is one call of pip."""

    steps: tuple[tuple[str, ...], ...]
    shows: tuple[str, ...]
    """Packages whose versions are reported."""


def torch_build() -> str:
    return f"torch=={importlib.metadata.version('torch')}"


RECIPES = {
    "ctranslate2": Recipe((("ctranslate2", "numpy"),), ("ctranslate2",)),
    "huggingface": Recipe(
        ((torch_build(),), ("transformers", "accelerate", "safetensors")), ("transformers", "accelerate", "torch")
    ),
    "joeynmt": Recipe(((torch_build(),), ("joeynmt", "importlib_metadata", "sentencepiece<0.2")), ("joeynmt", "torch")),
}


@dataclass(frozen=True)
class Environment:
    """`python` is None when it could not be made; `note` says why, or what is in it."""

    name: str
    python: Path | None
    note: str

    @property
    def packages(self) -> Path:
        """Its folder of packages."""
        assert self.python is not None
        return next((self.python.parent.parent / "lib").glob("python*/site-packages"))


def fingerprint(recipe: Recipe) -> str:
    """A changed recipe is a new environment."""
    return hashlib.sha256(json.dumps([recipe.steps, sys.version_info[:2]]).encode()).hexdigest()[:16]


def prepare(name: str, folder: Path) -> Environment:
    """The environment of this peer, made if it is not there."""
    recipe, place = RECIPES[name], folder / name
    python = place / "bin" / "python"
    marker = place / MARKER
    if not (marker.exists() and json.loads(marker.read_text())["recipe"] == fingerprint(recipe)):
        try:
            make(place, python, recipe)
        except (subprocess.SubprocessError, OSError) as error:
            return Environment(name, None, reason(error))
    return Environment(name, python, json.loads(marker.read_text())["versions"])


def make(place: Path, python: Path, recipe: Recipe) -> None:
    shutil.rmtree(place, ignore_errors=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    call([sys.executable, "-m", "venv", str(place)])
    for step in recipe.steps:
        call([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *step])
    versions = ", ".join(f"{name} {version_of(python, name)}" for name in recipe.shows)
    (place / MARKER).write_text(json.dumps({"recipe": fingerprint(recipe), "versions": versions}))


def call(command: list[str]) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60 * MINUTES)
    return done.stdout.strip()


def version_of(python: Path, package: str) -> str:
    return call([str(python), "-c", f"import importlib.metadata as m; print(m.version({package!r}))"])


def reason(error: Exception) -> str:
    """The last thing pip said that is no warning."""
    if isinstance(error, subprocess.CalledProcessError):
        lines = [line for line in (error.stderr or "").splitlines() if line.strip() and "WARNING" not in line]
        return lines[-1].strip()[:300] if lines else f"left with code {error.returncode}"
    return str(error)[:300]
