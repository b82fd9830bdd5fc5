"""What a step frees is not given back to the system, to be asked for again."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys

import pytest

from clearhead.native.memory import keep_freed_memory

LIBRARY = ctypes.CDLL(None)

# The library's own account of its memory, because page faults also depend on the kernel and on what else lies on the
# heap. One piece larger than any that was freed before: the library would take it from the system by itself.
ACCOUNT = """
import ctypes, json, sys, torch
from clearhead.native.memory import keep_freed_memory

class Account(ctypes.Structure):
    words = "arena ordblks smblks hblks mapped usmblks fsmblks used free keepcost"
    _fields_ = [(word, ctypes.c_size_t) for word in words.split()]

mallinfo = ctypes.CDLL(None).mallinfo2
mallinfo.restype = Account
if sys.argv[1] == "keep":
    assert keep_freed_memory()
before = mallinfo()
piece = torch.ones(31 << 18)  # 31 MB
held = mallinfo()
del piece
after = mallinfo()
print(json.dumps({"mapped": held.mapped - before.mapped, "kept": after.free - before.free}))
"""


@pytest.mark.skipif(not hasattr(LIBRARY, "mallinfo2"), reason="needs the GNU C library, 2.33 or newer")
def test_what_was_freed_is_kept() -> None:
    def account(how: str) -> dict[str, int]:
        command = [sys.executable, "-c", ACCOUNT, how]
        answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        counts: dict[str, int] = json.loads(answer)
        return counts

    size, little = 31 << 20, 1 << 20
    left, kept = account("leave"), account("keep")
    assert left["mapped"] >= size and left["kept"] < little
    assert kept["mapped"] < little and kept["kept"] >= size - little


def test_another_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    assert not keep_freed_memory()
