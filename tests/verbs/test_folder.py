"""The model folder, written and opened. Spoilt ones are in tests/faults."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clearhead.data.synthetic import reverse
from clearhead.errors import UsageError
from clearhead.verbs import folder
from clearhead.verbs.folder import holds_finished, is_ours, open_folder, refuse_foreign
from clearhead.verbs.quiet import Quiet
from clearhead.verbs.train import train

NOT_LISTED = {"lock", "checkpoints"}


@pytest.fixture(scope="module", params=[{}, {"shared": False, "bpe_dropout": 0.1}], ids=["shared", "one each"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("folder")
    (root / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in reverse(30, 1, length=4)), encoding="utf-8")
    table = {
        "files": [str(root / "pairs.tsv")],
        "text": {"vocab_size": 270, **request.param},
        "model": {"d_model": 8, "d_ff": 8, "n_heads": 2, "encoder_layers": 1, "decoder_layers": 1, "max_len": 32}
        | {"tie": "target"},
        "train": {"max_steps": 2, "threads": 1, "batch_tokens": 200},
        "validation": {"every_steps": 1, "decode_pairs": 1},
    }
    train(table, root / "run", Quiet())
    return root / "run"


def test_every_name_is_known(run: Path) -> None:
    """What training writes is what may be swept after a crash, and nothing else."""
    assert all(is_ours(path.name) or path.name in NOT_LISTED for path in run.iterdir())
    assert not is_ours("thesis.tex") and not is_ours("lock")


def test_everything_but_the_run_itself_is_in_the_manifest(run: Path) -> None:
    listed = set(json.loads((run / "manifest.json").read_text())["files"])
    beside = NOT_LISTED | {folder.LOG, folder.DATA, folder.WORDS, folder.FINGERPRINT, "manifest.json"}
    assert {path.name for path in run.iterdir()} - beside == listed


def test_no_time_no_path_no_host(run: Path) -> None:
    import socket

    for name in ("manifest.json", "model.safetensors", "golden.json", "card.md"):
        content = (run / name).read_bytes()
        assert str(run.parent).encode() not in content and socket.gethostname().encode() not in content


def test_it_knows_what_run_it_is_of(run: Path) -> None:
    assert holds_finished(run, 2) and not holds_finished(run, 3) and not holds_finished(run.parent, 2)
    assert open_folder(run).about["steps"] == 2


def test_the_stored_outputs_are_of_built_in_sentences(run: Path) -> None:
    from clearhead.verbs.golden import INPUTS

    assert [example["input"] for example in json.loads((run / "golden.json").read_text())] == list(INPUTS)


@pytest.mark.parametrize("name", ["log.jsonl", "data", "tokenizer.json", "model.safetensors"])
def test_somebody_elses_folder_is_refused(name: str, tmp_path: Path) -> None:
    refuse_foreign(tmp_path)
    (tmp_path / "pairs.tsv").write_text("a\tb\n")
    refuse_foreign(tmp_path)
    (tmp_path / name).mkdir()
    with pytest.raises(UsageError, match="this folder is not a run's"):
        refuse_foreign(tmp_path)
