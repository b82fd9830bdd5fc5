"""What stands between the files and the first step: rows the model can read, cut anew each epoch; held-out pairs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clearhead.data.store import Side
from clearhead.errors import DataError
from clearhead.train.loop import Stop
from clearhead.verbs import doctor, validation
from clearhead.verbs.quiet import Quiet
from clearhead.verbs.recut import Recut
from clearhead.verbs.train import Prepared, prepare, train

SHAPE = {"d_model": 8, "d_ff": 8, "n_heads": 2, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0}
TABLE: dict[str, Any] = {
    "text": {"vocab_size": 400},
    "model": SHAPE,
    "train": {"max_steps": 6, "threads": 1, "batch_tokens": 400, "precision": "float32"},
    "validation": {"every_steps": 6, "metric": "loss", "decode_pairs": 0},
}
SHORT = [(f"in {n} days", f"in {n} Tagen") for n in range(40)]
LONG = [(f"in {n} days and many more days than that", f"in {n} Tagen und noch vielen Tagen mehr") for n in range(9)]

Table = Callable[..., dict[str, Any]]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """A recipe for these pairs; sections may be changed."""

    def make(pairs: list[tuple[str, str]], **changes: dict[str, Any]) -> dict[str, Any]:
        path = tmp_path / "pairs.tsv"
        path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
        sections = {name: {**TABLE.get(name, {}), **changes.get(name, {})} for name in (*TABLE, "data")}
        return {"files": [str(path)], **sections}

    return make


def prepared(table: dict[str, Any], folder: Path, said: list[str] | None = None) -> Prepared:
    folder.mkdir()
    return prepare(table, folder, Quiet([].append if said is None else said.append), Stop())


@pytest.fixture
def held_out(tmp_path: Path) -> dict[str, Any]:
    """A file of short pairs to validate on."""
    (tmp_path / "valid.tsv").write_text("in many days\tin vielen Tagen\n", encoding="utf-8")
    return {"valid": [str(tmp_path / "valid.tsv")]}


@pytest.mark.parametrize(("max_tokens", "max_len"), [(256, 7), (6, 64)])
@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_rows_the_model_cannot_read_are_left_out_and_counted(
    max_tokens: int, max_len: int, dropout: float, table: Table, held_out: dict[str, Any], tmp_path: Path
) -> None:
    """Whether the model or the settings want them shorter: six tokens and their end mark are seven places."""
    said: list[str] = []
    data = {**held_out, "max_tokens": max_tokens}
    changes = {"model": {"max_len": max_len}, "data": data, "text": {"bpe_dropout": dropout}}
    found = prepared(table(SHORT + LONG, **changes), tmp_path / "run", said)
    assert "9 pairs left out: more than 6 tokens on a side" in said
    assert len(found.batches.store) == len(SHORT)
    whole = train(table(SHORT + LONG, **changes), tmp_path / "whole", Quiet())
    assert whole.steps == 6 and model_health_is_good(whole.folder)


def model_health_is_good(folder: Path) -> bool:
    """The built-in sentences, which are longer, come out again."""
    return [finding.state for finding in doctor.model_health(folder)] == ["ok", "ok"]


def test_nothing_is_said_where_all_fit(table: Table, tmp_path: Path) -> None:
    said: list[str] = []
    prepared(table(SHORT), tmp_path / "run", said)
    assert not any("left out" in text for text in said)


def test_dropout_never_cuts_a_row_beyond_what_the_model_reads(table: Table, tmp_path: Path) -> None:
    """Such a row is cut as without dropout; all others vary. And a run with much dropout comes to its end."""
    text, model = {"bpe_dropout": 0.6}, {"max_len": 14, "positions": "learned"}
    found = prepared(table(SHORT + LONG, text=text, model=model), tmp_path / "run")
    recut = found.batches.sampler
    assert isinstance(recut, Recut)
    rows = range(len(found.batches.store))
    cuts = [[tuple(recut.ids("source", row, epoch).tolist()) for epoch in range(8)] for row in rows]
    assert max(len(ids) for row in cuts for ids in row) <= 13
    tokenizer = found.tokenizers.source
    plain = [tuple(tokenizer.encode(tokenizer.decode(row[0]))) for row in cuts]
    assert any(len(set(row)) == 1 and row[0] == ids and len(ids) > 8 for row, ids in zip(cuts, plain, strict=True))
    assert sum(len(set(row)) > 1 for row in cuts) > len(SHORT) / 2
    assert train(table(SHORT + LONG, text=text, model=model), tmp_path / "whole", Quiet()).steps == 6


def test_a_cut_counts_side_row_and_epoch(table: Table, held_out: dict[str, Any], tmp_path: Path) -> None:
    """Equal texts on both sides and in every row: whatever differs was drawn for another place."""
    same = [("in many days and many more", "in many days and many more")] * 20
    changes: dict[str, Any] = {"text": {"bpe_dropout": 0.5}, "data": {**held_out, "gate": "off"}}
    found = prepared(table(same, **changes), tmp_path / "run")
    recut = found.batches.sampler
    assert isinstance(recut, Recut)

    def cut(side: Side, row: int, epoch: int) -> tuple[int, ...]:
        return tuple(recut.ids(side, row, epoch).tolist())

    assert cut("source", 0, 0) == cut("source", 0, 0)
    assert len({cut("source", 0, epoch) for epoch in range(12)}) > 6
    assert len({cut("source", row, 0) for row in range(12)}) > 6
    spell = found.tokenizers.source.decode
    assert {spell(cut("source", row, 3)) for row in range(12)} == {same[0][0]}
    places = [(row, epoch) for row in range(6) for epoch in range(6)]
    assert sum(cut("source", *place) == cut("target", *place) for place in places) < 12


def test_held_out_pairs_that_look_wrong_are_told(table: Table, tmp_path: Path) -> None:
    valid = tmp_path / "valid.tsv"
    valid.write_text("in many days\tin vielen Tagen\nin no days\t \n", encoding="utf-8")
    said: list[str] = []
    found = prepared(table(SHORT, data={"valid": [str(valid)]}), tmp_path / "run", said)
    assert len(found.corpus.valid) == 2
    assert f"held out: {valid}: TSV, columns 1 → 2" in said
    where = f"the first is {valid}:2"
    assert f"held out: 1 of 2 pairs scored, but to be looked at: empty side; {where}" in said


def test_held_out_pairs_that_all_are_too_long_are_an_error(table: Table, tmp_path: Path) -> None:
    valid = tmp_path / "valid.tsv"
    valid.write_text("".join(f"{source}\t{target}\n" for source, target in LONG), encoding="utf-8")
    with pytest.raises(DataError, match="every held-out pair has more than 6 tokens on a side") as caught:
        prepared(table(SHORT, model={"max_len": 7}, data={"valid": [str(valid)]}), tmp_path / "run")
    assert "data.valid" in str(caught.value)


def test_more_pairs_may_be_decoded_than_are_taken_for_the_loss(
    table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validation, "MOST_FOR_LOSS", 2)
    judged = {"decode_pairs": 4, "metric": "chrf"}
    found = prepared(table(SHORT, validation=judged, data={"valid_pairs": 4}), tmp_path / "run")
    score = found.training.validate(found.training.model.eval(), 3)
    assert set(score.scores) == {"bleu", "chrf", "exact"} and score.sample is not None
    assert score.sample[0] == found.corpus.valid[3][0]
