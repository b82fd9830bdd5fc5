"""Every bad input: a message that says where, what and the way out; the right exit code; nothing half-written.

Most go through the command line's own `main` in this process; a few through real processes. No traceback, ever.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import clearhead
from clearhead.cli.main import main
from clearhead.verbs import plan

COMMAND = [sys.executable, "-m", "clearhead.cli.main"]
GOOD = "".join(f"a {c}\t{c} a\n" for c in "bcdefghijklmnopqrst").encode()
SMALL = ("--set", "train.max_steps=2", "--set", "model.d_model=8", "--set", "model.n_heads=2", "--set", "model.d_ff=8")
TINY = (*SMALL, "--set", "text.vocab_size=270", "--set", "validation.decode_pairs=1", "--set", "train.threads=1")


class Said(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """`clearhead WORDS…` in this process."""

    def run(*words: str | Path, stdin: bytes = b"") -> Said:
        monkeypatch.setattr(sys, "argv", ["clearhead", *map(str, words)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as left:
            main()
        out, err = capsys.readouterr()
        assert "Traceback" not in err and isinstance(left.value.code, int | None)
        return Said(left.value.code or 0, out, err)

    return run


# --- pairs to train on --------------------------------------------------------------------------------------------

FILES: dict[str, tuple[dict[str, bytes], list[str]]] = {
    # what it is: files, and words the message must hold
    "empty": ({"p.tsv": b""}, ["p.tsv", "is empty"]),
    "blank": ({"p.tsv": b"\n \n\t\n\n"}, ["p.tsv", "nothing but blank lines"]),
    "one side": ({"p.txt": b"one\ntwo\nthree\n"}, ["p.txt", "one side only", "→"]),
    "unpaired": ({"p.en": b"a\nb\nc\n", "p.de": b"a\nb\n"}, ["3", "2", "p.en", "p.de", "→"]),
    "one line too many": ({"p.en": b"a\nb\nc\nd\n", "p.de": b"a\nb\nc\n"}, ["4", "3", "→"]),
    "not UTF-8": ({"p.tsv": b"a b\tb a\nc \xe9\tx y\n" + GOOD}, ["p.tsv:2", "0xE9", "offset 10", "iconv"]),
    "UTF-16": ({"p.tsv": "a\tb\n".encode("utf-16")}, ["p.tsv", "UTF-16", "iconv"]),
    "carriage returns": ({"p.tsv": b"a\tb\rc\td\re\tf\r"}, ["p.tsv", "carriage return", "tr "]),
    "a spreadsheet": ({"p.tsv": b"PK\x03\x04" + b"\0" * 80}, ["p.tsv", "zip archive or an office document", "→"]),
    "a web page": ({"p.tsv": b"<!doctype html><html></html>"}, ["p.tsv", "web page"]),
    "a pointer": ({"p.tsv": b"version https://git-lfs.github.com/spec/v1\noid x\n"}, ["p.tsv", "Git-LFS pointer"]),
    "comma-separated": ({"p.csv": b"a,b\nc,d\n"}, ["p.csv", "comma-separated", "→"]),
    "torn gzip": ({"p.tsv.gz": gzip.compress(GOOD)[:-9]}, ["p.tsv.gz", "gzip", "→"]),
    "broken JSON": ({"p.jsonl": b'{"a": "x", "b": "y"}\n{"a": "x"\n'}, ["p.jsonl:2", "→"]),
    "broken XML": ({"p.tmx": b"<?xml version='1.0'?><tmx><body><tu></body></tmx>"}, ["p.tmx"]),
    "entities": (
        {"p.tmx": b'<?xml version="1.0"?><!DOCTYPE tmx [<!ENTITY a "aa">]><tmx version="1.4"><body/></tmx>'},
        ["p.tmx"],
    ),
    "one pair": ({"p.tsv": b"a b\tb c\n"}, ["p.tsv", "1 usable pairs", "two are the least", "clearhead data check"]),
    "one pair many times": ({"p.tsv": b"a b\tb c\n" * 20}, ["p.tsv", "no pair is left to learn from", "all the same"]),
    "a JSON list": ({"p.json": b'[{"en": "a", "de": "b"}]\n'}, ["p.json:1", "one record per line", "jq"]),
}


@pytest.mark.parametrize("what", FILES)
def test_files_of_pairs(what: str, cli: Callable[..., Said], tmp_path: Path) -> None:
    files, words = FILES[what]
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    said = cli("train", *(tmp_path / name for name in files), "-o", tmp_path / "run", "--quiet")
    assert said.code == 2 and said.out == "" and said.err.startswith("error: ")
    assert all(word in said.err for word in words), said.err
    assert not (tmp_path / "run").exists()
    checked = cli("data", "check", *(tmp_path / name for name in files))
    assert checked.code in (0, 2)


@pytest.mark.parametrize(
    ("change", "same"),
    [
        (lambda good: b"\xef\xbb\xbf" + good, True),
        (lambda good: good.replace(b"\n", b"\r\n"), True),
        (lambda good: good.rstrip(b"\n"), True),
        (lambda good: good.replace(b"a b", "a\u2028b \x0b\x0c\x00\u200b\u202e e\u0301".encode()), False),
        (lambda good: good + b"\xf0\x9f\x98\x80\t\xf0\x9f\x98\x80\n" + b"...\t!!!\n", False),
        (lambda good: good + b"x" * 1_000_000 + b"\ty\n", False),
    ],
    ids=["BOM", "CRLF", "no last newline", "odd characters", "no letters", "a megabyte"],
)
def test_odd_but_readable(
    change: Callable[[bytes], bytes], same: bool, cli: Callable[..., Said], tmp_path: Path
) -> None:
    """They train; what is only the file's dress makes the same vocabulary and the same model."""
    for name, content in (("plain", GOOD), ("odd", change(GOOD))):
        (tmp_path / f"{name}.tsv").write_bytes(content)
        said = cli("train", tmp_path / f"{name}.tsv", "-o", tmp_path / name, "--quiet", *TINY)
        assert said.code == 0, said.err
    for file in ("tokenizer.json", "model.safetensors") if same else ():
        assert (tmp_path / "plain" / file).read_bytes() == (tmp_path / "odd" / file).read_bytes()


# --- commands and settings ----------------------------------------------------------------------------------------


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    (tmp_path / "pairs.tsv").write_bytes(GOOD)
    return tmp_path / "pairs.tsv"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--set", "train.learning_rate=1"], ["train.learning_rate", "did you mean"]),
        (["--set", "train.lr"], ["is not NAME=VALUE", "→"]),
        (["--set", "train.lr=fast"], ["train.lr", "'fast'"]),
        (["--set", "train.lr=-1"], ["train.lr", "greater than 0", "-1"]),
        (["--set", "train.lr=nan"], ["train.lr", "finite"]),
        (["--set", "model.d_model=30"], ["d_model 30 is not divisible by n_heads 4"]),
        (["--set", "text.shared=false", "--set", "model.tie=all"], ['model.tie = "target"']),
        (["--size", "huge"], ["huge", "tiny, small, base, big"]),
        (["--columns", "1,9"], ["9", "pairs.tsv"]),
        (["--valid", "nowhere.tsv"], ["nowhere.tsv", "there is no such file"]),
        (["--set", "train=5"], ["unknown setting train", "one of them is train."]),
        (["--set", "trian=5"], ["did you mean train?"]),
        (["--set", "max_steps=5"], ["did you mean train.max_steps?"]),
        (["--set", "train.word_dropout=0.1"], ["did you mean model.word_dropout?"]),
        (["--set", "model.heads=2"], ["did you mean model.n_heads?"]),
        (["--set", "train.max_steps=ten"], ["train.max_steps: must be a whole number, not 'ten'"]),
        (["--set", "train.betas=[0.9]"], ["train.betas.1: is missing"]),
        (["--set", "train.betas=[1, 2, 3]"], ["train.betas: must be at most 2 values, not [1, 2, 3]"]),
        (["--set", "text.shared=perhaps"], ["text.shared: must be true or false, not 'perhaps'"]),
        (["--set", "train.threads=5000"], ["train.threads: must be less than or equal to 1024, not 5000"]),
        (["--max-seconds", "soon"], ["soon"]),
        (["--sise", "tiny"], ["--sise"]),
    ],
    ids=lambda value: "_".join(value) if isinstance(value, list) else None,
)
def test_settings(options: list[str], words: list[str], cli: Callable[..., Said], pairs: Path, tmp_path: Path) -> None:
    said = cli("train", pairs, "-o", tmp_path / "run", "--quiet", *options)
    assert said.code == 2 and said.out == ""
    assert all(word in said.err for word in words), said.err
    assert not (tmp_path / "run").exists()


def test_a_refused_run_holds_nobody_to_its_settings(cli: Callable[..., Said], pairs: Path, tmp_path: Path) -> None:
    """Refused when all was prepared but the batches: the same folder takes the mended command."""
    said = cli("train", pairs, "-o", tmp_path / "run", "--quiet", *TINY, "--set", "train.batch_tokens=2")
    assert said.code == 2 and "train.batch_tokens" in said.err and "raise it to 4 or more\n" in said.err
    assert not (tmp_path / "run").exists()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine.txt").write_text("my own notes")
    assert cli("train", pairs, "-o", tmp_path / "run", *TINY, "--set", "train.batch_tokens=2").code == 2
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["lock", "mine.txt"]
    said = cli("train", pairs, "-o", tmp_path / "run", "--quiet", *TINY)
    assert said.code == 0, said.err
    said = cli("train", pairs, "-o", tmp_path / "run", "--quiet", *TINY, "--set", "train.batch_tokens=2")
    assert said.code == 2 and "train.batch_tokens: 4096 → 2" in said.err
    assert cli("translate", tmp_path / "run", "a b").code == 0


def test_pairs_that_are_held_out_too_are_told(cli: Callable[..., Said], pairs: Path, tmp_path: Path) -> None:
    said = cli("train", pairs, "-o", tmp_path / "run", *TINY, "--valid", pairs)
    assert said.code == 2 and "no pair is left to learn from" in said.err and "hold out other pairs" in said.err
    (tmp_path / "valid.tsv").write_bytes(b"".join(GOOD.splitlines(keepends=True)[:3]))
    said = cli("train", pairs, "-o", tmp_path / "my run", *TINY, "--valid", tmp_path / "valid.tsv")
    assert said.code == 0 and "3 pairs left out: the same are held out for validation" in said.err
    assert f"clearhead translate '{tmp_path}/my run'" in said.out


def test_a_run_is_held_to_what_it_was_started_with(cli: Callable[..., Said], tmp_path: Path) -> None:
    """It need not be said again; another size, seed or column is refused, and the run is as it was."""
    (tmp_path / "p.tsv").write_bytes(b"en\tde\n" + GOOD)
    command = ["train", tmp_path / "p.tsv", "-o", tmp_path / "run", "--quiet"]
    said = cli(*command, *TINY, "--columns", "2,1", "--size", "tiny", "--set", "train.seed=7")
    assert said.code == 0, said.err
    said = cli(*command, "--set", "train.max_steps=3")
    assert said.code == 0, said.err
    before = (tmp_path / "run" / "config.toml").read_bytes()
    for options, words in (
        (["--size", "small"], "size: tiny → small"),
        (["--columns", "1,2"], "data.columns: 2,1 → 1,2"),
        (["--set", "train.seed=8"], "train.seed: 7 → 8"),
        (["--size", "Tiny"], "did you mean tiny?"),
    ):
        said = cli(*command, *options)
        assert said.code == 2 and words in said.err, said.err
        assert (tmp_path / "run" / "config.toml").read_bytes() == before


def test_a_test_set_is_read_the_way_round_the_model_translates(cli: Callable[..., Said], tmp_path: Path) -> None:
    (tmp_path / "p.tsv").write_bytes(b"en\tde\n" + GOOD)
    run = tmp_path / "run"
    assert cli("train", tmp_path / "p.tsv", "-o", run, "-q", *TINY, "--from", "de", "--to", "en").code == 0
    said = cli("evaluate", run, tmp_path / "p.tsv", "--beam", "1")
    assert said.code == 0 and "columns 2 (de) → 1 (en)" in said.err and "warning" not in said.err
    said = cli("evaluate", run, tmp_path / "p.tsv", "--beam", "1", "--from", "en")
    assert said.code == 0 and "columns 1 (en) → 2 (de)" in said.err
    assert "warning: the test set is en → de, but the model translates de → en" in said.err
    said = cli("evaluate", tmp_path / "p.tsv", run)
    assert said.code == 2 and "p.tsv: is not a folder" in said.err


def test_a_model_that_was_packed_is_not_trained_over(cli: Callable[..., Said], pairs: Path, copied_run: Path) -> None:
    packed = copied_run.with_name("packed")
    assert cli("pack", copied_run, "-o", packed).code == 0
    before = {path.name: path.read_bytes() for path in packed.iterdir()}
    said = cli("train", pairs, "-o", packed, *TINY)
    assert said.code == 2 and "finished model without its run" in said.err and "choose another -o" in said.err
    assert {path.name: path.read_bytes() for path in packed.iterdir() if path.name != "lock"} == before


def test_settings_are_looked_at_before_the_data(cli: Callable[..., Said], tmp_path: Path) -> None:
    for options, word in ((["--size", "huge"], "huge"), (["--set", "model.n_heads=x"], "model.n_heads")):
        said = cli("train", tmp_path / "nowhere.tsv", "-o", tmp_path / "run", *options)
        assert said.code == 2 and word in said.err and "nowhere" not in said.err


def test_the_data_report_takes_settings(cli: Callable[..., Said], tmp_path: Path) -> None:
    (tmp_path / "p.tsv").write_bytes(b"a b\tb a\nc \xe9\tx y\n" + GOOD)
    said = cli("data", "check", tmp_path / "p.tsv", "--set", "data.bad_utf8=skip")
    assert said.code == 0 and "20 pairs read" in said.out, said
    (tmp_path / "recipe.toml").write_text('files = ["p.tsv"]\n[data]\nbad_utf8 = "skip"\n')
    said = cli("data", "check", tmp_path / "recipe.toml")
    assert said.code == 0 and "20 pairs read" in said.out, said
    said = cli("data", "check", tmp_path / "p.tsv", "--model", tmp_path / "nowhere")
    assert said.code == 2 and "nowhere: does not exist" in said.err


def test_unpaired_lines_are_left_out_where_that_is_asked_for(
    cli: Callable[..., Said], finished_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On every verb that reads pairs; how many is said each time, of held-out pairs and test sets too."""
    monkeypatch.setattr(plan, "MEASURED_SECONDS", 0.05)
    sides = [list(side) for side in zip(*(line.split("\t") for line in GOOD.decode().splitlines()), strict=True)]
    for name, lines in (("p.en", sides[0]), ("p.de", [*sides[1], "x", "y"]), ("v.en", ["a z"]), ("v.de", ["z a"] * 4)):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    files, held_out = [tmp_path / "p.en", tmp_path / "p.de"], [tmp_path / "v.en", tmp_path / "v.de"]
    valid = [word for path in held_out for word in ("--valid", path)]
    for words in (
        ["train", *files, *valid, "-o", tmp_path / "run", *TINY],
        ["plan", *files, *valid, *TINY],
        ["data", "check", *files, "--test", held_out[0], "--test", held_out[1]],
        ["evaluate", finished_run, *files, "--beam", "1"],
    ):
        said = cli(*words)
        assert said.code == 2 and " lines, but " in said.err and "--drop-unpaired" in said.err
        said = cli(*words, "--drop-unpaired")
        assert said.code == 0, said.err
        told = said.out + said.err
        assert "2 × line without a partner" in told and "after line 19 of p.de, up to line 21" in told
        assert words[0] == "evaluate" or ("held out: 3 × line" in told and "after line 1 of v.de" in told)
    assert "drop_unpaired = true" in (tmp_path / "run" / "config.toml").read_text()
    assert cli(*["train", *files, *valid, "-o", tmp_path / "run", *TINY], "--drop-unpaired").code == 0


RECIPES = {
    b"[train]\nlr = \n": ["recipe.toml:2", "TOML"],
    b"[train]\nlearn = 1\n": ["recipe.toml:2", "unknown setting train.learn"],
    b"[trian]\nlr = 1\n": ["recipe.toml:1", "did you mean train"],
    b"_target_ = 'os.system'\n": ["unknown setting _target_"],
    b"files = 3\n": ["files"],
    b"size = 'tiny'\n# \xe9\n": ["recipe.toml:2", "is not UTF-8", "iconv"],
    b"a = " + b"[" * 20_000: ["recipe.toml", "TOML"],
    b"a = " + b"9" * 5_000: ["recipe.toml", "TOML"],
    b"files = ['gone.tsv']\n": ["gone.tsv", "there is no such file"],
    b"": ["no file of pairs"],
}


@pytest.mark.parametrize("content", RECIPES, ids=range(len(RECIPES)))
def test_recipes(content: bytes, cli: Callable[..., Said], tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_bytes(content)
    said = cli("train", tmp_path / "recipe.toml", "-o", tmp_path / "run", "--quiet")
    assert said.code == 2 and all(word in said.err for word in RECIPES[content]), said.err
    assert not (tmp_path / "run").exists()


def test_places_to_write(cli: Callable[..., Said], pairs: Path, tmp_path: Path) -> None:
    """A file where the folder should be, a name no folder can have, somebody's own folder."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "card.md").write_text("my own notes")
    for out, words in (
        (pairs, ["cannot be written"]),
        (pairs / "run", ["cannot be written"]),
        (tmp_path / ("n" * 300), ["cannot be written"]),
        (Path("/proc/run"), ["/proc"]),
        (tmp_path / "mine", ["card.md", "is not a run's", "-o"]),
    ):
        said = cli("train", pairs, "-o", out, "--quiet", *TINY)
        assert said.code in (2, 4) and all(word in said.err for word in words), said.err
    assert (tmp_path / "mine" / "card.md").read_text() == "my own notes"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "pairs.tsv"]


# --- models and texts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nowhere", ["nowhere", "does not exist", "→"]),
        ("pairs.tsv", ["pairs.tsv", "is not a folder"]),
        ("empty", ["manifest.json", "is missing", "finished model folder"]),
        ("n" * 300, ["is not the name of a folder"]),
    ],
)
@pytest.mark.parametrize("verb", ["translate", "evaluate", "pack", "doctor"])
def test_models_that_are_none(
    verb: str, name: str, words: list[str], cli: Callable[..., Said], pairs: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    rest: dict[str, list[Any]] = {"translate": ["text"], "evaluate": [pairs], "pack": ["-o", tmp_path / "out"]}
    said = cli(verb, f"{tmp_path}/{name}", *rest.get(verb, []))
    assert said.code == 2 and all(word in said.out + said.err for word in words), said
    assert not (tmp_path / "out").exists()


def test_lines_in_are_lines_out(cli: Callable[..., Said], finished_run: Path) -> None:
    odd = [
        "",
        "   ",
        "a b c",
        "\t",
        "…",
        "😀 🏳️‍🌈",
        "x\x00y",
        "\u202eabc\u2028def\u0085ghi\x0cj",
        "e\u0301",
        "\ufeff",
        "1234",
    ]
    odd += ["a\rb", "ﬁ ﬀ", "\U0010ffff", "א ב", "a " * 200, "Ω" * 300, "<pad> <eos>", "▁▁", "\\n", '"', "%s {0}"]
    said = cli("translate", finished_run, "--beam", "1", stdin="\n".join(odd).encode())
    assert said.code == 0 and said.out.count("\n") == len(odd)
    lines = said.out.split("\n")
    assert lines[:2] == ["", "   "] and lines[3:5] == ["\t", "…"]
    said = cli("translate", finished_run, "--json", stdin=b"a b\n\nc\n")
    assert [json.loads(line)["source"] for line in said.out.splitlines()] == ["a b", "", "c"]
    assert cli("translate", finished_run, stdin=b"") == Said(0, "", "")


def test_lines_that_are_no_text(cli: Callable[..., Said], finished_run: Path) -> None:
    said = cli("translate", finished_run, "--beam", "1", stdin=b"a b\nc \xff d\ne f\n")
    assert said.code == 2 and "stdin:2: is not UTF-8 at byte 3" in said.err and "iconv" in said.err
    said = cli("translate", finished_run, "a \udcff b")
    assert said.code == 2 and "half of a surrogate pair" in said.err
    with pytest.raises(clearhead.DataError, match="character 3 is U\\+D800") as caught:
        clearhead.load(finished_run).translate(["a", "b \ud800"])
    assert caught.value.line == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--beam", "0"], ["beam"]),
        (["--beam", "500"], ["beam", "64"]),
        (["--n-best", "9", "--beam", "2"], ["n_best 9 is more than beam 2", "a beam of 9"]),
        (["--n-best", "2", "--beam", "1"], ["n_best", "gives one output", "a beam of 2 or more"]),
        (["--set", "beam=x"], ["beam: must be a whole number, not 'x'"]),
        (["--threads", "5000"], ["--threads", "5000"]),
        (["--set", "temperture=1"], ["did you mean decode.temperature"]),
        (["--set", "train.lr=1"], ["train.lr is no setting of decoding"]),
        (["--set", "nope"], ["'nope' is not NAME=VALUE"]),
        (["--set", "top_p=2"], ["top_p", "less than or equal to 1"]),
        (["-o", "out.po"], ["one document"]),
    ],
)
def test_decoding_settings(options: list[str], words: list[str], cli: Callable[..., Said], finished_run: Path) -> None:
    said = cli("translate", finished_run, *options)
    assert said.code == 2 and all(word in said.err for word in words), said.err


def test_documents(cli: Callable[..., Said], finished_run: Path, tmp_path: Path) -> None:
    """A model that does not know its languages, a document that does not either, and names that cannot be meant."""
    memory = (
        '<tmx version="1.4"><header srclang="en"/><body><tu><tuv xml:lang="en"><seg>a b</seg></tuv></tu></body></tmx>'
    )
    (tmp_path / "in.tmx").write_text(memory)
    out = tmp_path / "out.tmx"
    said = cli("translate", finished_run, tmp_path / "in.tmx", "-o", out, "--beam", "1")
    assert said.code == 2 and "which target language?" in said.err and "--to" in said.err and not out.exists()
    said = cli("translate", finished_run, tmp_path / "in.tmx", "-o", out, "--beam", "1", "--to", "de")
    assert said.code == 0 and 'xml:lang="de"' in out.read_text(), said.err
    said = cli("translate", finished_run, tmp_path / "in.tmx")
    assert said.code == 2 and said.out == "" and "is a document" in said.err and "-o out.tmx" in said.err
    said = cli("translate", finished_run, tmp_path / "in.tmx", "-o", tmp_path / "out.po", "--to", "de")
    assert said.code == 2 and "whose format stays" in said.err and f"-o {out}" in said.err
    assert not (tmp_path / "out.po").exists()
    said = cli("translate", finished_run, tmp_path / "in.tmx", "-o", out, "--from", "fr", "--to", "de")
    assert said.code == 2 and "no unit is in fr" in said.err and "there are en: name one with --from" in said.err
    (tmp_path / "in.txt").write_bytes(b"a b\nc \xe9 d\n")
    said = cli("translate", finished_run, tmp_path / "in.txt", "-o", tmp_path / "out.txt")
    assert said.code == 2 and "in.txt:2" in said.err and "iconv" in said.err and "bad_utf8" not in said.err
    said = cli("translate", finished_run, "a b c.txt", "d" * 5000, "--beam", "1")  # no files of these names
    assert said.code == 0 and said.out.count("\n") == 2 and said.err == ""
    said = cli("translate", finished_run, "gone.po", "--beam", "1")
    assert said.code == 0 and said.err == "gone.po: there is no such document, so its name is translated\n"


def test_test_sets(cli: Callable[..., Said], finished_run: Path, pairs: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.tsv").write_bytes(b"")
    said = cli("evaluate", finished_run, tmp_path / "empty.tsv")
    assert said.code == 2 and "is empty" in said.err
    said = cli("evaluate", finished_run, pairs, "--outputs", "/proc/nowhere/out.txt", "--beam", "1")
    assert said.code in (2, 4) and "/proc" in said.err
    said = cli("evaluate", finished_run, pairs, "--outputs", tmp_path / "no" / "out.txt")
    assert said.code == 2 and "its folder does not exist" in said.err and "mkdir -p" in said.err
    (tmp_path / "link.tsv").symlink_to(pairs)
    for outputs in (pairs, tmp_path / "link.tsv"):
        said = cli("evaluate", finished_run, pairs, "--outputs", outputs, "--beam", "1")
        assert said.code == 2 and "is the test set itself" in said.err and pairs.read_bytes() == GOOD
    (tmp_path / "long.tsv").write_text("a b\tb a\n" + "c" * 500 + "\t" + "d" * 500 + "\n")
    said = cli("evaluate", finished_run, tmp_path / "long.tsv", "--beam", "1")
    assert said.code == 0 and "2 sentences" in said.out and "1 of the pairs are too long" in said.out
    said = cli("evaluate", tmp_path / "nowhere", pairs, "--tokenize", "klingon")  # before anything is translated
    assert said.code == 2 and "klingon" in said.err


def test_pairs_of_a_test_set_without_text_are_not_scored(
    cli: Callable[..., Said], finished_run: Path, tmp_path: Path
) -> None:
    """Counted, with the place of the first; the same scores as without them; the outputs still a line for each pair."""
    good, odd = GOOD.decode(), "a b c d\ta b c d\n"
    (tmp_path / "good.tsv").write_text(good + odd)
    (tmp_path / "holes.tsv").write_text("\n" + "a b\t \n" + good + "\x00\tb a\n" + odd + "\t\n")
    command = ["evaluate", finished_run, "--beam", "1", "--worst", "2"]
    whole = cli(*command, tmp_path / "good.tsv", "--json", "--against", finished_run)
    holes = cli(*command, tmp_path / "holes.tsv", "--json", "--against", finished_run, "--outputs", tmp_path / "o.txt")
    found, told = json.loads(whole.out), json.loads(holes.out)
    assert told["left_out"] == {"empty side": 3} and told["skipped"] == {"blank line": 1} and told["n"] == 20
    assert told["suspicious"] == found["suspicious"] == {"copy": 1} and found["left_out"] == {}
    assert all(told[name] == found[name] for name in ("scores", "perplexity", "against", "n"))
    assert (tmp_path / "o.txt").read_text().count("\n") == 23
    rows = (tmp_path / "holes.tsv").read_text().split("\n")
    assert all(rows[worst["line"] - 1].split("\t")[0] == worst["source"] for worst in told["worst"])
    said = cli(*command, tmp_path / "holes.tsv")
    assert "20 sentences, besides those left out: 3 × empty side" in said.out
    assert f"3 of 23 pairs left out: empty side; the first is {tmp_path}/holes.tsv:2" in said.err
    assert "1 of 23 pairs scored, but to be looked at: copy" in said.err
    said = cli(*command, tmp_path / "holes.tsv", "--set", "data.gate=warn", "--json")
    assert json.loads(said.out)["n"] == 23 and json.loads(said.out)["suspicious"] == {"empty side": 3, "copy": 1}
    said = cli(*command, tmp_path / "holes.tsv", "--set", "data.gate=off", "--json")
    assert json.loads(said.out)["n"] == 23 and json.loads(said.out)["suspicious"] == {}
    (tmp_path / "none.tsv").write_text("a b\t\n\tb a\n")
    said = cli(*command, tmp_path / "none.tsv")
    assert said.code == 2 and "none.tsv: holds no pair with text on both sides" in said.err and "data check" in said.err


def test_from_python(finished_run: Path, pairs: Path, tmp_path: Path) -> None:
    """The same errors, as exceptions of one family."""
    for call in (
        lambda: clearhead.load("/nowhere"),
        lambda: clearhead.load("a\0b"),  # no command can hold a NUL, a Python string can
        lambda: clearhead.train(tmp_path / "nothing.tsv", tmp_path / "run"),
        lambda: clearhead.train(pairs, tmp_path / "run", settings={"train": {"lrr": 1}}),
        lambda: clearhead.train(pairs, tmp_path / "run", settings={"train.lr": 1}),
        lambda: clearhead.load(finished_run).translate("a", beams=3),
        lambda: clearhead.load(finished_run).translate(["a", None]),  # type: ignore[list-item]
        lambda: clearhead.evaluate(finished_run, pairs, beams=3),
        lambda: clearhead.evaluate(finished_run, tmp_path / "nothing.tsv"),
        lambda: clearhead.data_check(tmp_path),
        lambda: clearhead.plan(tmp_path / "nothing.tsv"),
    ):
        with pytest.raises(clearhead.ClearheadError) as caught:
            call()
        assert caught.value.exit_code == 2 and str(caught.value)
    assert not (tmp_path / "run").exists()


def test_python_takes_one_name_for_a_list_and_a_model_for_its_folder(
    finished_run: Path, pairs: Path, tmp_path: Path
) -> None:
    model = clearhead.load(finished_run)
    found = clearhead.evaluate(model, str(pairs), against=model, outputs=str(tmp_path / "out.txt"), beam=1, worst=0)
    assert found.n == 19 and (tmp_path / "out.txt").read_text().count("\n") == 19
    assert clearhead.data_check(pairs, test=str(pairs)).read == 19
    with pytest.raises(clearhead.DataError, match="no pair is left to learn from"):
        clearhead.train(pairs, tmp_path / "run", valid=str(pairs))


# --- real processes -----------------------------------------------------------------------------------------------


def process(*words: str | Path, **options: Any) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"} | options.pop("environment", {})
    return subprocess.run([*COMMAND, *map(str, words)], capture_output=True, env=environment, timeout=300, **options)


def test_an_output_that_cannot_be_written(finished_run: Path) -> None:
    with open("/dev/full", "w") as full:
        words = [*COMMAND, "translate", str(finished_run), "a b c", "--beam", "1"]
        told = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, timeout=300)
    assert told.returncode == 4 and told.stderr == b"error: output: No space left on device\n"


def test_a_poor_locale(finished_run: Path) -> None:
    """Output is UTF-8 in any locale; a file's name that is no text is escaped in the message."""
    poor = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    told = process("translate", finished_run, "--beam", "1", input="…\n».\n".encode(), environment=poor)
    assert told.returncode == 0 and told.stdout.decode() == "…\n».\n", told.stderr
