"""The class of machines on which the same run gives the same bits, as far as that can be told from here.

The order in which a processor's library adds numbers up depends on the library, on the instructions it finds and on
the number of threads. Where all of these are equal, results are promised to be bit-identical; elsewhere they agree
within a tolerance. Knows torch and the processor. Refuses to know models.
"""

from __future__ import annotations

import platform
import re
from pathlib import Path

import torch
from pydantic import BaseModel, ConfigDict

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

    def __str__(self) -> str:
        return f"torch {self.torch}, {self.processor}, {self.threads} threads" + (f", {self.gpu}" if self.gpu else "")


def this_machine(device: torch.device = PROCESSOR) -> Machine:
    gpu = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    return Machine(
        torch=torch.__version__,
        processor=f"{platform.machine()} {maker()} {torch.backends.cpu.get_cpu_capability()}",
        threads=torch.get_num_threads(),
        gpu=None if device.type == "cpu" else gpu,
    )


def maker() -> str:
    """Libraries choose their code by who made the processor, too."""
    try:
        found = re.search(r"^vendor_id\s*:\s*(\S+)", CPUINFO.read_text(encoding="utf-8"), re.MULTILINE)
    except (OSError, UnicodeDecodeError):
        found = None
    return found[1] if found else platform.system()
