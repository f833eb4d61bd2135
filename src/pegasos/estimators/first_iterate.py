"""The first iterate w_1 of a stochastic sub-gradient method that a user gives: ``coef_init``, ``intercept_init``."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from pegasos.fit.engine import Engine
from pegasos.problems.linear import LinearProblem
from pegasos.rows.views import Array
from pegasos.solvers import SGD, Norma, Pegasos, Solver
from pegasos.solvers.linear.subgradient import SubgradientEngine
from pegasos.util.digests import digest

#: By how much a norm may exceed the radius of the ball: what rounding makes of one that lies on it.
ROUNDING = 1e-9


class FirstIterate(NamedTuple):
    """Weights (outputs × columns) and biases; None: those that the solver begins at."""

    W: Array
    b: Array | None

    @classmethod
    def of(cls, problem: LinearProblem, solver: Solver, bias: str, coef: Any, intercept: Any) -> Self | None:
        """What these stand for; None: nothing is given. ValueError says what is wrong with them."""
        if coef is None and intercept is None:
            return None
        if not isinstance(solver, Pegasos | Norma | SGD):
            raise ValueError(
                f"coef_init, intercept_init: solver {solver.name!r} has no first iterate to choose; "
                "use 'pegasos', 'norma' or 'sgd'"
            )
        if bias == "search":
            raise ValueError(
                "coef_init, intercept_init: with intercept='search' each bias has a run of its own, from zero weights"
            )
        K, n = problem.outputs, problem.examples.n
        shown = 1 if problem.joint and K == 2 else K  # as in coef_: two classes scored jointly have one difference
        W = np.zeros((shown, n)) if coef is None else _numbers("coef_init", coef, (shown, n))
        b = None if intercept is None else _numbers("intercept_init", intercept, (shown,))
        if shown < K:
            W, b = np.concatenate([-W / 2, W / 2]), None if b is None else np.concatenate([-b / 2, b / 2])
        if b is not None and problem.bias == "none" and b.any():
            raise ValueError("intercept_init: there is no intercept with fit_intercept=False")
        given = cls(W, b)
        if solver.projection:
            given._check_norm(problem, solver.radius(problem, problem.lam))
        return given

    def _check_norm(self, problem: LinearProblem, radius: float) -> None:
        biases = np.zeros(len(self.W)) if self.b is None else self.b
        squares = problem.penalty(problem.squared_norms_of(self.W), biases) * (2.0 / problem.lam)
        if (norm := float(np.sqrt(squares.max()))) > radius * (1 + ROUNDING):
            raise ValueError(
                f"coef_init: its norm {norm:.6g} exceeds {radius:.6g}, the radius of the ball that projection=True "
                "keeps the weights in (1/sqrt(lam) for the hinge loss; Pegasos 2007): scale it down, or do not project"
            )

    def begin(self, engine: Engine[Any]) -> None:
        """Have a fresh engine begin here."""
        assert isinstance(engine, SubgradientEngine)
        engine.begin_at(self.W, self.b)

    def digest(self) -> str:
        """What tells it from others."""
        return digest(self.W, np.zeros(0) if self.b is None else self.b)


def _numbers(name: str, given: Any, shape: tuple[int, ...]) -> Array:
    """An array of this shape; a single row, or a single number, may come without its first dimension."""
    array = np.array(given, dtype=np.float64)
    if shape[0] == 1 and array.ndim == len(shape) - 1:
        array = array[None]
    if array.shape != shape:
        raise ValueError(f"{name} has shape {np.shape(given)}, but must have {shape}, as the fitted attribute has")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} has entries that are not finite")
    return np.ascontiguousarray(array)
