"""The line that shows a fit's progress on a terminal, written over and over; elsewhere nothing is written."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import sys
import threading
import time
from typing import TYPE_CHECKING, TextIO

from pegasos.util.numbers import duration

if TYPE_CHECKING:
    from pegasos.fit.trace import Checkpoint

_REDRAW_SECONDS = 0.25  # seconds between two drawings while nothing else happens


class Progress:
    """A context manager; ``callback`` is for an estimator, ``stage`` names what happens when there is no fit.

    ``say`` writes remarks, on terminals and elsewhere.

    A thread draws the time that has passed between two checkpoints, which can be far apart on large data.
    """

    def __init__(self, *, quiet: bool, stream: TextIO | None = None) -> None:
        self._stream, self._quiet = stream or sys.stderr, quiet
        self._shown = not quiet and self._stream.isatty() and os.environ.get("TERM") != "dumb"
        self._lock, self._over = threading.Lock(), threading.Event()
        self._stage, self._began = "", time.perf_counter()
        self._thread = threading.Thread(target=self._draw_on, daemon=True)
        self._history: list[tuple[float, float]] = []
        self._rows, self._unit, self._tol = 0, "rows", 0.0
        self._limits: tuple[float | None, float | None] = (None, None)

    def __enter__(self) -> Progress:
        if self._shown:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._shown:
            self._write("")

    def stage(self, text: str) -> None:
        """Something that takes a while begins."""
        with self._lock:
            self._stage, self._began = text, time.perf_counter()
        self._draw()

    def say(self, remark: str) -> None:
        """A line that stays, unless all is to be quiet."""
        if not self._quiet:
            self.warn(remark)

    def warn(self, remark: str) -> None:
        """A line that stays, in any case."""
        with self._lock:
            if self._shown:
                self._write("")
            with contextlib.suppress(OSError):
                print(f"pegasos: {remark}", file=self._stream, flush=True)
        self._draw()

    def fitting(
        self, rows: int, tol: float, max_iter: float | None, max_time: float | None, unit: str = "rows"
    ) -> None:
        """A fit of so many rows begins, with these limits; ``unit``: what they are called."""
        self._rows, self._tol, self._limits = rows, tol, (None if max_iter is None else float(max_iter), max_time)
        self._unit = unit
        self._history.clear()
        self.stage("training")

    def callback(self, point: Checkpoint) -> None:
        """What an estimator calls at each checkpoint."""
        if not self._shown:
            return
        self._history.append((point.seconds, point.relative_gap))
        speed = self._rows * point.epochs / point.seconds if point.seconds > 0 else 0.0
        parts = [
            f"epoch {point.epochs:.1f}",
            f"{_short(speed)} {self._unit}/s",
            f"primal {point.primal:.6g}",
            f"dual {point.dual:.6g}",
            f"gap {point.relative_gap:.2e}",
        ]
        if (rest := self._remaining(point)) is not None:
            parts.append(f"ETA {duration(rest)}")
        with self._lock:
            self._stage = "  ".join(parts)
        self._draw()

    def _remaining(self, point: Checkpoint) -> float | None:
        """Seconds to go, if the gap goes on falling as fast as lately; no more than the limits allow."""
        guesses = []
        recent = [(t, g) for t, g in self._history[-6:] if 0 < g < math.inf]
        if self._tol > 0 and len(recent) > 1:
            (t0, g0), (t1, g1) = recent[0], recent[-1]
            if g1 < g0 and t1 > t0:
                guesses.append(math.log(max(g1 / self._tol, 1.0)) * (t1 - t0) / math.log(g0 / g1))
        epochs, seconds = self._limits
        if seconds is not None:
            guesses.append(max(seconds - point.seconds, 0.0))
        if epochs is not None and point.epochs > 0 and guesses:
            guesses.append(max(epochs - point.epochs, 0.0) * point.seconds / point.epochs)
        return min(guesses, default=None)

    def _draw_on(self) -> None:
        while not self._over.wait(_REDRAW_SECONDS):
            self._draw()

    def _draw(self) -> None:
        if self._shown:
            with self._lock:
                self._write(f"{self._stage}  [{time.perf_counter() - self._began:.1f} s]")

    def _write(self, line: str) -> None:
        width = shutil.get_terminal_size().columns - 1
        try:
            self._stream.write("\r\x1b[K" + line[:width])
            self._stream.flush()
        except OSError:  # the terminal is gone, which is no reason to end a fit
            self._shown = False


def _short(value: float) -> str:
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:.3g}{unit}"
    return f"{value:.3g}"
