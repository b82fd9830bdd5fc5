"""Model folders are data: whatever stands in them, opening gives a model or one of our errors, soon, in little memory.

Each case is opened in this process, under a limit on memory; what takes more than a second of processor time fails.
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
import re
import resource
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch

from clearhead.errors import ClearheadError, ModelFileError
from clearhead.verbs.doctor import model_health
from clearhead.verbs.folder import open_folder
from clearhead.verbs.model import Model
from clearhead.verbs.pack import pack

SECONDS, MEMORY = 1.0, 400 << 20
CASES, MANY = 500, 12_000
CODE_FROM_DATA = re.compile(r"pickle\.load|import (pickle|marshal|shelve)|(?<![\w.])(torch\.load|eval|exec)\(")


@pytest.fixture(scope="module")
def mutations() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mutations", Path(__file__).with_name("mutations.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def good(finished_run: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("good") / "packed"
    pack(finished_run, out)
    return {path.name: path.read_bytes() for path in out.iterdir()}


@pytest.fixture
def little_memory() -> Iterator[None]:
    """No more address space than now and a little."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def lay(files: dict[str, bytes], folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


def attempt(folder: Path) -> str:
    """Open it, and use it if it opens: what became of it."""
    try:
        model = Model(open_folder(folder))
        model.translate("a b", beam=1, method="greedy", max_ratio=1.0, max_extra=3, n_best=1)
    except ClearheadError as error:
        assert len(str(error)) < 30_000
        return type(error).__name__
    return "opened"


@pytest.mark.parametrize("cases", [CASES, pytest.param(MANY, marks=pytest.mark.slow)])
def test_spoilt_folders(
    cases: int, good: dict[str, bytes], mutations: ModuleType, little_memory: None, tmp_path: Path
) -> None:
    """Only our errors come out; the folder itself opens, and so do some spoilt ones: not everything is refused."""
    assert attempt(lay(good, tmp_path / "model")) == "opened"
    became: Counter[str] = Counter()
    slowest = 0.0
    for case in range(cases):
        files, what = mutations.spoil(good, random.Random(cases * 1_000_000 + case))
        folder = lay(files, tmp_path / "model")
        start = time.process_time()
        try:
            became[attempt(folder)] += 1
        except BaseException as error:
            raise AssertionError(f"case {case}, {what}: {type(error).__name__}: {str(error)[:500]}") from error
        slowest = max(slowest, spent := time.process_time() - start)
        assert spent < SECONDS, f"case {case}, {what}: {spent:.2f} s"
    print(f"{cases} cases: {dict(became)}, slowest {slowest:.2f} s")
    assert became["ModelFileError"] > cases / 3 and became["opened"] > cases / 50
    assert set(became) <= {"ModelFileError", "opened"}


@pytest.mark.parametrize("cases", [60, pytest.param(1500, marks=pytest.mark.slow)])
def test_the_doctor_of_spoilt_folders(
    cases: int, good: dict[str, bytes], mutations: ModuleType, little_memory: None, tmp_path: Path
) -> None:
    """`doctor` reads golden.json too, and answers with findings."""
    chance = random.Random(cases)
    for _ in range(cases):
        files = dict(good)
        only = {"golden.json": files["golden.json"]}
        chance.choice(mutations.RAW)(only, chance)
        files.pop("golden.json")
        files |= only
        files.pop("manifest.json")
        mutations.sign(files)
        assert all(finding.state in ("ok", "ill") for finding in model_health(lay(files, tmp_path / "model")))


def test_the_doctor_tells_what_is_ill_and_what_to_do(good: dict[str, bytes], tmp_path: Path) -> None:
    files = {**good, "manifest.json": b"{"}
    (found,) = model_health(lay(files, tmp_path / "model"))
    assert found.state == "ill" and found.what.startswith(f"{tmp_path}/model/manifest.json: is not valid JSON")
    assert found.todo == "copy the whole folder again from where it came from"


def edited(good: dict[str, bytes], mutations: ModuleType, folder: Path, setting: str) -> Path:
    """The good folder with one line of config.toml changed, and signed."""
    name = setting.split(" = ")[0]
    lines = good["config.toml"].decode().split("\n")
    kept = [line for line in lines if not line.startswith(f"{name} = ")]
    at = kept.index("[model]") + 1
    files = {**good, "config.toml": "\n".join([*kept[:at], setting, *kept[at:]]).encode()}
    mutations.sign(files)
    return lay(files, folder)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("d_model = 1000000000", "d_model: wants 1,000,000,000; the weights are 10,080 numbers in all"),
        (f"d_ff = {10**400}", "d_ff"),
        ("n_heads = 100000000", "n_heads"),
        ("d_head = 5000000", "d_head"),
        ("encoder_layers = 256", "has shape none, config.toml wants (16,)"),
        ("max_len = 1000000", "max_len: wants 1,000,000 positions for 10,080 weights"),
        ("d_ff = 33", "has shape (16, 32), config.toml wants (16, 33)"),
        ('positions = "learned"', "config.toml wants (64, 16)"),
        ('kind = "recurrent"', "has shape"),
    ],
)
def test_shapes_are_compared_before_memory_is_taken(
    setting: str,
    words: str,
    good: dict[str, bytes],
    mutations: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def never(*args: object) -> None:
        raise AssertionError("weights were read")

    monkeypatch.setattr("clearhead.verbs.folder.read_tensors", never)
    with pytest.raises(ModelFileError) as caught:
        open_folder(edited(good, mutations, tmp_path / "model", setting))
    assert words in str(caught.value)


def test_other_types_are_refused_and_narrow_ones_widened(
    good: dict[str, bytes], mutations: ModuleType, tmp_path: Path
) -> None:
    from safetensors.torch import load, save

    tensors = load(good["model.safetensors"])
    for dtype, fits in ((torch.bfloat16, True), (torch.float16, True), (torch.float64, False), (torch.int32, False)):
        files = {**good, "model.safetensors": save({name: t.to(dtype) for name, t in tensors.items()})}
        mutations.sign(files)
        assert attempt(lay(files, tmp_path / "model")) == ("opened" if fits else "ModelFileError")


def test_another_vocabulary_of_the_same_size_is_refused(
    good: dict[str, bytes], mutations: ModuleType, tmp_path: Path
) -> None:
    """The weights fit it, the file is whole and signed; only the fingerprint knows."""
    content = json.loads(good["tokenizer.json"])
    content["pieces"][-2:] = content["pieces"][:-3:-1]
    content["merges"] = []
    files = {**good, "tokenizer.json": json.dumps(content).encode()}
    mutations.sign(files)
    manifest = json.loads(files["manifest.json"])
    manifest["about"]["tokenizer"] = json.loads(good["manifest.json"])["about"]["tokenizer"]
    files["manifest.json"] = json.dumps(manifest).encode()
    with pytest.raises(ModelFileError, match="the vocabulary is not the one these weights were trained with"):
        open_folder(lay(files, tmp_path / "model"))


def as_link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def as_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def as_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("name", ["manifest.json", "config.toml", "model.safetensors", "tokenizer.json", "card.md"])
@pytest.mark.parametrize("change", [as_link, as_folder, as_pipe, Path.unlink])
def test_things_in_place_of_files(
    name: str, change: Callable[[Path], None], good: dict[str, bytes], tmp_path: Path
) -> None:
    folder = lay(good, tmp_path / "model")
    change(folder / name)
    with pytest.raises(ModelFileError) as caught:
        open_folder(folder)
    assert name in str(caught.value)


@pytest.mark.parametrize(
    ("content", "word"),
    [(b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"), (b"<!doctype html><html>", "web page")],
)
@pytest.mark.parametrize("signed", [False, True])
def test_what_stands_in_place_of_the_weights_is_named(
    content: bytes, word: str, signed: bool, good: dict[str, bytes], mutations: ModuleType, tmp_path: Path
) -> None:
    files = {**good, "model.safetensors": content}
    if signed:
        mutations.sign(files)
    with pytest.raises(ModelFileError, match=word):
        open_folder(lay(files, tmp_path / "model"))


def test_nothing_is_ever_unpickled() -> None:
    """No file of the package names pickle, torch.load, eval or exec."""
    import clearhead

    package = Path(str(clearhead.__file__)).parent
    for path in package.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not (found := CODE_FROM_DATA.search(text)), f"{path}: {found}"
    with pytest.raises(ModelFileError):
        open_folder(package)
