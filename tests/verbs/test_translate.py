"""What `translate` writes where, and what it refuses to write over."""

from __future__ import annotations

from copy import copy
from pathlib import Path

import pytest

from clearhead.cli import output
from clearhead.data.synthetic import reverse
from clearhead.errors import UsageError
from clearhead.verbs.model import Model, load
from clearhead.verbs.quiet import Quiet
from clearhead.verbs.train import train
from clearhead.verbs.translate import translate_file

TABLE = {
    "model": {"d_model": 8, "d_ff": 8, "n_heads": 2, "encoder_layers": 1, "decoder_layers": 1, "max_len": 32},
    "train": {"max_steps": 2, "threads": 1, "batch_tokens": 200},
    "data": {"valid_pairs": 4, "source": "en", "target": "de"},
    "validation": {"every_steps": 1, "decode_pairs": 1},
    "text": {"level": "character", "shared": False},
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    folder = tmp_path_factory.mktemp("translate")
    (folder / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in reverse(30, 1, length=4)), encoding="utf-8")
    train({**TABLE, "files": [str(folder / "pairs.tsv")]}, folder / "run", Quiet())
    return load(folder / "run")


def test_two_vocabularies_need_no_second_setting(model: Model) -> None:
    assert model.experiment.model.tie == "target"
    assert model.network.output_weight is model.network.target_embedding.table.weight


def test_a_document_is_not_written_over_itself(model: Model, tmp_path: Path) -> None:
    document, other = tmp_path / "in.txt", tmp_path / "link.txt"
    document.write_text("a b\n", encoding="utf-8")
    other.hardlink_to(document)
    for out in (document, other):
        with pytest.raises(UsageError, match="is the document itself"):
            translate_file(model, document, out, Quiet().say)
    assert document.read_text(encoding="utf-8") == "a b\n"
    assert "1 segments written" in translate_file(model, document, tmp_path / "out.txt", Quiet().say)


def test_nothing_left_to_translate_is_said(model: Model, tmp_path: Path) -> None:
    (tmp_path / "in.po").write_text('msgid ""\nmsgstr "Language: de\\n"\n\nmsgid "a"\nmsgstr "b"\n', encoding="utf-8")
    said = translate_file(model, tmp_path / "in.po", tmp_path / "out.po", Quiet().say)
    assert said.endswith("0 segments written: nothing in the document is left to translate")


def test_a_beam_is_a_search_whatever_the_model_does_by_itself(model: Model) -> None:
    """beam=3 alone asks for a search, beam=1 for the likeliest word each time; a method that is named stays."""
    for own in ("greedy", "beam", "sample"):
        decode = model.experiment.decode.model_copy(update={"method": own})
        other = copy(model)
        other.experiment = model.experiment.model_copy(update={"decode": decode})
        assert (other.settings(beam=3).method, other.settings(beam=1).method) == ("beam", "greedy")
        assert other.settings().method == own == other.settings(beam=3, method=own).method
        assert other.trace("a b", beam=3).provenance.output == "beam 3" and other.trace("a b", beam=3).tree


def test_several_outputs_carry_number_and_score(model: Model, capsys: pytest.CaptureFixture[str]) -> None:
    found = model.translations(["a b", "c"], model.settings(beam=2, n_best=2))
    output.write_translations(found, False, True, 10)
    lines = [line.split("\t", 2) for line in capsys.readouterr().out.splitlines()]
    assert [line[0] for line in lines] == ["11", "11", "12", "12"]
    assert [float(line[1]) for line in lines] == pytest.approx(
        [each.log_probability for translation in found for each in translation.outputs], abs=1e-4
    )


def test_a_trace_is_of_one_text(model: Model) -> None:
    with pytest.raises(UsageError, match="of one text, not of a list"):
        model.trace(["a b"])  # type: ignore[arg-type]
