"""Nothing but torch: what everything built on it begins with."""

from __future__ import annotations

import torch
from protocol import serve


class Contestant:
    def __init__(self, threads: int) -> None:
        torch.set_num_threads(threads)


if __name__ == "__main__":
    serve(Contestant)
