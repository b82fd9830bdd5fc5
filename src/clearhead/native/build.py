"""The compiled library of decoder and training loops: built once, kept in the user's cache, taken from nobody else.

The library's name is a hash of its source, the compiler and the processor, so a changed one is built anew. It is only
ever loaded from a folder that belongs to this user and that nobody else may write to. Decoding never builds: the verbs
that take longer than a compiler do, and `clearhead doctor`.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import stat
import subprocess
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

from clearhead.errors import ClearheadError
from clearhead.files.atomic import write_atomic

FOLDER = Path(__file__).parent
SOURCES = [FOLDER / name for name in ("engine.cpp", "learning.cpp")]
HEADERS = [FOLDER / "registers.h"]
FLAGS = ("-O3", "-march=native", "-fopenmp", "-fno-math-errno", "-std=c++17", "-shared", "-fPIC")
LONGEST = 120
"""Seconds a compiler may take."""
OFF = "CLEARHEAD_NATIVE"
"""Set to 0, nothing is built or loaded."""


def compiler() -> str | None:
    """None where there is none, or where it is not wanted."""
    if os.environ.get(OFF) == "0":
        return None
    return next((found for name in ("c++", "g++", "clang++") if (found := shutil.which(name))), None)


def folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "clearhead" / "native"


def place() -> Path | None:
    """Where the library of this source, compiler and processor is, or would be."""
    program = compiler()
    if program is None:
        return None
    sources = (path.read_bytes() for path in (*SOURCES, *HEADERS))
    known = (*sources, program.encode(), " ".join(FLAGS).encode(), processor().encode())
    try:
        return folder() / f"engine-{hashlib.sha256(b'|'.join(known)).hexdigest()[:24]}.so"
    except RuntimeError:  # nobody's home
        return None


def processor() -> str:
    """What `-march=native` depends on."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    flags = [line for line in lines if line.startswith(("model name", "flags", "Features"))]
    return f"{platform.machine()} {' '.join(sorted(set(flags)))}"


def build(say: Callable[[str], None] = lambda text: None) -> Path | None:
    """Compile it, unless that has been done; None where it cannot be."""
    there = place()
    if there is None or there.is_file():
        return there
    program = compiler()
    assert program is not None
    say("compiling for this processor, once: a few seconds …")
    made = there.with_name(f"{there.stem}.{os.getpid()}.so")
    try:
        there.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        command = [program, *FLAGS, "-o", str(made), *map(str, SOURCES)]
        subprocess.run(command, check=True, capture_output=True, timeout=LONGEST, stdin=subprocess.DEVNULL)
        write_atomic(there, made.read_bytes())
    except (OSError, ClearheadError, subprocess.SubprocessError):
        return None
    finally:
        with suppress(OSError):
            made.unlink(missing_ok=True)
    library.cache_clear()
    return there


def ours_alone(path: Path) -> bool:
    """Do the file and its folder belong to this user, and may nobody else write to them?"""
    return all(
        found.st_uid == os.getuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        for found in (path.stat(), path.parent.stat())
    )


def name() -> str | None:
    """Of the library that is loaded: another one for another source, compiler or processor."""
    there = place() if library() is not None else None
    return None if there is None else there.stem.removeprefix("engine-")[:8]


@cache
def library() -> ctypes.CDLL | None:
    """The engine, if it has been built."""
    there = place()
    try:
        if there is None or not there.is_file() or not ours_alone(there):
            return None
        found = ctypes.CDLL(str(there))
    except OSError:
        return None
    for name in ("model", "start"):
        getattr(found, f"clearhead_{name}").restype = ctypes.c_void_p
    for name in ("map", "norm", "step"):
        getattr(found, f"clearhead_{name}").restype = ctypes.c_bool
    return found
