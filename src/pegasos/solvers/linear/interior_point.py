"""A primal-dual interior point method for the losses whose dual is a quadratic program over a box.

In C-form, with h_i = c_i/(λM), β = (w, b), x̃ = (x, 1) and the boxes' signs s:

    min_β ½ βᵀRβ + Σ h_i ℓ_i(x̃_iᵀβ)        R = diag(1, …, 1, ρ), ρ = 0 for a free bias
    dual:  Rβ = X̃ᵀ(s∘a),  0 ≤ a ≤ h,  linear term pᵀa

Signs s, linear terms p and the share of each box in h are the loss's own (``Loss.boxes``).

With multipliers z ≥ 0 of a ≥ 0 and v ≥ 0 of a ≤ h, Newton's method on the perturbed optimality conditions

    s∘(X̃β) − p − z + v = 0,   Rβ = X̃ᵀ(s∘a),   a∘z = μ,   (h − a)∘v = μ

leaves, after elimination, (R + X̃ᵀΘ⁻¹X̃) Δβ = …, Θ = z/a + v/(h − a): one weighted normal matrix an iteration
(Ferris & Munson 2002), with Mehrotra's predictor and corrector and Gondzio's centrality correctors (1996).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pegasos import _core
from pegasos.fit.engine import ROUNDING_REACHED, Options
from pegasos.losses import Which
from pegasos.problems.base import Bounds
from pegasos.problems.linear import LinearProblem, Weights
from pegasos.rows.views import Array
from pegasos.solvers.base import SecondOrderSolver
from pegasos.solvers.linear import newton
from pegasos.solvers.linear.engine import LinearEngine
from pegasos.solvers.linear.normal_equations import (
    LAPACK,
    MAX_FREE_MULTIPLICATIONS,
    NO_PROGRESS,
    PRECISION_LOST,
    STEPS_TOO_SHORT,
    Progress,
    regularisation,
)
from pegasos.solvers.linear.row_samples import SampledEngine, whole
from pegasos.util.fields import Numbers, State, saved


class Boxes:
    """One part of a problem as the boxes of the module's docstring; arrays are (boxes × rows)."""

    def __init__(self, problem: LinearProblem, part: int) -> None:
        h = problem.c / (problem.lam * problem.total)
        self.s, self.p, heights = problem.loss.boxes(problem.targets(part))
        self.h = np.stack([height * h for height in heights])
        self.unit = np.divide(1.0, h, out=np.zeros_like(h), where=h > 0)
        # Rows of weight zero have an empty box; a tiny width avoids divisions by zero and changes nothing.
        np.maximum(self.h, 1e-12 * self.h.max(), out=self.h)


class CentralPath:
    """The iteration on some rows of :class:`Boxes`, started on the central path through the weights β.

    ``index``: the rows (None: all). ``weight``: what the heights are multiplied by. The steps themselves are those of
    ``cpp/pegasos/linear/box_steps.hpp``.
    """

    def __init__(
        self,
        problem: LinearProblem,
        boxes: Boxes,
        beta: Array,
        *,
        index: Array | None = None,
        weight: float = 1.0,
        nearness: float = 1.0,
    ) -> None:
        take = slice(None) if index is None else index
        s, p, h = (np.ascontiguousarray(a[:, take]) for a in (boxes.s, boxes.p, weight * boxes.h))
        # Boxes of about unit height: a, and with it R, is measured in units of the mean height.
        self.unit = float(h.mean())
        h /= self.unit
        R = regularisation(problem) / self.unit
        # μ as large as what is to be balanced: starts closer to the border stall, unless the weights are good already.
        rows, bias, threads = problem.examples.rows, problem.bias != "none", problem.threads
        self.steps = _core.BoxSteps(LAPACK, rows, index, bias, threads, h, s, p, R, beta, nearness)


class InteriorPointEngine(SampledEngine):
    """Runs :class:`CentralPath` on each part of a problem in turn, long problems on samples of their rows first."""

    MIN_SAMPLE_ROWS, MIN_SAMPLE_ROWS_PER_COLUMN = 20_000, 100

    #: The relative gap that cheap problems are solved to, whatever was asked for.
    CHEAP_PROBLEM_GAP = 1e-14

    #: Steps that are rarely needed: after them a certificate is due, whatever the gap.
    MAX_USUAL_STEPS = 30

    def __init__(self, problem: LinearProblem, seed: int = 0) -> None:
        super().__init__(problem, seed)
        self.cheap = problem.examples.m * len(self.zero) ** 2 * problem.n_parts <= MAX_FREE_MULTIPLICATIONS
        self.goal = self.CHEAP_PROBLEM_GAP if self.cheap else 0.0
        self.boxes = [Boxes(problem, part) for part in range(problem.n_parts)]
        self.paths = [self._path(part, self.zero, 1.0) for part in range(problem.n_parts)]
        self.progress = Progress(problem.n_parts)

    def _path(self, part: int, beta: Array, nearness: float) -> CentralPath:
        index = self.samples[self.levels[part]]
        weight = 1.0 if index is None else self.problem.examples.m / len(index)
        return CentralPath(self.problem, self.boxes[part], beta, index=index, weight=weight, nearness=nearness)

    def advance(self) -> None:
        # A step on every part of a cheap problem costs less than asking after each whether to go on.
        for _ in range(self.problem.n_parts if self.cheap else 1):
            super().advance()

    def iterate(self, part: int) -> int:
        if self._waits(part):
            return 0
        steps = self.paths[part].steps
        try:
            steps.step()
        except np.linalg.LinAlgError:
            self.stalled = PRECISION_LOST
        # Pass on once the sample's gap is below a hundredth of its loss, and start closer to the border.
        if self.levels[part] and (steps.gap <= 0.01 * steps.loss or steps.steps >= self.MAX_USUAL_STEPS):
            self.levels[part] -= 1
            self.paths[part] = self._path(part, steps.beta(), 0.3)
        return int(steps.rows)

    def _waits(self, part: int) -> bool:
        """Whether a part has nothing to do before the next certificate: by its own account it is at the goal."""
        return not self.levels[part] and self.paths[part].steps.relative_gap <= self.goal

    def betas(self) -> list[Array]:
        return [np.asarray(path.steps.beta()) for path in self.paths]

    def due(self, tol: float) -> bool:
        self.tol = tol
        if self.turn != 0 or any(self.levels):
            return False
        return not self.cheap or self.stuck is not None or all(map(self._rests, range(self.problem.n_parts)))

    def _rests(self, part: int) -> bool:
        """Whether a part does not speak against a certificate: it has come to the goal, or gets no nearer."""
        steps = self.paths[part].steps
        return bool(self.done[part] or self._waits(part) or steps.length < 0.1 or steps.steps >= self.MAX_USUAL_STEPS)

    def duals(self) -> Array | None:
        if any(self.levels):
            return None
        pairs = zip(self.paths, self.boxes, strict=True)
        return np.column_stack([path.steps.duals() * (path.unit * boxes.unit) for path, boxes in pairs])

    @property
    def eager(self) -> bool:
        return self.cheap and not all(map(self._waits, range(self.problem.n_parts)))

    def learn(self, bounds: Bounds[Weights]) -> None:
        self.done = bounds.within(1e-16 if self.cheap else self.tol)
        if self.done.all():
            self.stalled = ROUNDING_REACHED
        if self.stalled is None and all(path.steps.length < 1e-8 for path in self.paths):
            self.stalled = STEPS_TOO_SHORT
        if not self.progress.note(bounds, self.done):
            self.stalled = self.stalled or NO_PROGRESS
        if self.eager:
            return
        # The next goal is lower for every part that is not done.
        gaps = [path.steps.relative_gap for path, done in zip(self.paths, self.done, strict=True) if not done]
        self.goal = 0.01 * min(self.goal, max(gaps, default=0.0))

    def named(self) -> Numbers:
        named: Numbers = self.progress.state() | {"goal": self.goal}
        for k, path in enumerate(self.paths):
            steps = path.steps
            named |= {f"{k}.beta": steps.beta(), f"{k}.path": steps.path(), f"{k}.step": steps.length}
            named[f"{k}.iterations"] = steps.steps
        return named

    def restore(self, state: State) -> None:
        before = self.levels
        super().restore(state)
        self.progress.restore(state)
        self.goal = float(saved(state, "goal", (1,), low=0, high=self.CHEAP_PROBLEM_GAP)[0])
        for k, (old, new) in enumerate(zip(before, self.levels, strict=True)):
            if old != new:
                self.paths[k] = self._path(k, self.zero, 1.0)
            steps = self.paths[k].steps
            beta, length = saved(state, f"{k}.beta", self.zero.shape), float(saved(state, f"{k}.step", (1,))[0])
            (count,) = whole(state, f"{k}.iterations", 1e15)
            steps.restore(saved(state, f"{k}.path", steps.path().shape), beta, length, count)


@dataclass(frozen=True)
class InteriorPoint(SecondOrderSolver):
    """Second-order methods for narrow data: their cost grows with the square of the number of columns.

    The hinge, ε-insensitive and quantile losses go to a primal-dual interior point method whose normal equations are
    columns × columns (Ferris & Munson 2002; Fine & Scheinberg 2001), smooth losses to Newton's method with a line
    search. A couple of dozen passes reach 1e-6 whatever λ.

    Parameters
    ----------
    max_columns : int, default=5000
        Refuse wider data, whose n × n matrix would be too large.

    Examples
    --------
    >>> from pegasos import InteriorPoint, LinearSVC
    >>> model = LinearSVC(solver=InteriorPoint(), tol=1e-9).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> model.certificate_.relative_gap < 1e-9
    True
    """

    name: ClassVar[str] = "interior_point"
    losses: ClassVar[Which] = Which(lambda loss: loss.piecewise_linear or newton.suits(loss))

    def engine(self, problem: LinearProblem, options: Options) -> LinearEngine:
        return newton.NewtonEngine(problem) if problem.loss.smooth else InteriorPointEngine(problem, options.seed)
