"""Taps: places in the bricks where somebody may listen, or put something else in.

    x = tap(self, "pattern", x)

is the identity unless a listener is present. A listener hears the tensor under its full name
("decoder.layers.2.cross_attention.pattern": the module's path, then the tap) and returns the tensor that goes on:
the same one to look, another one to intervene. Blocks within one another all hear, the outermost first: what it
puts in is what the inner ones see. Nothing is stored on modules; listening ends with its `with` block.

How many blocks are open anywhere in the process is counted besides, so that taps nobody listens to cost a glance at
one number. Whom a tap calls is decided per thread and context. A compiled graph stays whole while that number is
zero; under a listener, calls run as ordinary Python.

Knows names and tensors. Refuses to know what is done with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock

from torch import Tensor, nn

Hear = Callable[[str, Tensor], Tensor]
Wants = Callable[[str], bool]


class Listener:
    """Hears the taps of one model, under the model's own module paths."""

    def __init__(self, model: nn.Module, hear: Hear, wants: Wants) -> None:
        self.paths = {id(module): path for path, module in model.named_modules()}
        self.hear = hear
        self.wants = wants

    def name(self, module: nn.Module, tap_name: str) -> str:
        path = self.paths.get(id(module))
        return f"{path}.{tap_name}" if path else tap_name


_listeners: ContextVar[tuple[Listener, ...]] = ContextVar("listeners", default=())
_open = 0
_counting = Lock()


def tap(module: nn.Module, name: str, tensor: Tensor) -> Tensor:
    """The identity, unless somebody listens to this name."""
    return passed_on(module, name, tensor) if _open else tensor


def passed_on(module: nn.Module, name: str, tensor: Tensor) -> Tensor:
    for listener in _listeners.get():
        full = listener.name(module, name)
        if listener.wants(full):
            tensor = listener.hear(full, tensor)
    return tensor


def heard(module: nn.Module, *names: str) -> bool:
    """Does anybody listen to one of these taps? Attention then takes its explicit form, for this call only."""
    if not _open:
        return False
    return any(listener.wants(listener.name(module, name)) for listener in _listeners.get() for name in names)


def listening() -> bool:
    """Does anybody, anywhere, listen at all? Then decoding takes the plain step, whose taps can be heard."""
    return _open > 0


@contextmanager
def listen(model: nn.Module, hear: Hear, wants: Wants = lambda name: True) -> Iterator[None]:
    """While the block runs, `hear(name, tensor)` is called at every tap of `model` whose name is wanted."""
    token = _listeners.set((*_listeners.get(), Listener(model, hear, wants)))
    count(1)
    try:
        yield
    finally:
        count(-1)
        _listeners.reset(token)


def count(change: int) -> None:
    global _open
    with _counting:
        _open += change
