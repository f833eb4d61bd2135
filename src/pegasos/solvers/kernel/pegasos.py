"""Kernel Pegasos: section 4 of the 2011 paper in blocks, for every scalar loss.

The iterate is w = v π/(λΩ), v = Σ_i c̃_i U_i φ(x_i), Ω = t0 + rows visited, with U_i the sum of row i's slopes (for the
hinge loss and ``t0=0``: how often it violated its margin) and F = K(c̃U) the unscaled scores of all rows. As for linear
Pegasos every iterate is a dual point, and so is the difference of U between the ends of two epochs: the window
certificate. Its value needs nothing but F at these ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar

import numpy as np

from pegasos import _core
from pegasos.fit.engine import Engine, Options
from pegasos.losses import Which
from pegasos.problems.kernel import Coefficients, KernelProblem, dual_value_near, primal_value, primal_values
from pegasos.rows.views import Array
from pegasos.solvers.base import SCALAR_LOSSES, KernelSolver
from pegasos.solvers.kernel.blocks import MAX_EPOCHS, BlockEngine, by_name
from pegasos.solvers.linear.subgradient import Pegasos
from pegasos.solvers.units import Units
from pegasos.util.threads import dot


class Progress(IntEnum):
    """The numbers of the core's PegasosProgress (``cpp/pegasos/kernel/steps.hpp`` explains them), in its order."""

    VISITS = 0
    STEPS = 1
    TOTAL = 2
    PI = 3
    NORM = 4
    BIAS = 5
    CARRIED = 6
    DRAWS = 7
    NEXT0 = 8
    NEXT1 = 9
    FOLDED = 10
    PASSED = 11
    BIAS_SUM = 12


#: What ``scalars`` holds, in this order: the core's progress, where the windows begin, the objective last estimated.
WINDOWS = ("window_visits", "next_window_visits", "window_steps", "next_window_steps")
SCALARS = (*(number.name.lower() for number in Progress), *WINDOWS, "primal")

#: Those that are whole numbers.
COUNTS = ("visits", "steps", "draws", "next0", "next1", *WINDOWS)


class KernelPegasosEngine(BlockEngine):
    """Pegasos on the parts of a kernel problem; ``t0`` and ``units`` have an entry for each part."""

    #: ``output`` says which iterate is wanted.
    returns_last = True

    def __init__(
        self,
        problem: KernelProblem,
        *,
        tol: float,
        max_epochs: int,
        t0: list[float],
        units: list[Units],
        batch_size: int,
        sampling: str,
        radius: float,
        output: str,
        seed: int,
    ) -> None:
        self.output = output
        common: dict[str, Any] = {
            "batch_size": batch_size,
            "sampling": sampling,
            "radius": radius,
            "output": output,
            "seed": seed,
        }
        self.own = [PegasosState(problem, k, t0=t0[k], units=units[k], **common) for k in range(problem.n_parts)]
        super().__init__(
            problem, self.own, tol=tol, max_epochs=max_epochs, sampling=sampling, seed=seed, batch_size=batch_size
        )

    def coefficients(self) -> Array:
        """Those of the model, of all parts."""
        if self.output != "random":
            return super().coefficients()
        # Lemma 3 of the 2011 paper: of two random iterates one is good with probability 3/4; keep the better.
        candidates = []
        for which in (0, 1):
            coefs, value = [state.drawn(which) for state in self.own], 0.0
            for group in self.groups:
                coef = np.stack([coefs[k] for k in group.parts])
                value += sum(primal_values(self.problem, group.parts, coef))
            candidates.append((value, np.concatenate(coefs)))
        return min(candidates, key=lambda pair: pair[0])[1]


class PegasosState:
    """Where Pegasos is on one part."""

    arrays: tuple[str, ...] = ("U", "F", "window", "window_F", "next_window", "next_window_F")
    sums: ClassVar[dict[str, str]] = {"F": "U", "window_F": "window", "next_window_F": "next_window"}

    def __init__(
        self,
        problem: KernelProblem,
        k: int,
        *,
        t0: float,
        units: Units,
        batch_size: int,
        sampling: str,
        radius: float,
        output: str,
        seed: int,
    ) -> None:
        self.problem, self.part = problem, problem.parts[k]
        m = self.part.m
        self.order = sampling, seed
        #: c̃: the objective is (λ/2)‖w‖² + (1/m) Σ c̃_i ℓ_i.
        self.unit = self.part.weight * (m / problem.total)
        self.output, self.radius = output, radius
        feature = problem.feature if problem.bias == "feature" else 0.0
        self.feature2 = feature**2
        self.options: dict[str, Any] = {
            "lam": problem.lam,
            "t0": t0,
            "radius": radius,
            "feature": feature,
            "batch_size": min(batch_size, m),
            "subgradient": problem.bias == "free",
            "bias_rate": units.step,
            "seed": seed,
        }
        self.U, self.F, self.window, self.window_F, self.next_window, self.next_window_F = np.zeros((6, m))
        self.average = np.zeros((2, m if output in ("average", "suffix") else 0))
        self.window_sum = self.next_window_sum = np.zeros(0)
        self.random = np.zeros((2, m if output == "random" else 0))
        if output in ("average", "suffix"):
            self.window_sum, self.next_window_sum = np.zeros((2, m))
            self.arrays = (*self.arrays, "lag", "sum", "window_sum", "next_window_sum")
        if output == "random":
            self.arrays = (*self.arrays, "random0", "random1")
        self.scalars = np.zeros(len(SCALARS))
        self.now = by_name(self.scalars, SCALARS)
        self.now.pi = self.now.next0 = self.now.next1 = self.now.folded = 1.0
        self.now.bias = units.start
        self.wide = False

    @property
    def primal(self) -> float:
        """The objective last estimated."""
        return float(self.now.primal)

    @property
    def lag(self) -> Array:
        """The sum of all iterates is sum + carried·U − lag."""
        return np.asarray(self.average[0])

    @property
    def sum(self) -> Array:
        """See ``lag``."""
        return np.asarray(self.average[1])

    @property
    def random0(self) -> Array:
        """The first random iterate."""
        return np.asarray(self.random[0])

    @property
    def random1(self) -> Array:
        """The second random iterate."""
        return np.asarray(self.random[1])

    @property
    def scale(self) -> float:
        """w = scale · v."""
        omega = float(self.options["t0"]) + self.now.visits
        return float(self.now.pi / (self.problem.lam * omega)) if omega > 0 else 0.0

    def run(self, K: Array, at: Array) -> Array:
        """Visit the rows ``at``."""
        change, progress = np.zeros(len(at)), self.scalars[: len(Progress)].copy()
        _core.kernel_pegasos_steps(
            self.part.core,
            K,
            at,
            self.F[at],
            change,
            self.part.y,
            self.unit,
            self.U,
            self.average,
            self.random,
            progress,
            **self.options,
        )
        self.scalars[: len(Progress)] = progress
        if self.now.folded != 1.0:
            self._scale(self.now.folded, "F", "window", "window_F", "next_window", "next_window_F")
            self.now.folded = 1.0
        self.wide = not K.size
        return change

    def added(self) -> None:
        """Project after a long mini-batch, whose norm is known only now."""
        if self.radius > 0 and self.wide:
            self._recompute_norm()
            length = self.scale * np.sqrt(max(0.0, self.now.norm))
            if length > self.radius:
                self.now.pi *= self.radius / length
            if (pi := self.now.pi) < 1e-9:
                self._flush()
                self._scale(pi, "U", "F", "window", "window_F", "next_window", "next_window_F")
                self.now.total *= pi
                self.now.norm *= pi**2
                self.now.pi = 1.0

    def _scale(self, factor: float, *names: str) -> None:
        for name in names:
            setattr(self, name, getattr(self, name) * factor)

    def _recompute_norm(self) -> None:
        self.now.norm = dot(self.unit * self.U, self.F) + self.feature2 * self.now.total**2

    def _flush(self) -> None:
        if self.average.size:
            self.average[1] += self.now.carried * self.U - self.lag
            self.average[0] = 0.0
            self.now.carried = 0.0

    def end_epoch(self) -> bool:
        """What belongs to the epoch that has just ended; the windows begin at epochs 1, 2, 4, 8, …"""
        self._flush()
        if self.radius > 0:
            self._recompute_norm()
        done = int(self.now.visits // self.part.m)  # the last mini-batch may have visited rows of the next epoch
        if done & (done - 1) == 0:
            self.window, self.next_window = self.next_window, self.U.copy()
            self.window_F, self.next_window_F = self.next_window_F, self.F.copy()
            self.window_sum, self.next_window_sum = self.next_window_sum, self.sum.copy()
            now = self.now
            now.window_visits, now.window_steps = now.next_window_visits, now.next_window_steps
            now.next_window_visits, now.next_window_steps = now.visits, now.steps
        return True

    def coefficients(self) -> Array:
        """Those of the last iterate, or of an average."""
        if self.output not in ("average", "suffix"):
            return np.asarray(self.scale * self.unit * self.U)
        total, steps = self.sum + self.now.carried * self.U - self.lag, self.now.steps
        if self.output == "suffix":
            total, steps = total - self.window_sum, steps - self.now.window_steps
        return np.asarray(self.unit * total / max(steps, 1.0))

    def drawn(self, which: int) -> Array:
        """The coefficients of a random iterate."""
        return np.asarray(self.unit * self.random[which])

    @property
    def _seen(self) -> float:
        return float(self.now.visits - self.now.window_visits)

    def duals(self) -> Array:
        """Those of the window: the means of each row's slopes, as ``cpp/pegasos/linear/pegasos.cpp`` explains.

        What leaves the domain, since it was drawn more often than others, is clipped by the certificate.
        """
        m, (sampling, seed) = self.part.m, self.order
        seen = _core.visit_shares(m, sampling, seed, int(self.now.window_visits), int(self.now.visits))
        return np.asarray(self.now.pi * (self.U - self.window) * np.divide(m, seen, out=np.zeros(m), where=seen > 0))

    def estimate(self) -> tuple[float, float]:
        """Gap of the last iterate and the window's dual point, and its primal value."""
        with np.errstate(over="ignore", invalid="ignore"):
            coef, F = self.scale * self.unit * self.U, self.scale * self.F
            if not np.isfinite(F).all():
                return np.inf, np.inf
            self.now.primal, b = primal_value(self.problem, self.part, coef, F)
            u = self.part.feasible_duals(self.duals(), balance=False)
            # F belongs to slopes that are divided by the mean number of visits, not by each row's own, and not clipped.
            share = self.now.pi / (self.problem.lam * self._seen)
            near = share * self.unit * (self.U - self.window)
            dual_F = share * (self.F - self.window_F)
            dual = dual_value_near(self.problem, self.part, u, self.part.shares * u, near, dual_F)
        loose = abs(b * dot(self.part.weight, u)) / self.problem.total if self.problem.bias == "free" else 0.0
        return max(self.primal - dual, 0.0) + loose, self.primal

    def restore(self, arrays: dict[str, Array], scalars: Array) -> None:
        """Go on from saved arrays."""
        values = dict(zip(SCALARS, scalars, strict=True))
        counts = np.array([values[name] for name in COUNTS])
        if not np.isfinite(scalars).all() or not (0 < values["pi"] <= 1) or values["folded"] != 1:
            raise ValueError("state: 'scalars' has a value that no fit has")
        if not bool(np.all((counts >= 0) & (counts <= 2**53 * 2) & (counts == np.rint(counts)))):
            raise ValueError("state: 'scalars' counts what cannot be counted")
        # Before mini-batches ran over the end of an epoch the last one was short: such a state is of another fit.
        if values["steps"] * self.options["batch_size"] != values["visits"]:
            raise ValueError("state: 'steps' of other than batch_size rows")
        for name, array in arrays.items():
            if name in ("lag", "sum"):
                self.average[("lag", "sum").index(name)] = array
            elif name in ("random0", "random1"):
                self.random[int(name[-1])] = array
            else:
                setattr(self, name, array)
        self.scalars[:] = scalars


@dataclass(frozen=True)
class KernelPegasos(KernelSolver):
    """Pegasos on a kernel machine; steps are epochs."""

    options: Pegasos
    name: ClassVar[str] = "pegasos"
    intercepts: ClassVar[tuple[str, ...]] = ("unregularized", "subgradient", "feature", "none")
    losses: ClassVar[Which] = SCALAR_LOSSES

    def check(self, problem: KernelProblem, intercept: str) -> None:
        super().check(problem, intercept)
        self.options.kernel_sampling()
        self.options.check_whole("a kernel")

    def engine(self, problem: KernelProblem, given: Options) -> Engine[Coefficients]:
        options = self.options
        units = [options.units_for(part.loss, part.y, part.weight, problem.bias) for part in problem.parts]
        return KernelPegasosEngine(
            problem,
            tol=given.tol,
            max_epochs=given.max_steps or MAX_EPOCHS,
            t0=[self._t0(problem, k, units[k].step) for k in range(problem.n_parts)],
            units=units,
            batch_size=int(options.batch_size),
            sampling=options.kernel_sampling(),
            radius=options.radius(problem, problem.lam),
            output=options.output,
            seed=given.seed,
        )

    def _t0(self, problem: KernelProblem, k: int, step: float) -> float:
        part, diagonal = problem.parts[k], problem.rows(k).diagonal()
        mean, largest = float(part.weight @ diagonal) / problem.total, float(diagonal.max(initial=0.0))
        B2 = problem.feature**2 if problem.bias == "feature" else 0.0
        return self.options.t0_for(part.loss, mean, largest, B2, problem.lam, step)
