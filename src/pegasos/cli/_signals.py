"""Ctrl-C, SIGTERM and SIGHUP while a command runs."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from pegasos.fit.interrupt import NUMBERS


class Signals:
    """While inside, the signals that end a program raise KeyboardInterrupt instead, and none of them is lost.

    Those that are ignored when the command begins (after ``nohup``, in the background of a shell without job control)
    stay ignored, and handlers of a program that runs the command as a function are left alone.
    """

    def __init__(self) -> None:
        #: The number of the last signal that came.
        self.last: int | None = None
        #: Whether one has come that has not been raised yet.
        self.pending = False
        self._before: dict[int, Any] = {}
        self._held, self._sent_again = 0, False

    def __enter__(self) -> Signals:
        self._outermost = sys._getframe(1)
        if threading.current_thread() is threading.main_thread():
            for number in NUMBERS:
                before = signal.getsignal(number)
                if before in (signal.SIG_DFL, signal.default_int_handler):
                    self._before[number] = before
                    signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        self.pending = False
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @property
    def code(self) -> int:
        """The exit code of a command that was ended by the last signal."""
        return 128 + int(signal.SIGINT if self.last is None else self.last)

    @contextmanager
    def held(self) -> Iterator[None]:
        """While inside, signals only become ``pending``."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1

    def check(self) -> None:
        """Raise what was held, or what was raised where exceptions are ignored, as in destructors."""
        if self.pending:
            raise KeyboardInterrupt

    def _handle(self, number: int, frame: FrameType | None) -> None:
        again, self._sent_again = self._sent_again, False
        first = not self.pending
        self.last, self.pending = number, True
        if self._held:
            return
        if (first or again) and self._importing(frame):
            _thread.start_new_thread(self._send_again, (number,))
            return
        raise KeyboardInterrupt

    _handle.interrupts = True  # type: ignore[attr-defined]

    def _importing(self, frame: FrameType | None) -> bool:
        """Whether a module is being imported. Exceptions raised there can be swallowed, or break a module for good."""
        while frame is not None and frame is not self._outermost:
            if frame.f_code.co_filename.startswith("<frozen importlib"):
                return True
            frame = frame.f_back
        return False

    def _send_again(self, number: int) -> None:
        time.sleep(0.02)
        if self.pending:
            self._sent_again = True
            if hasattr(signal, "pthread_kill"):
                signal.pthread_kill(threading.main_thread().ident or 0, number)
            else:
                _thread.interrupt_main(signal.Signals(number))
