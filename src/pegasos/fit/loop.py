"""The one loop around every solver: it runs, certifies, records, and asks whether to stop."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Generic, Literal, NamedTuple, TextIO, cast

import numpy as np

from pegasos.fit.certificate import Certificate
from pegasos.fit.engine import MAX_ITER, ROUNDING_REACHED, Engine
from pegasos.fit.interrupt import Interrupts
from pegasos.fit.resume import CheckpointFile
from pegasos.fit.trace import UNNAMED_COLUMNS, Checkpoint, Trace
from pegasos.problems.base import Duals, M, Problem
from pegasos.rows.views import Array
from pegasos.util.fields import saved

#: What a user may hand over: it is told of a moment of the fit, and ends it by answering something true.
Callback = Callable[[Checkpoint], object]

#: An objective of this share of the one of zero weights counts as zero: where the optimum is zero (all rows of one
#: class, constant targets), errors of 1e-12 in the best bias leave their square, and no gap is small relative to it.
ZERO_OBJECTIVE_SHARE = 1e-24

#: Why a fit stops at the limit of time.
MAX_TIME = "max_time reached"

#: Relative gap below which rounding may be all there is, and certificates in a row that must not have made it smaller
#: before a fit is told so.
MAX_ROUNDING_GAP, MAX_IDLE_CERTIFICATES = 1e-12, 3


@dataclass(frozen=True)
class Limits:
    """When to stop: at relative gap ``tol``, or after so many epochs or seconds."""

    tol: float
    max_iter: float | None = None
    max_time: float | None = None


@dataclass(frozen=True)
class Watch(Generic[M]):
    """What is told of a fit and may end it: a callback, which is told of the best model too; progress lines; Ctrl-C."""

    callback: Callable[[Checkpoint, M], object] | None = None
    verbose: bool = False
    stream: TextIO | None = None
    on_interrupt: Literal["raise", "keep"] = "raise"


@dataclass(frozen=True)
class Result(Generic[M]):
    """The model, dual variables, certificate and trace of a fit."""

    model: M
    duals: Duals | None
    certificate: Certificate
    trace: Trace
    engine: Engine[M] = field(repr=False)


class Best(NamedTuple, Generic[M]):
    """The model of the lowest objective so far, for each part, and those objectives."""

    model: M
    primal: Array


def run(
    problem: Problem[M],
    engine: Engine[M],
    limits: Limits,
    watch: Watch[M],
    file: CheckpointFile | None = None,
) -> Result[M]:
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
            if loop.converged or reason == ROUNDING_REACHED or engine.stuck not in (None, MAX_ITER):
                file.done(loop.save)
            else:
                loop.save()
    return loop.result(reason)


def _saved_trace(own: dict[str, Array]) -> Trace:
    """The trace of a checkpoint, a column for each of its names; before they had names it was one table."""
    if "trace" in own:
        return Trace.of_columns(
            dict(zip(UNNAMED_COLUMNS, saved(own, "trace", (None, len(UNNAMED_COLUMNS))).T, strict=True))
        )
    names = [name for name in own if name.startswith("trace.")]
    return Trace.of_columns({name.removeprefix("trace."): saved(own, name, (None,)) for name in names})


class _Loop(Generic[M]):
    """A turn is a piece of work (``advance``) and what is made of it (``judge``: certify, ``learn``).

    Between the two, and after them, engine and loop can be saved. What a certificate changes in the loop is not yet
    settled before the engine has learnt from it: a fit that ends or breaks off there is saved as before the
    certificate, so that going on, with a higher limit say, is as if it had never stopped.
    """

    def __init__(
        self,
        problem: Problem[M],
        engine: Engine[M],
        limits: Limits,
        watch: Watch[M],
        file: CheckpointFile | None = None,
    ) -> None:
        self.problem, self.engine, self.limits, self.watch, self.file = problem, engine, limits, watch, file
        self.began = time.perf_counter()
        self.trace = Trace()
        self.dual = problem.first_bounds()
        self.best: Best[M] | None = None
        self.interrupts = Interrupts()
        self.advanced = False
        engine.resumable = file is not None
        resumed = file is not None and self._resume(file)
        if not resumed and (known := problem.trivial()) is not None:
            self.best = Best(*known)
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
        """Recompute the bounds of the current weights, tell callback and engine, and say why to stop, or None."""
        point = self.engine.point(last=last)
        bounds = self.bounds = self.problem.certify(point)
        self.engine.judged(bounds)
        # Every dual value is a lower bound for good, and the weights of the lowest objective stay the best there are.
        self.dual = np.fmax(self.dual, bounds.dual)
        best = self.best = self._better(Best(bounds.model, bounds.primal))
        self.duals = point.duals if np.isfinite(bounds.dual).all() else None
        gap = np.maximum(best.primal - self.dual, 0.0)
        with np.errstate(invalid="ignore"):  # tol=0 of an objective that is infinite, or unknown
            small = gap <= self.limits.tol * best.primal
        zero = best.primal <= ZERO_OBJECTIVE_SHARE * self._at_zero()
        # A fit that has run away to infinity has an infinite gap, whatever it is compared with.
        self.converged = bool(np.all((small | zero) & np.isfinite(best.primal) & np.isfinite(gap)))
        checkpoint = self._checkpoint(best)
        self.trace.append(checkpoint)
        if self.watch.verbose:
            self._say(
                f"{checkpoint.epochs:9.2f}  {checkpoint.seconds:9.3f}  {checkpoint.primal:13.7g}  "
                f"{checkpoint.dual:13.7g}  {checkpoint.relative_gap:13.3e}"
            )
            if (found := bounds.sampled) is not None:
                self._say(f"objective estimated as {found.value:.7g} ({found.low:.7g} … {found.high:.7g})")
        if self.watch.callback is not None and self.watch.callback(checkpoint, best.model):
            return "stopped by the callback"
        small_enough = "gap <= tol * primal" if small.all() else "the objective is zero but for rounding"
        if self.converged and not self._worth_more(checkpoint):
            return small_enough
        if (why := self.engine.stuck or self._idle(gap, best.primal)) is not None:
            return small_enough if self.converged else why
        return None

    def _at_zero(self) -> Array:
        """P of zero weights, for each part."""
        return np.maximum(self.problem.at_zero(), np.finfo(float).tiny)

    def _better(self, found: Best[M]) -> Best[M]:
        """Of the best model so far and the one found, part by part that of the lower objective.

        Where there is no lower bound the problem need not be convex, and it is the last model that meets the
        conditions a solver stops at.
        """
        best = self.best
        if best is None or self.engine.returns_last or not np.isfinite(self.dual).all():
            return found
        lower = (found.primal <= best.primal) | ~np.isfinite(best.primal)
        if lower.all() or not lower.any():
            return found if lower.all() else best
        model = self.problem.choose(lower, found.model, best.model)
        return Best(model, np.where(lower, found.primal, best.primal))

    def _idle(self, gap: Array, primal: Array) -> str | None:
        """Why to stop where all gaps are of the size of rounding and no longer fall; None elsewhere."""
        small = np.isfinite(primal) & (gap <= MAX_ROUNDING_GAP * primal)
        if len(self.trace) <= MAX_IDLE_CERTIFICATES or not small.all():
            return None
        return None if self.trace[-1].gap < 0.5 * self.trace[-1 - MAX_IDLE_CERTIFICATES].gap else ROUNDING_REACHED

    def _worth_more(self, now: Checkpoint) -> bool:
        """Whether to go on beyond ``tol``: iterations that cost next to nothing still halve the gap."""
        if not self.engine.eager or now.relative_gap < 1e-15:
            return False
        return len(self.trace) < 2 or now.gap < 0.5 * self.trace[-2].gap

    def _checkpoint(self, best: Best[M]) -> Checkpoint:
        return Checkpoint.of(self.engine, self._seconds(), float(best.primal.sum()), float(self.dual.sum()))

    def _limit(self) -> str | None:
        if self.limits.max_iter is not None and self.engine.epochs >= self.limits.max_iter:
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
        # A model that has left the range of numbers is no best one to go on with, and is refused when it is read.
        if best is not None and np.isfinite(best.primal).all():
            own |= {f"best.{name}": array for name, array in self.problem.arrays(best.model).items()}
            own["best.primal"] = best.primal
        arrays = {f"loop.{k}": v for k, v in own.items()} | {f"engine.{k}": v for k, v in self.engine.state().items()}
        progress = {"epochs": float(self.engine.epochs), "seconds": self._seconds()}
        if count:
            last = self.trace[count - 1]
            progress |= {"primal": last.primal, "dual": last.dual, "relative_gap": last.relative_gap}
        self.file.save(arrays, progress)

    def _resume(self, file: CheckpointFile) -> bool:
        """Go on from what the file holds; False if there is none.

        Arrays of unknown names are passed over. One that is new, and that files of before lack, is asked for only
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
            low, high = float(self.dual.min()), float(self._at_zero().max() * (1 + 1e-6))
            self.dual = saved(own, "dual", (self.problem.n_parts,), low=low, high=high)
            trace = _saved_trace(own)
            seconds = saved(own, "seconds", (1,), low=0.0, high=1e12)
            self.advanced = bool(saved(own, "advanced", (1,), low=0, high=1, whole=True)[0])
            best = {k.removeprefix("best."): v for k, v in own.items() if k.startswith("best.")}
            if best:
                self.best = Best(self.problem.model_of(best), saved(best, "primal", (self.problem.n_parts,)))
            self.engine.restore(engine)
        except ValueError as error:
            raise file.damaged(error) from None
        self.trace = trace
        self.began = time.perf_counter() - float(seconds[0])
        return True

    def _say(self, line: str) -> None:
        print(line, file=self.watch.stream or sys.stderr, flush=True)

    def result(self, reason: str) -> Result[M]:
        last, best = self.trace[-1], self.best
        assert best is not None
        value, low, high, rows = self.bounds.sampled or (None, None, None, None)
        certificate = Certificate(
            primal=last.primal,
            dual=last.dual,
            gap=last.gap,
            relative_gap=last.relative_gap,
            converged=self.converged,
            reason=reason,
            epochs=last.epochs,
            seconds=self._seconds(),
            primal_per_class=cast(tuple[float, ...], best.primal),  # kept as they are
            dual_per_class=cast(tuple[float, ...], self.dual),
            goal_reached=not self.converged and reason in self.engine.goals,
            restricted_gap=self.engine.restricted_gap,
            estimate=value,
            estimate_low=low,
            estimate_high=high,
            estimate_rows=rows,
        )
        return Result(best.model, self.duals, certificate, self.trace, self.engine)
