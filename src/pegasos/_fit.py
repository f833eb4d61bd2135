"""The one loop around every solver: it runs, certifies, records, and asks whether to stop."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal, TextIO

import numpy as np

from pegasos._certificate import Bounds, Certificate, certify
from pegasos._checkpoint import CheckpointFile
from pegasos._data import Array
from pegasos._engine import MAX_ITER, Engine, saved
from pegasos._interrupt import Interrupts
from pegasos._kernel_problem import KernelProblem
from pegasos._problem import Problem
from pegasos._trace import FIELDS, Checkpoint, Trace

Callback = Callable[[Checkpoint], Any]

#: What computes the bounds of weights, biases and dual variables.
Judge = Callable[[Any, Any, Array, Array | None], Bounds]


#: An objective that is this share of the one of zero weights counts as zero: no gap is small relative to it.
NOTHING = 1e-9


@dataclass(frozen=True)
class Limits:
    """When to stop: at relative gap ``tol``, or after so many epochs or seconds."""

    tol: float
    max_iter: int
    max_time: float | None = None


@dataclass(frozen=True)
class Watch:
    """Who looks on: a callback that may end the fit, a stream for progress, and what Ctrl-C does."""

    callback: Callback | None = None
    verbose: bool = False
    stream: TextIO | None = None
    on_interrupt: Literal["raise", "keep"] = "raise"


@dataclass(frozen=True)
class Result:
    """The weights (outputs × columns), biases, dual variables, certificate and trace of a fit."""

    W: Array
    b: Array
    u: Array | None
    certificate: Certificate
    trace: Trace
    engine: Engine = field(repr=False)


def run(
    problem: Problem | KernelProblem,
    engine: Engine,
    limits: Limits,
    watch: Watch,
    file: CheckpointFile | None = None,
    judge: Judge = certify,
) -> Result:
    """Advance ``engine`` until a certificate is good enough or a limit is reached.

    An interrupt is let through as KeyboardInterrupt, or ends the fit with what there is (``on_interrupt="keep"``).
    With a ``file`` the fit goes on from what it holds and writes to it; it is removed when nothing is left to do, and
    left when the fit was cut short, by whatever it was. ``judge`` is what certifies.
    """
    loop = _Loop(problem, engine, limits, watch, file, judge)
    with loop.interrupts.deferred() if file is not None else nullcontext():
        try:
            reason = None
            while reason is None:
                reason = loop.turn()
        except KeyboardInterrupt:
            if watch.on_interrupt == "raise":
                loop.save()
                raise
            reason = loop.certify() or "interrupted"
        except BaseException:
            loop.save()
            raise
        if file is not None:
            if loop.converged or engine.stuck not in (None, MAX_ITER):
                file.remove()
            else:
                loop.save()
    return loop.result(reason)


class _Loop:
    """A turn is a piece of work (``advance``) and what is made of it (``judge``: certify, ``learn``).

    Between the two, and after them, engine and loop can be saved. What a certificate changes in the loop is not yet
    settled before the engine has learnt from it: a fit that ends or breaks off there is saved as before the
    certificate, so that going on, with a higher limit say, is as if it had never stopped.
    """

    def __init__(
        self,
        problem: Problem | KernelProblem,
        engine: Engine,
        limits: Limits,
        watch: Watch,
        file: CheckpointFile | None = None,
        judge: Judge = certify,
    ) -> None:
        self.problem, self.engine, self.limits, self.watch, self.file = problem, engine, limits, watch, file
        self.judge = judge
        self.began = time.perf_counter()
        self.trace = Trace()
        self.dual = np.zeros(problem.parts)  # no loss is negative: u = 0 bounds every problem from below
        self.scale = np.maximum(problem.at_zero(), np.finfo(float).tiny)
        self.interrupts = Interrupts()
        self.advanced = False
        resumed = file is not None and self._resume(file)
        self.settled = self.dual, len(self.trace)
        if watch.verbose:
            if resumed:
                self._say(f"resumed after {engine.epochs:.2f} epochs and {self._seconds():.3f} seconds")
            self._say("   epochs    seconds         primal           dual   relative gap")

    def turn(self) -> str | None:
        """One piece of work, and a certificate if it is time for one; why to stop, or None."""
        if not self.advanced:
            with self.interrupts.change():
                self.engine.advance()
                self.advanced = True
            if self.file is not None and self.file.due():
                self.save()
        return self._judge()

    def _judge(self) -> str | None:
        limit = self._limit()
        if limit is None and not self.engine.due(self.limits.tol):
            self.advanced = False
            return None
        if (reason := self.certify() or limit) is not None:
            return reason
        with self.interrupts.change():
            self.engine.learn(self.bounds)
            self.settled = self.dual, len(self.trace)
            self.advanced = False
        return None

    def certify(self) -> str | None:
        """Recompute the bounds of the current weights, tell everybody, and say why to stop, or None."""
        W, b = self.engine.model()
        u = self.engine.duals()
        self.bounds = bounds = self.judge(self.problem, W, b, u)
        # Every dual value is a lower bound for good; the primal value is that of the weights at hand.
        if np.isnan(bounds.dual).any():  # nothing bounds this problem, not even zero
            self.dual = np.full_like(self.dual, -np.inf)
        own = self.engine.lower_bound()
        self.dual = np.fmax(self.dual, bounds.dual if own is None else np.fmax(bounds.dual, own))
        self.W = bounds.W if W is None else W
        self.b, self.u, self.primal = bounds.b, u, bounds.primal
        gap = np.maximum(self.primal - self.dual, 0.0)
        # At an optimum of zero (a perfect fit) no gap is small relative to it: judge by the loss at zero instead. A fit
        # that has run away to infinity has an infinite gap, whatever it is compared with.
        small = gap <= self.limits.tol * np.maximum(self.primal, NOTHING * self.scale)
        self.converged = bool(np.all(small & np.isfinite(self.primal) & np.isfinite(gap)))
        checkpoint = self._checkpoint()
        self.trace.append(checkpoint)
        if self.watch.verbose:
            self._say(
                f"{checkpoint.epochs:9.2f}  {checkpoint.seconds:9.3f}  {checkpoint.primal:13.7g}  "
                f"{checkpoint.dual:13.7g}  {checkpoint.relative_gap:13.3e}"
            )
        if self.watch.callback is not None and self.watch.callback(checkpoint):
            return "stopped by the callback"
        small_enough = "gap <= tol * primal"
        if not np.all(gap <= self.limits.tol * self.primal):
            small_enough = f"gap <= tol * {NOTHING:g} of the objective of zero weights"
        if self.converged and not self._worth_more(checkpoint):
            return small_enough
        if (why := self.engine.stuck) is not None:
            return small_enough if self.converged else why
        return None

    def _worth_more(self, now: Checkpoint) -> bool:
        """Whether to go on beyond ``tol``: iterations that cost next to nothing still halve the gap."""
        if not self.engine.eager or now.relative_gap < 1e-15:
            return False
        return len(self.trace) < 2 or now.gap < 0.5 * self.trace[-2].gap

    def _checkpoint(self) -> Checkpoint:
        primal, dual = float(self.primal.sum()), float(self.dual.sum())
        gap = max(primal - dual, 0.0) if np.isfinite(primal) else float("inf")
        relative = gap / primal if 0 < primal < np.inf else float(gap) if gap == np.inf else float(gap > 0)
        return Checkpoint(self.engine.epochs, self._seconds(), primal, dual, gap, relative, self.W, self.b)

    def _limit(self) -> str | None:
        if self.engine.epochs >= self.limits.max_iter:
            return MAX_ITER
        if self.limits.max_time is not None and self._seconds() >= self.limits.max_time:
            return "max_time reached"
        return None

    def _seconds(self) -> float:
        """Since the fit began, in whatever process; the time between processes does not count."""
        return time.perf_counter() - self.began

    def save(self) -> None:
        """Write engine and loop as of the last moment at which they were whole; nothing if a change has failed."""
        if self.file is None or not self.interrupts.whole:
            return
        dual, count = self.settled
        records = [[getattr(record, name) for name in FIELDS] for record in self.trace[:count]]
        own = {
            "dual": dual,
            "trace": np.array(records, dtype=float).reshape(-1, len(FIELDS)),
            "seconds": np.array([self._seconds()]),
            "advanced": np.array([float(self.advanced)]),
        }
        arrays = {f"loop.{k}": v for k, v in own.items()} | {f"engine.{k}": v for k, v in self.engine.state().items()}
        progress = {"epochs": float(self.engine.epochs), "seconds": self._seconds()}
        if count:
            last = self.trace[count - 1]
            progress |= {"primal": last.primal, "dual": last.dual, "relative_gap": last.relative_gap}
        self.file.save(arrays, progress)

    def _resume(self, file: CheckpointFile) -> bool:
        """Go on from what the file holds; False if there is none."""
        arrays = file.load()
        if arrays is None:
            return False
        own, engine = (
            {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
            for prefix in ("loop.", "engine.")
        )
        try:
            # P* ≤ P(0), up to rounding: a bound beyond that is none.
            self.dual = saved(own, "dual", (self.problem.parts,), low=0.0, high=float(self.scale.max() * (1 + 1e-6)))
            trace = saved(own, "trace", (None, len(FIELDS)))
            seconds = saved(own, "seconds", (1,), low=0.0, high=1e12)
            self.advanced = bool(saved(own, "advanced", (1,), low=0, high=1, whole=True)[0])
            self.engine.restore(engine)
        except ValueError as error:
            raise file.damaged(error) from None
        self.trace = Trace([Checkpoint(*row) for row in trace.tolist()])
        self.began = time.perf_counter() - float(seconds[0])
        return True

    def _say(self, line: str) -> None:
        print(line, file=self.watch.stream or sys.stderr, flush=True)

    def result(self, reason: str) -> Result:
        last = self.trace[-1]
        certificate = Certificate(
            primal=last.primal,
            dual=last.dual,
            gap=last.gap,
            relative_gap=last.relative_gap,
            converged=self.converged,
            reason=reason,
            epochs=last.epochs,
            seconds=self._seconds(),
            primal_per_class=tuple(map(float, self.primal)),
            dual_per_class=tuple(map(float, self.dual)),
        )
        assert self.W is not None
        return Result(self.W, self.b, self.u, certificate, self.trace, self.engine)
