"""Newton's method on Moreau envelopes, for piecewise linear losses on narrow data: a method of multipliers.

In C-form, with h_i = c_i/(λM), β = (w, b), x̃ = (x, 1) and R = diag(1, …, 1, ρ), ρ = 0 for a free bias, each round
minimises

    F(β) = ½ βᵀRβ + Σ h_i ψ_i(x̃_iᵀβ),    ψ_i(z) = max_u −ℓ_i*(−u) − zu − (δ/2)(u − u0_i)²

by Newton's method with a line search that is exact: along a direction the scores move linearly, so a trial costs no
pass over the rows. Only the few rows whose u lies strictly inside its box have curvature, so that a normal matrix costs
a fraction of a pass. At the minimiser Rβ = X̃ᵀ(h∘u): u is dual feasible, w(u) = w, and the duality gap is what the
smoothing leaves,

    Σ h_i (ℓ_i(z_i) + ℓ_i*(−u_i) + u_i z_i)  ≤  δ/2 · Σ h_i over the rows near a kink.

The next round is centred at u0 = u with a smaller δ: the proximal point method in the dual (Rockafellar 1976), whose
rounds converge superlinearly without δ having to vanish. The smoothing of a hinge for Newton's method in the primal is
Chapelle's (2007); semismooth Newton inside the multiplier method is that of Li, Sun & Toh (2018).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pegasos.fit.engine import Options
from pegasos.losses import Which
from pegasos.problems.base import Bounds
from pegasos.problems.linear import LinearProblem, Weights
from pegasos.rows.views import Array
from pegasos.solvers.base import SecondOrderSolver
from pegasos.solvers.linear.engine import LinearEngine
from pegasos.solvers.linear.newton import newton_direction
from pegasos.solvers.linear.normal_equations import NO_PROGRESS, Design, regularisation
from pegasos.solvers.linear.row_samples import SampledEngine
from pegasos.util.fields import Numbers, State, saved


class Round:
    """Rows (all, or a sample of them), weights β, and the envelope's centre and width; see the module's docstring."""

    #: What a new round multiplies δ by.
    DELTA_FACTOR = 0.4

    def __init__(self, problem: LinearProblem, part: int, index: Array | None, beta: Array, delta: float) -> None:
        self.core, self.R = problem.scalar, regularisation(problem)
        self.design = Design(problem.examples, problem.bias != "none", problem.threads, index)
        take = slice(None) if index is None else index
        self.y = np.ascontiguousarray(problem.targets(part)[take])
        c = problem.c[take]
        self.h = c * (problem.total / (c.sum() * problem.lam * problem.total))
        self.beta, self.delta, self.strict = beta.copy(), delta, 0.1
        self.score = self.design.forward(beta)
        self.u0 = 0.5 * (self._corner(-np.inf) + self._corner(np.inf))
        self.u = np.zeros_like(self.u0)
        self.pull = np.zeros_like(self.beta)
        self.evaluate()

    def _corner(self, u: float) -> Array:
        return self.core.clip(np.full(len(self.y), u), self.y)

    def evaluate(self) -> None:
        """Evaluate the envelope at β: dual variables, gradient, curvature, and the bounds that follow."""
        before = self.u
        self.u, self.curvature, loss, conjugate = self.core.smooth(self.score, self.y, self.h, self.u0, self.delta)
        # X̃ᵀ(h∘u) changes by the rows whose u did: few, once most are at a bound of their box.
        self.pull = self.pull + self.design.adjoint(self.h * (self.u - before))
        self.gradient = self.R * self.beta - self.pull
        regularised = self.R > 0
        residual = self.gradient[regularised] / np.sqrt(self.R[regularised])
        self.primal = 0.5 * float(self.R @ self.beta**2) + loss
        self.residual = 0.5 * float(residual @ residual)
        #: Σ h (ℓ(z) + ℓ*(−u) + uz), the part of the duality gap that Newton's method cannot remove in this round.
        self.smoothing = max(float(loss - conjugate) + float(self.pull @ self.beta), 0.0)
        self.unbalanced = abs(float(self.gradient[-1])) if not regularised.all() else 0.0

    @property
    def gap(self) -> float:
        """The duality gap, but for the balance of a free bias."""
        return float(self.smoothing + self.residual)

    @property
    def solved(self) -> bool:
        """Whether the round's minimum is close enough to go on to the next."""
        small = self.residual <= self.strict * self.smoothing or self.residual <= 1e-15 * self.primal
        return small and self.unbalanced <= 1e-3 * self.strict * float(self.h @ np.abs(self.u))

    def narrow(self) -> None:
        """The next round."""
        self.u0, self.delta = self.u, self.DELTA_FACTOR * self.delta
        self.evaluate()

    def state(self) -> dict[str, Array]:
        """All that ``restore`` needs."""
        arrays = {name: getattr(self, name).copy() for name in ("beta", "score", "u", "u0", "pull")}
        return arrays | {"shape": np.array([self.delta, self.strict])}

    def restore(self, state: dict[str, Array], prefix: str) -> None:
        """Continue from ``state``, whose names begin with ``prefix``."""
        rows, columns = self.score.shape, self.beta.shape
        # Beyond such numbers nothing converges or overflows: a fit from a forged state would not end.
        self.score, self.beta, self.pull = (
            saved(state, prefix + name, shape, low=-1e100, high=1e100)
            for name, shape in (("score", rows), ("beta", columns), ("pull", columns))
        )
        self.u, self.u0 = (saved(state, prefix + name, rows, low=-1, high=1) for name in ("u", "u0"))
        self.delta, self.strict = map(float, saved(state, prefix + "shape", (2,), low=1e-300, high=1e300))
        self.evaluate()

    def step(self) -> bool:
        """A Newton step with line search; whether it moved."""
        H = self.design.gram(self.curvature)
        if H[-1, -1] + self.R[-1] == 0:  # a free bias without curvature: rounding errors must not become a long step
            H[-1, -1] = float(self.h.sum()) / self.delta
        d, descent = newton_direction(H, self.R, self.gradient, self.primal)
        if not descent < 0:
            return False
        along = self.design.forward(d)
        t = self._minimum(d, along, descent)
        if t <= 0:
            return False
        self.beta = self.beta + t * d
        self.score = self.score + t * along
        self.evaluate()
        return True

    def _minimum(self, d: Array, along: Array, descent: float) -> float:
        """Where F's slope along d, an increasing function, is a tenth of what it was at 0 or less."""
        bend, pull = float(self.R @ d**2), float((self.R * self.beta) @ d)

        def slope(t: float) -> float:
            smooth = self.core.smooth_slope(self.score, self.y, self.h, self.u0, self.delta, along, t)
            return pull + t * bend - float(smooth)

        flat = 0.1 * abs(descent)
        low, high, at_low, at_high = 0.0, 1.0, descent, slope(1.0)
        while at_high < -flat and high < 1e6:
            low, at_low = high, at_high
            high *= 3.0
            at_high = slope(high)
        if at_high <= flat:
            return high
        for trial in range(60):
            # Regula falsi, and bisection every other time, since regula falsi alone may keep one end for ever.
            t = 0.5 * (low + high) if trial % 2 else low - at_low * (high - low) / (at_high - at_low)
            at = slope(t)
            if abs(at) <= flat:
                return t
            if at < 0:
                low, at_low = t, at
            else:
                high, at_high = t, at
        return low


class SmoothedNewtonEngine(SampledEngine):
    """Runs the rounds of each part of a problem in turn, problems of many rows on samples first."""

    MIN_SAMPLE_ROWS, MIN_SAMPLE_ROWS_PER_COLUMN = 2_000, 20

    #: The relative gap at which a sample is left for the next larger one.
    SAMPLE_GAP = 0.03

    #: Steps in a row without progress before the method gives up.
    MAX_STALE_STEPS = 40

    def __init__(self, problem: LinearProblem, seed: int = 0) -> None:
        super().__init__(problem, seed)
        self.next_check = 4.0
        # So wide that at β = 0 every row is curved: the first step is that of least squares.
        widest = 4 * np.maximum(problem.at_zero(), 1e-300)
        self.rounds = [self._round(part, self.zero, float(widest[part])) for part in range(problem.n_parts)]
        #: The smallest gap of each part, and the steps since it was found.
        self.best, self.since = np.full(problem.n_parts, np.inf), np.zeros(problem.n_parts)

    def _round(self, part: int, beta: Array, delta: float) -> Round:
        return Round(self.problem, part, self.samples[self.levels[part]], beta, delta)

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def iterate(self, part: int) -> int:
        now = self.rounds[part]
        if now.solved:
            now.narrow()
        try:
            moved = now.step()
        except (np.linalg.LinAlgError, ValueError):
            moved = False
        if self.levels[part]:
            if not moved or now.gap <= self.SAMPLE_GAP * now.primal:
                self.levels[part] -= 1
                self.rounds[part] = self._round(part, now.beta, now.delta)
            return now.design.rows
        if now.gap < 0.9 * self.best[part]:
            self.best[part], self.since[part] = now.gap, 0
        else:
            self.since[part] += 1
        if self.since[part] > self.MAX_STALE_STEPS or not np.isfinite(now.gap):
            self.stalled = NO_PROGRESS
        elif not moved:
            now.narrow()
        return now.design.rows

    def betas(self) -> list[Array]:
        return [now.beta for now in self.rounds]

    def due(self, tol: float) -> bool:
        self.tol = tol
        if self.turn != 0 or any(self.levels):
            return False
        close = (now.gap <= tol * now.primal for now in self.rounds)
        return self.stalled is not None or self.passes >= self.next_check or all(np.fromiter(close, bool) | self.done)

    def duals(self) -> Array | None:
        return None if any(self.levels) else np.column_stack([now.u for now in self.rounds])

    def learn(self, bounds: Bounds[Weights]) -> None:
        self.next_check = 2.0 * self.passes
        self.done = bounds.within(self.tol)
        for now, done in zip(self.rounds, self.done, strict=True):
            if not done and now.gap <= self.tol * now.primal:
                now.strict *= 0.1  # the gap is too wide only because Σ h u is not zero, as a free bias needs

    def named(self) -> Numbers:
        named: Numbers = {"check": self.next_check, "best": self.best, "since": self.since}
        for k, now in enumerate(self.rounds):
            named |= {f"{k}.{name}": array for name, array in now.state().items()}
        return named

    def restore(self, state: State) -> None:
        super().restore(state)
        parts = self.problem.n_parts
        self.next_check = float(saved(state, "check", (1,), low=0, high=1e15)[0])
        self.best = saved(state, "best", (parts,))
        self.since = saved(state, "since", (parts,), low=0, high=1e15, whole=True)
        for k in range(parts):
            self.rounds[k] = self._round(k, self.zero, 1.0)
            self.rounds[k].restore(state, f"{k}.")


@dataclass(frozen=True)
class SmoothedNewton(SecondOrderSolver):
    """Newton's method on smoothed losses, round by round less smooth: the fastest way on long, narrow data.

    For the hinge, ε-insensitive and quantile losses. Each round replaces the loss by its Moreau envelope of width δ
    around the last round's dual point,

    .. math:: \\psi(z) = \\max_u -\\ell^*(-u) - zu - \\tfrac{\\delta}{2}(u - u_0)^2,

    a method of multipliers. Only rows close to a kink have curvature, so that a step costs little more than a pass over
    the rows; the first rounds go over samples of the rows (Rockafellar 1976; Chapelle 2007; Li, Sun & Toh 2018).

    Parameters
    ----------
    max_columns : int, default=5000
        As for :class:`InteriorPoint`.

    Examples
    --------
    >>> from pegasos import LinearSVC, SmoothedNewton
    >>> model = LinearSVC(solver=SmoothedNewton(), tol=1e-6).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> model.certificate_.relative_gap < 1e-6
    True
    """

    name: ClassVar[str] = "smoothed_newton"
    losses: ClassVar[Which] = Which(lambda loss: loss.piecewise_linear)

    def engine(self, problem: LinearProblem, options: Options) -> LinearEngine:
        return SmoothedNewtonEngine(problem, options.seed)
