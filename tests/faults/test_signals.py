"""Signals, time limits and locks, seen from outside: real processes, real signals, exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Outcome = Callable[[Path], dict[str, str]]
COMMAND = [sys.executable, "-m", "clearhead.cli.main"]
ENOUGH = 300.0


@pytest.fixture
def recipe(recipes: dict[str, Any], tmp_path: Path) -> Path:
    """The recipe as a file, for the command line."""
    from clearhead.config import Experiment
    from clearhead.config.load import to_toml

    path = tmp_path / "recipe.toml"
    path.write_text(to_toml(Experiment.model_validate(recipes["everything"])), encoding="utf-8")
    return path


@pytest.fixture
def start(recipe: Path, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """`clearhead train recipe.toml -o run …`, stopped in the end if it still runs."""
    begun: list[subprocess.Popen[str]] = []

    def begin(*options: str, out: Path | None = None) -> subprocess.Popen[str]:
        words = [*COMMAND, "train", str(recipe), "-o", str(out or tmp_path / "run"), *options]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=tmp_path
        )
        begun.append(process)
        return process

    yield begin
    for process in begun:
        if process.poll() is None:
            process.kill()
        process.communicate()


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    """Until this is there, and the process still at work."""
    end = time.monotonic() + ENOUGH
    while not path.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGUSR1, 0)])
def test_the_first_signal_finishes_the_step_and_saves(
    number: signal.Signals, code: int, start: Any, tmp_path: Path
) -> None:
    process = start("--quiet", "--set", "train.max_steps=100000", "--set", "validation.patience=100000")
    wait_for(tmp_path / "run" / "checkpoints" / "step-4", process)
    process.send_signal(number)
    out, err = process.communicate(timeout=ENOUGH)
    assert process.returncode == code and out == ""
    assert len(err.splitlines()) == 1 and err.startswith(f"{number.name}: stopped after step ")
    step = int(err.split("step ")[1].split(",")[0])
    assert (tmp_path / "run" / "checkpoints" / f"step-{step}" / "manifest.json").is_file()


def test_stopped_and_continued_is_the_same(
    start: Any, tmp_path: Path, undisturbed: dict[str, str], outcome: Outcome
) -> None:
    """Two commands and a signal against the run in the test's own process: the command line adds nothing."""
    process = start()
    wait_for(tmp_path / "run" / "checkpoints" / "step-4", process)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=ENOUGH)
    assert process.returncode in (0, 143)  # 0: it was faster
    again = start("--json")
    out, err = again.communicate(timeout=ENOUGH)
    assert again.returncode == 0, err
    assert json.loads(out)["steps"] == 12 and "bit-identical" in err
    assert outcome(tmp_path / "run") == undisturbed


def test_the_second_signal_leaves_at_once(stopping_run: Any, tmp_path: Path) -> None:
    """While the step is still being finished: exit at once, the last checkpoint untouched."""
    told = stopping_run(
        """
        def step(self):
            os.kill(os.getpid(), signal.SIGTERM)      # asks to stop after this step
            os.kill(os.getpid(), signal.SIGTERM)      # cannot wait
            return advance(self)
        """
    )
    assert told.returncode == 143
    assert told.stderr == "stopped at once; the last checkpoint is untouched\n"
    assert sorted(p.name for p in (tmp_path / "run" / "checkpoints").iterdir()) == ["step-4"]


def test_while_preparing_the_first_signal_leaves(stopping_run: Any, tmp_path: Path) -> None:
    told = stopping_run(
        """
        def read(*args):
            os.kill(os.getpid(), signal.SIGINT)
            return read_corpus(*args)
        """
    )
    assert told.returncode == 130
    assert told.stderr == "SIGINT: stopped; the same command goes on from what was saved before\n"
    assert not (tmp_path / "run").exists()  # nothing had been written


def test_a_time_limit(stopping_run: Any, tmp_path: Path) -> None:
    told = stopping_run(
        """
        def step(self):
            if self.state.step == 5:
                time.sleep(1.1)
            return advance(self)
        """,
        "--max-seconds=1",
    )
    assert told.returncode == 0
    assert told.stderr.startswith("time limit reached: stopped after step ")
    assert any((tmp_path / "run" / "checkpoints").iterdir())


@pytest.fixture
def stopping_run(recipe: Path, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """`clearhead train` in a process where one function is replaced by another that sends signals to itself."""

    def run(replacement: str, *options: str) -> subprocess.CompletedProcess[str]:
        lines = [
            "import os, signal, sys, time",
            "from clearhead.cli import main",
            "from clearhead.train.loop import Training",
            "from clearhead.verbs import train",
            "advance, read_corpus = Training.advance, train.read_corpus",
            *(line.removeprefix("        ") for line in replacement.strip("\n").splitlines()),
            "def first(self):  # steps 1 to 4 as ever",
            "    return advance(self) if self.state.step < 4 else step(self)",
            "if 'step' in globals(): Training.advance = first",
            "if 'read' in globals(): train.read_corpus = read",
            f"sys.argv = {['clearhead', 'train', str(recipe), '-o', str(tmp_path / 'run'), '--quiet', *options]!r}",
            "main.main()",
        ]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        script = [sys.executable, "-c", "\n".join(lines)]
        return subprocess.run(script, capture_output=True, text=True, timeout=ENOUGH, env=environment)

    return run


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_translating_is_stopped_without_a_word_too_many(number: signal.Signals, finished_run: Path) -> None:
    """Lines already written stay; no traceback."""
    process = subprocess.Popen(
        [*COMMAND, "translate", str(finished_run), "--beam", "1"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("…\n")
    process.stdin.flush()
    assert process.stdout.readline() == "…\n"
    process.send_signal(number)
    out, err = process.communicate(timeout=ENOUGH)
    assert process.returncode in (128 + number, -number) and out == ""
    assert err == ("stopped\n" if number == signal.SIGINT else "")


def test_two_runs_on_one_folder(start: Any, finished_run: Path, copied_run: Path) -> None:
    """The second is told who holds it; whoever only reads is not hindered."""
    from clearhead.files import RunLock
    from clearhead.verbs.model import load

    with RunLock(copied_run):
        process = start(out=copied_run)
        out, err = process.communicate(timeout=ENOUGH)
        assert process.returncode == 2 and out == ""
        assert f"another run is using this folder (process {os.getpid()} on " in err and "Traceback" not in err
        assert load(copied_run).translate("a b c") == load(finished_run).translate("a b c")
