"""A packed model: the same model, and nothing of what it was made from that can be left behind."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from clearhead.config.load import read_experiment
from clearhead.data.synthetic import reverse
from clearhead.errors import UsageError
from clearhead.train.weights import copy_weights
from clearhead.verbs.doctor import model_health
from clearhead.verbs.folder import open_folder
from clearhead.verbs.model import load
from clearhead.verbs.pack import pack
from clearhead.verbs.quiet import Quiet
from clearhead.verbs.train import train

SECRET = "zxqv"
TABLE = {
    "model": {"d_model": 8, "d_ff": 8, "n_heads": 2, "encoder_layers": 1, "decoder_layers": 1, "max_len": 32},
    "train": {"max_steps": 2, "threads": 1, "batch_tokens": 200},
    "validation": {"every_steps": 1, "decode_pairs": 1},
    "text": {"vocab_size": 270},
}


def trained(folder: Path, **text: str) -> Path:
    pairs, valid = folder / f"pairs-{SECRET}.tsv", folder / f"valid-{SECRET}.tsv"
    for path, seed in ((pairs, 1), (valid, 2)):
        path.write_text("".join(f"{a} {SECRET}\t{b}\n" for a, b in reverse(20, seed, length=4)), encoding="utf-8")
    table = {**TABLE, "files": [str(pairs)], "data": {"valid": [str(valid)]}, "text": {**TABLE["text"], **text}}
    train(table, folder / "run", Quiet())
    return folder / "run"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("pack"), level="character")


def test_it_is_the_same_model(run: Path, tmp_path: Path) -> None:
    pack(run, tmp_path / "out")
    ours, packed = copy_weights(open_folder(run).model), copy_weights(open_folder(tmp_path / "out").model)
    assert all(torch.equal(ours[name], packed[name]) for name in ours) and ours.keys() == packed.keys()
    assert load(run).translate("a b") == load(tmp_path / "out").translate("a b")
    assert [finding.state for finding in model_health(tmp_path / "out")] == ["ok", "ok"]


def test_half_the_bytes(run: Path, tmp_path: Path) -> None:
    """Every weight rounded to 8 bits of mantissa; the stored outputs are those of the rounded weights."""
    pack(run, tmp_path / "whole")
    pack(run, tmp_path / "half", half=True, notes={"NOTICE": b"made of nothing"})
    ours, packed = (copy_weights(open_folder(tmp_path / name).model) for name in ("whole", "half"))
    assert all(torch.equal(ours[name].bfloat16().float(), packed[name]) for name in ours)
    assert any(not torch.equal(ours[name], packed[name]) for name in ours)
    sizes = [sum(4 * t.numel() for t in ours.values()), sum(2 * t.numel() for t in packed.values())]
    headers = [(tmp_path / name / "model.safetensors").stat().st_size for name in ("whole", "half")]
    assert 0 < headers[1] - sizes[1] < headers[0] - sizes[0] + 100 and headers[1] < headers[0]
    assert [finding.state for finding in model_health(tmp_path / "half")] == ["ok", "ok"]
    assert (tmp_path / "half" / "NOTICE").read_bytes() == b"made of nothing"


def test_no_log_no_optimiser_no_text_no_paths(run: Path, tmp_path: Path) -> None:
    """A word that stands in every training sentence, in the files' names and the folder's is in none of its files."""
    assert any(SECRET.encode() in path.read_bytes() for path in run.rglob("*") if path.is_file())
    said = pack(run, tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        *("card.md", "config.toml", "golden.json", "manifest.json", "model.safetensors", "tokenizer.json")
    ]
    for path in (tmp_path / "out").iterdir():
        assert SECRET.encode() not in path.read_bytes() and str(run.parent).encode() not in path.read_bytes()
    experiment = read_experiment(tmp_path / "out" / "config.toml")
    assert experiment.files == () and experiment.data.valid == () and experiment.train.max_steps == 2
    assert "no training text" in said[0] and "characters of the training text" in said[1]


def test_equal_models_make_equal_folders(run: Path, tmp_path: Path) -> None:
    pack(run, tmp_path / "one")
    pack(tmp_path / "one", tmp_path / "two")
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_nothing_is_overwritten(run: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("x")
    with pytest.raises(UsageError, match="is there already"):
        pack(run, tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine"]


def test_a_vocabulary_of_sentences_is_not_handed_on(tmp_path: Path) -> None:
    run = trained(tmp_path, level="sentence")
    with pytest.raises(UsageError, match="a whole sentence of the training text"):
        pack(run, tmp_path / "out")
    assert not (tmp_path / "out").exists()
