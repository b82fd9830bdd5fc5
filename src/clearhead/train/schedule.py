"""Learning rate over time, as a factor of the peak: a function of the step number alone, never of the clock.

warm-up        step / warmup                                     rising to 1
inverse-sqrt   √(warmup / step)                                  Vaswani et al. 2017, eq. 3
cosine         ½ (1 + cos(π · progress))                         Loshchilov & Hutter 2017
wsd            1, then falling straight to 0 at the end          warm-up, stable, decay; Hu et al. 2024
"""

from __future__ import annotations

import math

from clearhead.config import TrainSettings


def factor(step: int, settings: TrainSettings) -> float:
    """Of the peak learning rate at this step; the first step is 1."""
    warmup = max(1, settings.warmup_steps)
    if step < warmup:
        return step / warmup
    if settings.schedule == "inverse-sqrt":
        return math.sqrt(warmup / step)
    progress = (step - warmup) / max(1, settings.max_steps - warmup)
    if settings.schedule == "cosine":
        return 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))
    if settings.schedule == "wsd":
        return min(1.0, max(0.0, (settings.max_steps - step) / max(1, settings.decay_fraction * settings.max_steps)))
    return 1.0
