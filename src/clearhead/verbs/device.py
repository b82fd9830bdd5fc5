"""Where the numbers are computed: on the processor, or on a GPU that torch knows.

"auto" takes a CUDA GPU if there is one, else the processor. A device that was asked for by name and is not there is an
error: nothing is ever computed elsewhere without a word.
"""

from __future__ import annotations

import torch

from clearhead.errors import UsageError, nearest

NAMES = ("auto", "cpu", "cuda", "mps")


def device(name: str) -> torch.device:
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        return torch.device("cuda" if there["cuda"] else "cpu")
    if name not in there:
        hint = f"did you mean {found}?" if (found := nearest(name, NAMES)) else ", ".join(NAMES)
        raise UsageError(f"there is no device {name!r}", field="device", hint=hint)
    if not there[name]:
        here = [other for other, found in there.items() if found]
        raise UsageError(
            f"torch {torch.__version__} finds no {name} here", field="device", hint=f"here: {', '.join(here)}"
        )
    return torch.device(name)


def described(chosen: torch.device) -> str:
    if chosen.type == "cuda":
        return f"on {torch.cuda.get_device_name(chosen)}"
    return "on Apple's GPU" if chosen.type == "mps" else f"on the processor, {torch.get_num_threads()} threads"
