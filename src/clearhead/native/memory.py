"""What a step or a batch frees is kept for the next one, not given back to the system and asked for again.

Every page the system hands out anew is cleared and entered first. For a tiny model, whose training steps take a tenth
of a second, that was a tenth of the time; translating with a base model in int8, a fifth (docs/log.md). Knows the C
library's settings, where it is GNU's. Refuses to know what the memory is for.
"""

from __future__ import annotations

import ctypes

TRIM, PAD, MAP = -1, -2, -3
"""mallopt's names for: free memory above which some is given back, how much to take at once, and the size from which
a piece is the system's own and goes back to it at once."""
KEPT, TAKEN, LARGEST = 1 << 30, 64 << 20, 32 << 20


def keep_freed_memory() -> bool:
    """For the whole process. False where the C library knows nothing of it."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return all(mallopt(name, size) for name, size in ((TRIM, KEPT), (PAD, TAKEN), (MAP, LARGEST)))
