"""A model folder in another program's layout: whole or not there, and what stands in the way is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import safetensors.torch
import torch

from clearhead.data.synthetic import reverse
from clearhead.errors import MissingExtra, UsageError
from clearhead.files import verify
from clearhead.interchange import ctranslate
from clearhead.text.tokenizer import load_tokenizer
from clearhead.verbs.export import export
from clearhead.verbs.folder import open_folder
from clearhead.verbs.quiet import Quiet
from clearhead.verbs.train import train

SHAPE = {"d_model": 8, "d_ff": 8, "n_heads": 2, "encoder_layers": 1, "decoder_layers": 1, "max_len": 32}


def trained(folder: Path, **model: object) -> Path:
    pairs = folder / "pairs.tsv"
    pairs.write_text("".join(f"{a}\t{b}\n" for a, b in reverse(30, 1, length=4)), encoding="utf-8")
    table = {
        "files": [str(pairs)],
        "model": {**SHAPE, **model},
        "train": {"max_steps": 2, "threads": 1, "batch_tokens": 200},
        "validation": {"every_steps": 1, "decode_pairs": 1},
        "text": {"vocab_size": 270, "level": "character"},
    }
    train(table, folder / "run", Quiet())
    return folder / "run"


@pytest.fixture(scope="module")
def benched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("export"), norm_order="post", positions="sinusoidal-halves")


def test_a_folder_for_hugging_face(benched: Path, tmp_path: Path) -> None:
    said = export(benched, "hf", tmp_path / "out")
    opened = open_folder(benched)
    assert set(verify(tmp_path / "out").files) == {
        *("config.json", "generation_config.json", "model.safetensors", "vocab.json", "clearhead.tokenizer.json")
    }
    assert load_tokenizer(tmp_path / "out" / "clearhead.tokenizer.json").fingerprint == opened.tokenizers.fingerprint
    vocabulary = json.loads((tmp_path / "out" / "vocab.json").read_text(encoding="utf-8"))
    assert list(vocabulary.values()) == list(range(opened.tokenizers.source.vocab_size))
    stored = safetensors.torch.load_file(tmp_path / "out" / "model.safetensors")
    assert torch.equal(stored["model.shared.weight"], opened.model.output_weight)
    assert "6 files" not in said[0] and "5 files" in said[0]


def test_an_unknown_format_a_taken_name_a_foreign_model(benched: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean ctranslate2"):
        export(benched, "ctranslate", tmp_path / "out")
    (tmp_path / "taken").mkdir()
    with pytest.raises(UsageError, match="is there already"):
        export(benched, "hf", tmp_path / "taken")
    with pytest.raises(UsageError, match=r"model\.norm_order = pre"):
        export(trained(tmp_path), "hf", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_program_that_is_not_installed(benched: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(ctranslate.importlib, "import_module", missing)
    with pytest.raises(MissingExtra) as refused:
        export(benched, "ctranslate2", tmp_path / "out")
    assert refused.value.exit_code == 3 and "pip install" in str(refused.value)
    assert not list(tmp_path.iterdir())
