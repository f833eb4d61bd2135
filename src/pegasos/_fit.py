"""The one loop around every solver: it runs, certifies, records, and asks whether to stop."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TextIO

import numpy as np

from pegasos._certificate import Certificate, certify
from pegasos._data import Array
from pegasos._engine import Engine
from pegasos._problem import Problem
from pegasos._trace import Checkpoint, Trace

Callback = Callable[[Checkpoint], Any]


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


def run(problem: Problem, engine: Engine, limits: Limits, watch: Watch) -> Result:
    """Advance ``engine`` until a certificate is good enough or a limit is reached.

    An interrupt is let through as KeyboardInterrupt, or ends the fit with what there is (``on_interrupt="keep"``).
    """
    loop = _Loop(problem, engine, limits, watch)
    reason = None
    while reason is None:
        try:
            reason = loop.turn()
        except KeyboardInterrupt:
            if watch.on_interrupt == "raise":
                raise
            reason = loop.certify() or "interrupted"
    return loop.result(reason)


class _Loop:
    def __init__(self, problem: Problem, engine: Engine, limits: Limits, watch: Watch) -> None:
        self.problem, self.engine, self.limits, self.watch = problem, engine, limits, watch
        self.began = time.perf_counter()
        self.trace = Trace()
        self.dual = np.zeros(problem.parts)  # no loss is negative: u = 0 bounds every problem from below
        self.scale = np.maximum(problem.at_zero(), np.finfo(float).tiny)
        if watch.verbose:
            self._say("   epochs    seconds         primal           dual   relative gap")

    def turn(self) -> str | None:
        """One piece of work, and a certificate if it is time for one; why to stop, or None."""
        self.engine.advance()
        limit = self._limit()
        if limit is None and not self.engine.due(self.limits.tol):
            return None
        return self.certify() or limit

    def certify(self) -> str | None:
        """Recompute the bounds of the current weights, tell everybody, and say why to stop, or None."""
        W, b = self.engine.model()
        u = self.engine.duals()
        bounds = certify(self.problem, W, b, u)
        # Every dual value is a lower bound for good; the primal value is that of the weights at hand.
        own = self.engine.lower_bound()
        self.dual = np.fmax(self.dual, bounds.dual if own is None else np.fmax(bounds.dual, own))
        self.W, self.b, self.u, self.primal = W, bounds.b, u, bounds.primal
        gap = np.maximum(self.primal - self.dual, 0.0)
        # At an optimum of zero (a perfect fit) no gap is small relative to it: judge by the loss at zero instead. A fit
        # that has run away to infinity has an infinite gap, whatever it is compared with.
        small = gap <= self.limits.tol * np.maximum(self.primal, 1e-9 * self.scale)
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
        if self.converged and not self._worth_more(checkpoint):
            return "gap <= tol * primal"
        if (why := self.engine.stuck) is not None:
            return "gap <= tol * primal" if self.converged else why
        self.engine.learn(bounds)
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
        return Checkpoint(
            self.engine.epochs, time.perf_counter() - self.began, primal, dual, gap, relative, self.W, self.b
        )

    def _limit(self) -> str | None:
        if self.engine.epochs >= self.limits.max_iter:
            return "max_iter reached"
        if self.limits.max_time is not None and time.perf_counter() - self.began >= self.limits.max_time:
            return "max_time reached"
        return None

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
            seconds=time.perf_counter() - self.began,
            primal_per_class=tuple(map(float, self.primal)),
            dual_per_class=tuple(map(float, self.dual)),
        )
        return Result(self.W, self.b, self.u, certificate, self.trace, self.engine)
