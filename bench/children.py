"""A contestant, seen from the bench: a process of its own that is asked one thing at a time (peers/protocol.py)."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PEERS = Path(__file__).parent / "peers"
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


class Failed(Exception):
    """A contestant that cannot go on, with the reason."""


class Child:
    def __init__(self, python: Path, script: str, threads: int, timeout: float = 600.0, **arguments: Any) -> None:
        self.timeout = timeout
        self.log = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the child
        environment = {**os.environ, **OFFLINE, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
        self.process = subprocess.Popen(
            [str(python), str(PEERS / script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            env=environment,
        )
        self.peak_mb = 0.0
        self.buffer = b""
        try:
            self.ask_raw({"threads": threads, **arguments})
        except Failed:
            self.close()
            raise

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        return self.ask_raw({"do": do, **arguments})

    def ask_raw(self, message: Mapping[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            raise Failed(self.last_words()) from None
        answer: dict[str, Any] = json.loads(self.read_line())
        self.peak_mb = answer.pop("peak_mb")
        if "error" in answer:
            raise Failed(answer["error"])
        return answer

    def read_line(self) -> bytes:
        """One line of its answers, or Failed when none comes in time."""
        assert self.process.stdout is not None
        end = time.monotonic() + self.timeout
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while b"\n" not in self.buffer:
                if not selector.select(max(0.0, end - time.monotonic())):
                    raise Failed(f"no answer within {self.timeout:.0f} s")
                read = os.read(self.process.stdout.fileno(), 1 << 20)
                if not read:
                    raise Failed(self.last_words())
                self.buffer += read
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line

    def last_words(self) -> str:
        """The end of what it wrote to stderr."""
        self.process.wait(timeout=10)
        self.log.seek(0)
        lines = self.log.read().decode("utf-8", "replace").strip().splitlines()
        return (lines[-1] if lines else f"left with code {self.process.returncode}")[:300]

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.log):
            if stream is not None:
                stream.close()
