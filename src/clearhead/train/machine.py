"""The class of machines on which the same run gives the same bits, as far as that can be told from here.

The order in which a processor's library adds numbers up depends on the library, on the instructions it finds and on
the number of threads, and training in bf16 depends on the loops compiled here. Where all of these are equal, results
are promised to be bit-identical; elsewhere they agree within a tolerance. Knows torch, the processor and the name of a
library. Refuses to know models.
"""

from __future__ import annotations

import platform
import re
from pathlib import Path

import torch
from pydantic import BaseModel, ConfigDict

from clearhead.native.build import name as loops_name

TOLERANCE = 1e-3
"""Losses of the same step on two classes of machines agree this well, relatively, over the first dozens of steps."""
PROCESSOR = torch.device("cpu")
CPUINFO = Path("/proc/cpuinfo")


class Machine(BaseModel):
    """One class of machines."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    torch: str
    processor: str
    threads: int
    gpu: str | None = None
    loops: str | None = None
    """Which compiled loops had a part in training (native/loops.py); none where torch alone does it."""

    def __str__(self) -> str:
        loops = f"compiled loops {self.loops}" if self.loops else None
        about = (f"torch {self.torch}", self.processor, f"{self.threads} threads", self.gpu, loops)
        return ", ".join(text for text in about if text)


def this_machine(device: torch.device = PROCESSOR, precision: str = "float32") -> Machine:
    gpu = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    return Machine(
        torch=torch.__version__,
        processor=f"{platform.machine()} {maker()} {torch.backends.cpu.get_cpu_capability()}",
        threads=torch.get_num_threads(),
        gpu=None if device.type == "cpu" else gpu,
        loops=loops_name() if device.type == "cpu" and precision == "bf16" else None,
    )


def maker() -> str:
    """Libraries choose their code by who made the processor, too."""
    try:
        found = re.search(r"^vendor_id\s*:\s*(\S+)", CPUINFO.read_text(encoding="utf-8"), re.MULTILINE)
    except (OSError, UnicodeDecodeError):
        found = None
    return found[1] if found else platform.system()
