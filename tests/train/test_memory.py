"""What a step frees is not asked for again."""

from __future__ import annotations

import ctypes
import platform
import subprocess
import sys

import pytest

from clearhead.train.memory import keep_freed_memory

FAULTS = """
import resource, sys, torch
from clearhead.train.memory import keep_freed_memory
if sys.argv[1] == "keep":
    assert keep_freed_memory()
def step():
    pieces = [torch.ones(1 << 20) for _ in range(16)]  # 4 MB each
for _ in range(3):
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a setting of the GNU C library")
def test_pages_are_not_asked_for_again() -> None:
    def faults(how: str) -> int:
        command = [sys.executable, "-c", FAULTS, how]
        return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    assert 10 * faults("keep") < faults("leave")


def test_another_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    assert not keep_freed_memory()
