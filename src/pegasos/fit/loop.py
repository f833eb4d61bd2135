"""The one loop around every solver: it runs, certifies, records, and asks whether to stop."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TextIO, cast

import numpy as np

from pegasos.fit.certificate import Certificate
from pegasos.fit.engine import CLOSE, MAX_ITER, Engine, saved
from pegasos.fit.interrupt import Interrupts
from pegasos.fit.kernel_engine import KernelEngine
from pegasos.fit.resume import CheckpointFile
from pegasos.fit.trace import UNNAMED, Checkpoint, Trace
from pegasos.problems.base import Bounds
from pegasos.problems.kernel import KernelProblem
from pegasos.problems.kernel_certificate import certify as certify_kernel
from pegasos.problems.linear import Problem
from pegasos.problems.linear_certificate import certify
from pegasos.rows.views import Array

Callback = Callable[[Checkpoint], Any]

#: An objective of this share of the one of zero weights counts as zero: where the optimum is zero (all rows of one
#: class, constant targets), errors of 1e-12 in the best bias leave their square, and no gap is small relative to it.
ZERO = 1e-24

#: A bias at which a loss that only tends to zero counts as zero.
FAR = 64.0

#: Why a fit stops at the limit of time.
MAX_TIME = "max_time reached"

#: Relative gap below which rounding may be all there is, and certificates in a row that must not have made it smaller
#: before a fit is told so.
ROUNDING, IDLE = 1e-12, 3


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
    engine: Engine | KernelEngine = field(repr=False)


class Best(NamedTuple):
    """The model of the lowest objective so far, for each part, and those objectives.

    An engine with a true ``returns_last`` says itself which model is wanted: then it is the last one.
    """

    W: Array
    b: Array
    primal: Array


def run(
    problem: Problem | KernelProblem,
    engine: Engine | KernelEngine,
    limits: Limits,
    watch: Watch,
    file: CheckpointFile | None = None,
) -> Result:
    """Advance ``engine`` until a certificate is good enough or a limit is reached.

    An interrupt is let through as KeyboardInterrupt, or ends the fit with what there is (``on_interrupt="keep"``).
    With a ``file`` the fit goes on from what it holds and writes to it; it is removed when nothing is left to do, and
    left when the fit was cut short, by whatever it was.
    """
    loop = _Loop(problem, engine, limits, watch, file)
    with loop.interrupts.deferred() if file is not None else nullcontext():
        try:
            reason = None
            while reason is None:
                reason = loop.turn()
        except KeyboardInterrupt:
            if watch.on_interrupt == "raise":
                loop.save()
                raise
            try:
                reason = loop.certify(last=True) or "interrupted"
            except BaseException:  # a second Ctrl-C, say
                loop.save()
                raise
        except BaseException:
            loop.save()
            raise
        if file is not None:
            if loop.converged or reason == CLOSE or engine.stuck not in (None, MAX_ITER):
                file.done(loop.save)
            else:
                loop.save()
    return loop.result(reason)


def _without_weights(problem: Problem) -> Best:
    """Weights of zero and their best biases: the optimum of parts whose targets are all equal."""
    W = np.zeros(problem.model_shape)
    bounds = certify(problem, W, np.zeros(problem.outputs), None)
    far = np.copysign(FAR, bounds.b)
    value = problem.mean_losses(np.tile(far, (problem.examples.m, 1)))
    lower = value < bounds.primal
    return Best(W, np.where(lower, far, bounds.b), np.where(lower, value, bounds.primal))


def _saved_trace(own: dict[str, Array]) -> Trace:
    """The trace of a checkpoint, a column for each of its names; before they had names it was one table."""
    if "trace" in own:
        return Trace.of_columns(dict(zip(UNNAMED, saved(own, "trace", (None, len(UNNAMED))).T, strict=True)))
    names = [name for name in own if name.startswith("trace.")]
    return Trace.of_columns({name.removeprefix("trace."): saved(own, name, (None,)) for name in names})


class _Loop:
    """A turn is a piece of work (``advance``) and what is made of it (``judge``: certify, ``learn``).

    Between the two, and after them, engine and loop can be saved. What a certificate changes in the loop is not yet
    settled before the engine has learnt from it: a fit that ends or breaks off there is saved as before the
    certificate, so that going on, with a higher limit say, is as if it had never stopped.
    """

    def __init__(
        self,
        problem: Problem | KernelProblem,
        engine: Engine | KernelEngine,
        limits: Limits,
        watch: Watch,
        file: CheckpointFile | None = None,
    ) -> None:
        self.problem, self.engine, self.limits, self.watch, self.file = problem, engine, limits, watch, file
        self.began = time.perf_counter()
        self.trace = Trace()
        # No loss is negative: u = 0 bounds every problem from below, if its squared norms are not negative either.
        self.dual = np.full(problem.parts, -np.inf if isinstance(problem, KernelProblem) else 0.0)
        self.scale = np.maximum(problem.at_zero(), np.finfo(float).tiny)
        self.best: Best | None = None
        self.interrupts = Interrupts()
        self.advanced = False
        resumed = file is not None and self._resume(file)
        if isinstance(problem, Problem) and problem.constant and not resumed:
            self.best = _without_weights(problem)
        self._settle()
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
        if (reason := self.certify(last=limit is not None) or limit) is not None:
            return reason
        with self.interrupts.change():
            self.engine.learn(self.bounds)
            self._settle()
            self.advanced = False
        return None

    def _settle(self) -> None:
        self.settled = self.dual, self.best, len(self.trace)

    def certify(self, *, last: bool = False) -> str | None:
        """Recompute the bounds of the current weights, tell everybody what is best, and say why to stop, or None."""
        W, u, bounds = self._judged(last=last)
        self.bounds = bounds
        # Every dual value is a lower bound for good, and the weights of the lowest objective stay the best there are.
        self.dual = np.fmax(self.dual, bounds.dual)
        best = self.best = self._better(Best(W, bounds.b, bounds.primal))
        self.u = u if np.isfinite(bounds.dual).all() else None
        gap = np.maximum(best.primal - self.dual, 0.0)
        small, zero = gap <= self.limits.tol * best.primal, best.primal <= ZERO * self.scale
        # A fit that has run away to infinity has an infinite gap, whatever it is compared with.
        self.converged = bool(np.all((small | zero) & np.isfinite(best.primal) & np.isfinite(gap)))
        checkpoint = self._checkpoint(best)
        self.trace.append(checkpoint)
        if self.watch.verbose:
            self._say(
                f"{checkpoint.epochs:9.2f}  {checkpoint.seconds:9.3f}  {checkpoint.primal:13.7g}  "
                f"{checkpoint.dual:13.7g}  {checkpoint.relative_gap:13.3e}"
            )
        # The callback has weights of its own: what it does to them must not reach the best ones.
        ask = self.watch.callback
        if ask is not None and ask(replace(checkpoint, coef=best.W.copy(), intercept=best.b.copy())):
            return "stopped by the callback"
        small_enough = "gap <= tol * primal" if small.all() else "the objective is zero but for rounding"
        if self.converged and not self._worth_more(checkpoint):
            return small_enough
        if (why := self.engine.stuck or self._idle(gap, best.primal)) is not None:
            return small_enough if self.converged else why
        return None

    def _better(self, found: Best) -> Best:
        """Of the best model so far and the one found, part by part that of the lower objective.

        Where there is no lower bound the problem need not be convex, and it is the last model that meets the
        conditions a solver stops at.
        """
        best = self.best
        if best is None or getattr(self.engine, "returns_last", False) or not np.isfinite(self.dual).all():
            return found
        lower = (found.primal <= best.primal) | ~np.isfinite(best.primal)
        if lower.all() or not lower.any():
            return found if lower.all() else best
        W = self.problem.choose(lower, found.W, best.W)
        return Best(W, np.where(lower, found.b, best.b), np.where(lower, found.primal, best.primal))

    def _idle(self, gap: Array, primal: Array) -> str | None:
        """Why to stop where all gaps are of the size of rounding and no longer fall; None elsewhere."""
        if len(self.trace) <= IDLE or not np.all(gap <= ROUNDING * primal):
            return None
        return None if self.trace[-1].gap < 0.5 * self.trace[-1 - IDLE].gap else CLOSE

    def _judged(self, *, last: bool) -> tuple[Array, Array | None, Bounds]:
        """Weights, or coefficients of the rows, and dual variables at hand, and the problem's bounds of them."""
        if isinstance(self.problem, KernelProblem):
            engine = cast(KernelEngine, self.engine)
            point = engine.point(last=last)
            bounds = certify_kernel(self.problem, point)
            engine.judged(bounds)
            return point.coef, point.duals, bounds
        linear = cast(Engine, self.engine)
        W, b = linear.model()
        u = linear.duals()
        bounds = certify(self.problem, W, b, u)
        now = bounds.W if W is None else W
        assert now is not None
        return now, u, bounds

    def _worth_more(self, now: Checkpoint) -> bool:
        """Whether to go on beyond ``tol``: iterations that cost next to nothing still halve the gap."""
        if not self.engine.eager or now.relative_gap < 1e-15:
            return False
        return len(self.trace) < 2 or now.gap < 0.5 * self.trace[-2].gap

    def _checkpoint(self, best: Best) -> Checkpoint:
        primal, dual = float(best.primal.sum()), float(self.dual.sum())
        gap = max(primal - dual, 0.0) if np.isfinite(primal) else float("inf")
        relative = gap / primal if 0 < primal < np.inf else float(gap) if gap == np.inf else float(gap > 0)
        return Checkpoint(self.engine.epochs, self._seconds(), primal, dual, gap, relative)

    def _limit(self) -> str | None:
        if self.engine.epochs >= self.limits.max_iter:
            return MAX_ITER
        if self.limits.max_time is not None and self._seconds() >= self.limits.max_time:
            return MAX_TIME
        return None

    def _seconds(self) -> float:
        """Since the fit began, in whatever process; the time between processes does not count."""
        return time.perf_counter() - self.began

    def save(self) -> None:
        """Write engine and loop as of the last moment at which they were whole; nothing if a change has failed."""
        if self.file is None or not self.interrupts.whole:
            return
        dual, best, count = self.settled
        own = {
            "dual": dual,
            "seconds": np.array([self._seconds()]),
            "advanced": np.array([float(self.advanced)]),
        }
        own |= {f"trace.{name}": column for name, column in self.trace[:count].columns().items()}
        if best is not None:
            own |= {f"best.{name}": array for name, array in best._asdict().items()}
        arrays = {f"loop.{k}": v for k, v in own.items()} | {f"engine.{k}": v for k, v in self.engine.state().items()}
        progress = {"epochs": float(self.engine.epochs), "seconds": self._seconds()}
        if count:
            last = self.trace[count - 1]
            progress |= {"primal": last.primal, "dual": last.dual, "relative_gap": last.relative_gap}
        self.file.save(arrays, progress)

    def _resume(self, file: CheckpointFile) -> bool:
        """Go on from what the file holds; False if there is none.

        Arrays that nobody asks for are passed over. One that is new, and that files of before lack, is asked for only
        where it is there, and has a default; see docs/architecture.md.
        """
        arrays = file.load()
        if arrays is None:
            return False
        own, engine = (
            {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
            for prefix in ("loop.", "engine.")
        )
        try:
            # P* ≤ P(0), up to rounding: a bound beyond that is none.
            low, high = float(self.dual.min()), float(self.scale.max() * (1 + 1e-6))
            self.dual = saved(own, "dual", (self.problem.parts,), low=low, high=high)
            trace = _saved_trace(own)
            seconds = saved(own, "seconds", (1,), low=0.0, high=1e12)
            self.advanced = bool(saved(own, "advanced", (1,), low=0, high=1, whole=True)[0])
            if "best.W" in own:
                self.best = Best(
                    saved(own, "best.W", self.problem.model_shape),
                    saved(own, "best.b", (self.problem.outputs,)),
                    saved(own, "best.primal", (self.problem.parts,)),
                )
            self.engine.restore(engine)
        except ValueError as error:
            raise file.damaged(error) from None
        self.trace = trace
        self.began = time.perf_counter() - float(seconds[0])
        return True

    def _say(self, line: str) -> None:
        print(line, file=self.watch.stream or sys.stderr, flush=True)

    def result(self, reason: str) -> Result:
        last, best = self.trace[-1], self.best
        assert best is not None
        certificate = Certificate(
            primal=last.primal,
            dual=last.dual,
            gap=last.gap,
            relative_gap=last.relative_gap,
            converged=self.converged,
            reason=reason,
            epochs=last.epochs,
            seconds=self._seconds(),
            primal_per_class=tuple(best.primal.tolist()),
            dual_per_class=tuple(self.dual.tolist()),
            goal_reached=not self.converged and reason in getattr(self.engine, "goals", ()),
            restricted_gap=getattr(self.engine, "restricted_gap", None),
        )
        return Result(best.W, best.b, self.u, certificate, self.trace, self.engine)
