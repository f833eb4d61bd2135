"""Ctrl-C that waits for the end of a change, so that what is then saved is whole."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Interrupts:
    """Whether a change is under way, and a Ctrl-C that came meanwhile.

    Only where Python's own handler is in charge: other handlers, and other threads than the main one, are left alone.
    """

    def __init__(self) -> None:
        self.whole = True
        self._waiting = False

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """While inside, a Ctrl-C during :meth:`change` is raised at its end; a second one at once."""
        mine = threading.current_thread() is threading.main_thread()
        if not mine or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            yield
            return
        signal.signal(signal.SIGINT, self._handle)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    @contextmanager
    def change(self) -> Iterator[None]:
        """A change that is to be made as a whole; ``whole`` stays False if it fails."""
        self.whole = False
        yield
        self.whole = True
        if self._waiting:
            self._waiting = False
            raise KeyboardInterrupt

    def _handle(self, number: int, frame: Any) -> None:
        if self.whole or self._waiting:
            raise KeyboardInterrupt
        self._waiting = True
