"""What README.md and docs/ tell a person to type: it exists, and what the README shows runs, in the order shown.

Every `clearhead …` line, in a block or in running text, names an existing verb, existing options and existing settings;
every `make …` line names a target; every relative link leads somewhere.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from clearhead.cli.main import app
from clearhead.config.load import known_settings
from clearhead.errors import MissingExtra
from clearhead.verbs import plan

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]
FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHELLS = ("", "sh", "bash", "console")
INLINE = re.compile(r"`((?:clearhead|make) [^`]+)`")
REMARK = re.compile(r"\s{3,}\S.*$|\s+#\s.*$")
ELSEWHERE = re.compile(r"[<>|]")
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)[^)]*\)")
TINY = shlex.split("""
    --set train.max_steps=3 --set model.encoder_layers=1 --set model.decoder_layers=1 --set model.d_model=16
    --set model.d_ff=16 --set model.n_heads=2 --set validation.decode_pairs=2
""")
Problem = str


def typed(text: str, program: str) -> Iterator[list[str]]:
    """Every command line of a page that begins with this program, as words."""
    blocks = [body for language, body in FENCED.findall(text) if language in SHELLS]
    lines = [line.strip().removeprefix("$ ") for body in blocks for line in body.splitlines()]
    for line in [*lines, *INLINE.findall(FENCED.sub("", text))]:
        if line.startswith(program + " "):
            yield shlex.split(REMARK.sub("", line))[1:]


def command_of(words: list[str]) -> tuple[Any, list[str]] | Problem:
    """The verb a line names, and the words after it."""
    command: Any = typer.main.get_command(app)
    rest = list(words)
    while hasattr(command, "commands") and rest and not rest[0].startswith("-"):
        name = rest.pop(0)
        if name in ("…", "VERB"):
            return command, []
        if name not in command.commands:
            return f"there is no verb {name}"
        command = command.commands[name]
    return command, rest


def problems(words: list[str]) -> list[Problem]:
    """What is wrong with one command line."""
    found = command_of(words)
    if isinstance(found, Problem):
        return [found]
    command, rest = found
    known = {"-h", "--help"} | {option for parameter in command.params for option in parameter.opts}
    given = [word.partition("=")[0] for word in rest if word.startswith("-") and word != "-"]
    settings = {*known_settings(), *(name.removeprefix("decode.") for name in known_settings())}
    assigned = [rest[at + 1].partition("=")[0] for at, word in enumerate(rest[:-1]) if word == "--set"]
    return [
        *(f"{command.name} has no option {option}" for option in given if option not in known),
        *(f"there is no setting {name}" for name in assigned if name not in settings and name != "NAME"),
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_names_what_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    wrong = {" ".join(words): found for words in typed(text, "clearhead") if (found := problems(words))}
    assert not wrong
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert {words[0] for words in typed(text, "make")} <= targets


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    links = LINK.findall(FENCED.sub("", page.read_text(encoding="utf-8")))
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("trian x.tsv", "no verb trian"),
        ("train x.tsv -o y --frm en", "no option --frm"),
        ("data chek x.tsv", "no verb chek"),
        ("train x.tsv --set trian.lr=1", "no setting trian.lr"),
        ("translate y --json", ""),
        ("translate y --set beam=2", ""),
    ],
)
def test_wrong_commands_are_noticed(line: str, problem: str) -> None:
    found = "; ".join(problems(line.split()))
    assert problem in found and bool(found) == bool(problem)


def test_commands_are_found_in_blocks_and_in_text() -> None:
    block = "```\n$ clearhead show --all   # or\nclearhead plan x    says\n```\n"
    page = f"Type `clearhead doctor`.\n\n{block}```python\nclearhead x\n```\n"
    assert sorted(typed(page, "clearhead")) == [["doctor"], ["plan", "x"], ["show", "--all"]]


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files a reader of the README is supposed to have."""
    pairs = [(f"in {n} days at {n}:30", f"in {n} Tagen um {n}:30 Uhr") for n in range(60)]
    tsv = "".join(f"{source}\t{target}\n" for source, target in pairs)
    (tmp_path / "pairs.tsv").write_text(tsv, encoding="utf-8")
    (tmp_path / "test.tsv").write_text("in 3 days\tin 3 Tagen\nin 4 days\tin 4 Tagen\n", encoding="utf-8")
    (tmp_path / "english.txt").write_text("in 3 days\n\n7:30\n", encoding="utf-8")
    head = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n"Language: de\\n"\n'
    (tmp_path / "in.po").write_text(f'{head}\nmsgid "in %d days"\nmsgstr ""\n', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plan, "MEASURED_SECONDS", 0.05)
    return tmp_path


def run(words: list[str]) -> str:
    """One command as a shell would run it, in this process; what it wrote to stdout."""
    line = " ".join(words)
    arguments = words[: next((at for at, word in enumerate(words) if ELSEWHERE.fullmatch(word)), len(words))]
    given = Path(words[words.index("<") + 1]).read_bytes() if "<" in words else b""
    changes = TINY if words[0] == "train" and "train.max_steps=5000" not in words else []
    shorter = [word.replace("train.max_steps=5000", "train.max_steps=5") for word in arguments]
    result = CliRunner().invoke(app, [*shorter, *changes], input=given)
    if isinstance(result.exception, MissingExtra):
        assert "pip install" in str(result.exception)
    else:
        assert result.exit_code == 0, f"clearhead {line}: {result.exception!r}\n{result.output}"
    return result.stdout


def test_the_readme_runs(workshop: Path) -> None:
    """The tour as it stands, `demo` apart, on a model far too small to be any good."""
    run(["train", "pairs.tsv", "-o", "runs/older"])
    text = README.read_text(encoding="utf-8")
    said = {" ".join(words): run(words) for words in typed(text, "clearhead")}
    assert len(said) >= 15
    assert said["translate runs/de < english.txt > german.txt"].count("\n") == 3
    assert '"against":[{' in said["evaluate runs/de test.tsv --against runs/older --json"]
    for made in ("page.html", "out.po", "de-model/manifest.json", "shift.html"):
        assert (workshop / made).stat().st_size > 200, made
    assert "msgid" in (workshop / "out.po").read_text(encoding="utf-8")


def test_the_python_of_the_readme_runs(workshop: Path) -> None:
    code = "".join(
        body for language, body in FENCED.findall(README.read_text(encoding="utf-8")) if language == "python"
    )
    small = '{"encoder_layers": 1, "decoder_layers": 1, "d_model": 16, "n_heads": 2}'
    code = code.replace('"train": {"max_steps": 2000}', f'"train": {{"max_steps": 3}}, "model": {small}')
    names: dict[str, Any] = {}
    exec(code, names)
    pattern = names["trace"]["decoder.layers.0.cross_attention.pattern"]
    assert pattern.shape[0] == 2 and abs(pattern.sum(-1) - 1).max() < 1e-5
    assert names["model"].path == Path("runs/mine")


def test_the_python_of_the_glass_runs(workshop: Path) -> None:
    """Traces, every lens and the edits, as docs/glass.md has them."""
    run(["train", "pairs.tsv", "-o", "runs/de"])
    text = (ROOT / "docs" / "glass.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for language, body in FENCED.findall(text):
        if language == "python":
            exec(body, names)
    assert (workshop / "in-3-days.safetensors").is_file()
    left_out = names["left_out"]
    assert left_out.values.shape == tuple(len(tokens) for tokens in left_out.labels)
    assert names["trace"].provenance.edits, "the last trace was made with edits on"
    lenses = re.findall(r"`\w+\.(\w+)`", text.partition("## Lenses")[2].partition("```")[0])
    run_here = "".join(body for _, body in FENCED.findall(text))
    assert len(lenses) > 12 and [name for name in lenses if name not in run_here] == []
