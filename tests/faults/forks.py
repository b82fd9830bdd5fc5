"""Training runs to be killed. Not a test: a process that tests/faults/conftest.py starts and talks to.

stdin, a line each:    {"table": …, "out": …, and one of:
                        "point": NAME, "nth": N        SIGKILL when files/disk.py reaches this point for the N-th time
                        "event": "validation" | "epoch" | "step", "nth": N
                        "cpu": SECONDS                 SIGKILL after so much processor time
                        "record": true                 to the end, noting every point that is reached}
stdout, a line each:   {"killed": bool, "status": N, "cpu": SECONDS, "points": […], "error": TEXT}

Everything is imported once, here; each run is a fork, so that it costs its steps and nothing else.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import torch

from clearhead.files import disk
from clearhead.verbs import train as verb
from clearhead.verbs import validation
from clearhead.verbs.quiet import Quiet

TICK = 0.004
PER_SECOND = os.sysconf("SC_CLK_TCK")


class Countdown:
    """Dies at the n-th call."""

    def __init__(self, nth: int) -> None:
        self.left = nth

    def __call__(self) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


class Listening(Quiet):
    """Dies at a step, or at the first of an epoch."""

    def __init__(self, event: str, countdown: Countdown) -> None:
        super().__init__()
        self.event, self.countdown, self.epoch = event, countdown, 0

    def stepped(self, state: Any, gradients: Any, lr_factor: float) -> None:
        if self.event == "step" or (self.event == "epoch" and state.epoch > self.epoch):
            self.countdown()
        self.epoch = state.epoch


def arrange(request: dict[str, Any], points: list[str]) -> Quiet:
    """Lay the trap this run is to fall into."""
    countdown = Countdown(request.get("nth", 1))
    if "point" in request:
        disk.reached = lambda point: countdown() if point == request["point"] else None
    if request.get("record"):
        disk.reached = points.append
    if request.get("event") == "validation":
        decode = validation.decode

        def dying(*args: Any, **named: Any) -> Any:
            countdown()
            return decode(*args, **named)

        validation.decode = dying
    return Listening(request.get("event", ""), countdown)


def child(request: dict[str, Any], report: int) -> None:
    points: list[str] = []
    try:
        verb.train(request["table"], Path(request["out"]), arrange(request, points))
        told = {"points": points}
    except BaseException:
        told = {"error": traceback.format_exc()}
    with os.fdopen(report, "w") as file:
        json.dump(told, file)
    os._exit(0 if "points" in told else 1)


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / PER_SECOND


def serve(request: dict[str, Any]) -> dict[str, Any]:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        child(request, writing)
    os.close(writing)
    used = 0.0
    while "cpu" in request:
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        used = cpu_seconds(pid)
        if ended is not None:
            break
        if used >= request["cpu"]:
            os.kill(pid, signal.SIGKILL)
            break
        time.sleep(TICK)
    with os.fdopen(reading) as file:
        text = file.read()
    _, status, usage = os.wait4(pid, 0)
    told = json.loads(text) if text else {}
    return {"killed": os.WIFSIGNALED(status), "status": status, "cpu": usage.ru_utime + usage.ru_stime} | told


def main() -> None:
    torch.set_num_threads(1)
    for line in sys.stdin:
        print(json.dumps(serve(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
