"""Kernel SDCA: dual coordinate ascent in blocks, for every scalar loss.

Each visit maximises the dual over one u_i, at the score F_i = Σ_j C c_j u_j K(x_j, x_i) of its row. A constant feature
of value B is a B² added to the kernel. A bias that is not regularised is learnt by the method of multipliers, as in
linear SDCA: the feature's weight is moved into an offset at the end of every epoch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pegasos import _core
from pegasos.fit.engine import Engine, Options
from pegasos.losses import Which
from pegasos.problems.kernel import Coefficients, KernelProblem, dual_value, primal_value
from pegasos.rows.views import Array
from pegasos.solvers.base import SCALAR_LOSSES, KernelSolver, drawn_order
from pegasos.solvers.kernel.blocks import MAX_EPOCHS, BlockEngine, by_name
from pegasos.solvers.linear.sdca import SDCA
from pegasos.util.threads import dot

#: What ``scalars`` holds, in this order: Σ C c_i u_i, the bias learnt, whether any u has moved in this epoch, and the
#: objective last estimated.
SCALARS = ("total", "offset", "moved", "primal")


class KernelSDCAEngine(BlockEngine):
    """SDCA on the parts of a kernel problem."""

    def __init__(self, problem: KernelProblem, *, tol: float, max_epochs: int, sampling: str, seed: int) -> None:
        states = [SDCAState(problem, k) for k in range(problem.n_parts)]
        super().__init__(problem, states, tol=tol, max_epochs=max_epochs, sampling=sampling, seed=seed)


class SDCAState:
    """Where SDCA is on one part."""

    arrays: tuple[str, ...] = ("u", "F")
    sums: ClassVar[dict[str, str]] = {"F": "u"}

    def __init__(self, problem: KernelProblem, k: int) -> None:
        self.problem, self.part = problem, problem.parts[k]
        self.unit = self.part.shares
        self.u, self.F = np.zeros((2, self.part.m))
        self.scalars = np.zeros(len(SCALARS))
        self.now = by_name(self.scalars, SCALARS)
        self.feature = problem.feature if problem.bias == "feature" else 0.0
        if problem.bias == "free":
            # A constant feature of about the rows' size makes the method of multipliers fast.
            self.feature = 0.5 * np.sqrt(max(problem.mean_squared_norm(k), 1e-12))

    @property
    def primal(self) -> float:
        """The objective last estimated."""
        return float(self.now.primal)

    def run(self, K: Array, at: Array) -> Array:
        """Visit the rows ``at``."""
        change = np.zeros(len(at))
        self.now.total = _core.kernel_sdca_steps(
            self.part.core,
            K,
            at,
            self.F[at],
            change,
            self.part.y,
            self.part.weight,
            self.u,
            sum=float(self.now.total),
            unit=self.part.C,
            feature=self.feature,
            offset=float(self.now.offset),
        )
        if change.any():
            self.now.moved = 1.0
        return change

    def added(self) -> None:
        """Nothing depends on the new scores but the next visits."""

    def end_epoch(self) -> bool:
        """Whether anything has moved; a free bias takes over what the constant feature has learnt."""
        moved = bool(self.now.moved)
        self.now.moved = 0.0
        self.now.total = dot(self.unit, self.u)
        if self.problem.bias == "free":
            step = self.feature**2 * self.now.total
            moved |= bool(self.now.offset + step != self.now.offset)
            self.now.offset += step
        return moved

    def coefficients(self) -> Array:
        """Those of w(u)."""
        return np.asarray(self.unit * self.u)

    def duals(self) -> Array:
        """u."""
        return self.u.copy()

    def estimate(self) -> tuple[float, float]:
        """Gap of w(u) and u, and its primal value."""
        if not np.isfinite(self.F).all():
            return np.inf, np.inf
        with np.errstate(over="ignore", invalid="ignore"):
            coef = self.coefficients()
            self.now.primal, b = primal_value(self.problem, self.part, coef, self.F)
            dual = dual_value(self.problem, self.part, self.u, coef, self.F)
        loose = abs(b * dot(self.part.weight, self.u)) / self.problem.total if self.problem.bias == "free" else 0.0
        return max(self.primal - dual, 0.0) + loose, self.primal

    def restore(self, arrays: dict[str, Array], scalars: Array) -> None:
        """Go on from saved arrays."""
        if not np.array_equal(self.part.core.clip(arrays["u"], self.part.y), arrays["u"]):
            raise ValueError("state: 'u' has a value outside its domain")
        if not np.isfinite(scalars).all():
            raise ValueError("state: 'scalars' has a value that no fit has")
        self.u, self.F = arrays["u"], arrays["F"]
        self.scalars[:] = scalars


@dataclass(frozen=True)
class KernelSDCA(KernelSolver):
    """SDCA on a kernel machine; steps are epochs."""

    options: SDCA
    name: ClassVar[str] = "sdca"
    intercepts: ClassVar[tuple[str, ...]] = ("unregularized", "feature", "none")
    losses: ClassVar[Which] = SCALAR_LOSSES

    def check(self, problem: KernelProblem, intercept: str) -> None:
        super().check(problem, intercept)
        drawn_order(self.options, self.options.sampling, "a kernel")
        if self.options.blocks is not None:
            raise ValueError(f"SDCA: blocks={self.options.blocks} has no meaning with a kernel; n_jobs shares the work")

    def engine(self, problem: KernelProblem, options: Options) -> Engine[Coefficients]:
        sampling = drawn_order(self.options, self.options.sampling, "a kernel")
        most = options.max_steps or MAX_EPOCHS
        return KernelSDCAEngine(problem, tol=options.tol, max_epochs=most, sampling=sampling, seed=options.seed)
