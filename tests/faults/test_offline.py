"""No network at run time: every verb is run in a process in which the first socket ends everything."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SCRIPT = """
import os, sys

def refuse(event, arguments):
    # Python tells its audit hooks of every socket, whoever makes it; the machine's own name is no network.
    if event.startswith("socket.") and event != "socket.gethostname":
        sys.stderr.write(f"{event} {arguments}")
        os._exit(99)  # nothing can catch this

sys.addaudithook(refuse)
if sys.argv[3:] == ["listen"]:
    import socket
    socket.socket().bind(("127.0.0.1", 0))

from pathlib import Path
from clearhead.cli.main import main

pairs, out, *_ = sys.argv[1:]
sizes = ("model.d_model=8", "model.n_heads=2", "model.d_ff=8", "text.vocab_size=270")
small = [word for size in sizes for word in ("--set", size)]
for words in (
    ["data", "check", pairs],
    ["train", pairs, "-o", out, "--size", "tiny", "--set", "train.max_steps=2", "--set", "train.threads=1", *small],
    ["translate", out, "a b c", "--beam", "2"],
    ["evaluate", out, pairs, "--beam", "1"],
    ["doctor", out],
    ["plan", pairs, "--size", "tiny", *small],
    ["explain", out, "a b c", "-o", out + ".html"],
    ["explain", out, "a b c", "-o", out + ".json"],
    ["pack", out, "-o", out + "-packed"],
    ["translate", out + "-packed", "a b c"],
):
    sys.argv = ["clearhead", *words]
    try:
        main()
    except SystemExit as left:
        assert not left.code or words[0] == "doctor" and left.code == 3, (words, left.code)
print("the tour is over")
"""


def tour(pairs: str, out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", SCRIPT, pairs, str(out), *more]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(words, capture_output=True, text=True, env=environment, timeout=590)


def test_the_tour_without_a_network(recipes: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    told = tour(recipes["everything"]["files"][0], tmp_path / "run")
    assert told.returncode == 0 and told.stdout.endswith("the tour is over\n"), told.stderr


def test_a_socket_would_be_noticed(tmp_path: Path) -> None:
    told = tour("pairs.tsv", tmp_path / "run", "listen")
    assert told.returncode == 99 and "socket." in told.stderr
