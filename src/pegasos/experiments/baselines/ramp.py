"""The ramp loss by a sequence of convex problems (Collobert, Sinz, Weston & Bottou 2006)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pegasos.experiments.baselines.task import Expansion, Task, count, positive
from pegasos.fit.engine import Options
from pegasos.kernels.gram import PartRows
from pegasos.losses import Hinge
from pegasos.problems.kernel import KernelProblem
from pegasos.problems.part import Part
from pegasos.rows.views import Array
from pegasos.solvers.kernel.smo_engine import SMOEngine
from pegasos.util.threads import with_one_blas_thread

#: The relative gain of a round below which the procedure ends.
MIN_ROUND_GAIN = 1e-5


@dataclass(frozen=True)
class ShiftedPart(Part):
    """The dual of ½‖w‖² + Σ C hinge(y_i f_i) + β_i y_i f_i: that of the hinge, y_iα_i in [−β_i, C − β_i]."""

    shift: Array

    @cached_property
    def _box(self) -> tuple[Array, Array]:
        above, below = self.C * self.weight - self.shift, -self.shift
        return np.where(self.y > 0, below, -above), np.where(self.y > 0, above, -below)


@with_one_blas_thread
def ramp(
    task: Task,
    sizes: Sequence[int] = (),
    *,
    s: Sequence[float] = (-1.0, -0.5, 0.0),
    tol: float = 1e-3,
    max_rounds: int = 50,
) -> list[Expansion]:
    """Minimise ½‖w‖² + C Σ min(1 − s, max(0, 1 − y_i f(x_i))) by the concave-convex procedure, from the reference.

    The ramp is the hinge at 1 less the hinge at s. Each round replaces the second by its tangent, whose slope is
    β_i = C for rows with y_i f(x_i) < s and 0 for others, and solves what is convex then; the objective never rises.
    Rows that stay beyond s are no support vectors.

    Parameters
    ----------
    task : Task
        Rows, labels, kernel, C and reference.
    sizes : sequence of int
        Of no effect: s decides.
    s : sequence of float, default=(−1, −1/2, 0)
        Where the ramp becomes level, each below 1.
    tol : float, default=1e-3
        Largest violation of the optimality conditions of a round.
    max_rounds : int, default=50
        Rounds at most; the procedure ends when the β_i stay the same, or the objective does within 1e-5 of it.

    Returns
    -------
    list of Expansion
        One for each s; ``details["objectives"]`` are the objectives after each round, the reference's first.

    References
    ----------
    R. Collobert, F. Sinz, J. Weston and L. Bottou, *Trading convexity for scalability*, ICML 2006.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from pegasos.experiments import Task, ramp
    >>> X, y = make_moons(200, noise=0.3, random_state=0)
    >>> task = Task(X, y, gamma=1.0)
    >>> (found,) = ramp(task, s=[0.0])
    >>> found.size < task.expansion.size
    True
    """
    tol, max_rounds = positive("tol", tol), count("max_rounds", max_rounds)
    for level in s:
        if not level < 1:
            raise ValueError(f"s has {level!r}, which is not below 1")
    rows = PartRows(task.X, task.kernel, [None], 200.0, task.threads)
    reference = task.expansion
    assert reference.rows is not None
    start = np.zeros(task.m)
    start[reference.rows] = reference.coef
    scores = np.zeros(task.m)
    rows(0).add(reference.rows, reference.coef, scores)
    return [_run(task, rows, start, scores, reference.bias, float(level), tol, max_rounds) for level in s]


def _run(
    task: Task, rows: PartRows, alpha: Array, scores: Array, bias: float, s: float, tol: float, max_rounds: int
) -> Expansion:
    objectives: list[float] = []
    kept, shift = (alpha, bias), np.zeros(0)
    for _ in range(max_rounds + 1):
        margin = task.y * (scores + bias)
        loss = np.minimum(1 - s, np.maximum(0.0, 1 - margin))
        value = 0.5 * float(alpha @ scores) + task.C * float(loss.sum())
        if objectives and value >= (1 - MIN_ROUND_GAIN) * objectives[-1]:
            break  # within the tolerance of a round
        objectives.append(value)
        kept, tangent = (alpha, bias), np.where(margin < s, task.C, 0.0)
        if np.array_equal(tangent, shift):
            break
        shift = tangent
        alpha, scores, bias = _solve(task, rows, alpha, scores, shift, tol)
    support = np.flatnonzero(kept[0])
    return task.on_rows("ramp", support, kept[0][support], kept[1], s=s, objectives=objectives)


def _solve(
    task: Task, rows: PartRows, alpha: Array, scores: Array, shift: Array, tol: float
) -> tuple[Array, Array, float]:
    """The optimum of a round, from the last one's: coefficients, scores without bias, and the bias."""
    part = ShiftedPart(None, task.y, np.ones(task.m), Hinge(), task.C, shift)
    problem = KernelProblem(task.X, task.kernel, (part,), 1 / (task.C * task.m), float(task.m), rows)
    engine = SMOEngine(problem, Options(tol=tol))
    state = engine.states[0]
    state.alpha = part.feasible(alpha, balance=True)
    moved = np.flatnonzero(state.alpha != alpha)
    state.F = scores.copy()
    rows(0).add(moved, (state.alpha - alpha)[moved], state.F)
    while not state.rests:
        engine.advance()
    slack = part.t - state.F
    top = float(slack[state.alpha < part.hi].max(initial=-np.inf))
    bottom = float(slack[state.alpha > part.lo].min(initial=np.inf))
    bias = 0.5 * (top + bottom) if np.isfinite(top + bottom) else part.best_bias(state.F)
    return state.alpha, state.F, bias
