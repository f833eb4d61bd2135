"""Ctrl-C that waits for the end of a change, so that what is then saved is whole."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Self

#: The signals that may mean Ctrl-C, where the system has them.
NUMBERS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))

Handler = Callable[[int, FrameType | None], object]


def is_interrupt(handler: object) -> bool:
    """Whether a handler raises KeyboardInterrupt: Python's own, and those with an attribute ``interrupts``."""
    return handler is signal.default_int_handler or bool(getattr(handler, "interrupts", False))


class Interrupts:
    """Whether a change is under way, and a Ctrl-C that came meanwhile.

    Only where :func:`is_interrupt`: other handlers, and other threads than the main one, are left alone.
    """

    def __init__(self) -> None:
        self.whole = True
        self._before: dict[int, Handler] = {}
        self._waiting: int | None = None

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """While inside, a Ctrl-C during :meth:`change` is raised at its end; a second one at once."""
        mine = threading.current_thread() is threading.main_thread()
        found = {number: signal.getsignal(number) for number in NUMBERS} if mine else {}
        self._before = {n: handler for n, handler in found.items() if callable(handler) and is_interrupt(handler)}
        try:
            try:
                for number in self._before:
                    signal.signal(number, self._handle)
                yield
            finally:
                self._set_back()
        finally:
            self._set_back()  # once more: a Ctrl-C may have come in the middle of it

    def _set_back(self) -> None:
        """The handlers there were."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def change(self) -> Self:
        """A change that is to be made as a whole, in a ``with``; ``whole`` stays False if it fails.

        Tiny fits make one every few microseconds, which is what a generator for a context would take.
        """
        return self

    def __enter__(self) -> None:
        self.whole = False

    def __exit__(self, failed: object, *_: object) -> None:
        if failed is not None:
            return
        self.whole = True
        if self._waiting is not None:
            number, self._waiting = self._waiting, None
            self._before[number](number, None)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.whole or self._waiting is not None:
            self._before[number](number, frame)
        else:
            self._waiting = number
