"""How a contestant speaks: one JSON object a line on stdin, one answer a line on stdout.

The first line makes the contestant (`{"threads": 2, …}` are its arguments); every later one names a method and its
arguments (`{"do": "greedy", …}`). Whatever libraries print goes to stderr. Each answer carries the peak memory of the
process so far. Only the standard library is used: contestants live in environments of their own.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any


def serve(make: Callable[..., Any]) -> None:
    """Answer until stdin ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    contestant: Any = None
    for line in sys.stdin:
        message = json.loads(line)
        try:
            if contestant is None:
                contestant = make(**message)
                answer: dict[str, Any] = {}
            else:
                answer = getattr(contestant, message.pop("do"))(**message)
        except Exception as error:  # whatever it is, the bench reports it and goes on with the others
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {str(error)[:400]}"}
        answers.write(json.dumps({**answer, "peak_mb": peak_mb()}) + "\n")
        answers.flush()


def peak_mb() -> float:
    """The most memory this process ever held. Linux's own count in getrusage is inherited from the parent."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            return next(int(line.split()[1]) * 1024 / 1e6 for line in status if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


def chunk_times(chunks: list[Any], work: Callable[[Any], list[dict[str, Any]]]) -> dict[str, Any]:
    """`work` on every chunk of sources; it returns a hypothesis {"tokens", "score"} for each."""
    found, seconds = [], []
    for chunk in chunks:
        hypotheses, took = timed(lambda chunk=chunk: work(chunk))
        found += hypotheses
        seconds.append(took)
    tokens = [hypothesis["tokens"] for hypothesis in found]
    scores = [hypothesis["score"] for hypothesis in found]
    return {"seconds": seconds, "outputs": tokens, "scores": scores}
