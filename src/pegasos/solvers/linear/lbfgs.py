"""L-BFGS on the weights of linear machines; a free bias is the best one for the weights, wherever they are.

    F(w) = min_b P(w, b),   ∇F(w) = ∂P/∂w at the best b

The slopes at the best bias are balanced, Σ c_i u_i = 0, and so they are a dual point: its gap is ‖∇F‖²/(2λ).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pegasos.fit.engine import Options
from pegasos.losses import Which
from pegasos.problems.base import Point
from pegasos.problems.linear import LinearProblem, Weights, best_biases
from pegasos.rows.views import Array
from pegasos.solvers.base import Solver, check_count
from pegasos.solvers.lbfgs import LbfgsEngine
from pegasos.solvers.linear.engine import LinearEngine


class LinearLbfgsEngine(LbfgsEngine[Weights], LinearEngine):
    """All parts at once: a sum of objectives whose weights do not meet. A last column is the constant feature's."""

    def __init__(self, problem: LinearProblem, memory: int) -> None:
        self.problem = problem
        self.B = problem.feature if problem.bias == "feature" else 0.0
        width = problem.examples.n + int(self.B != 0)
        super().__init__(np.zeros((problem.outputs, width)), lam=problem.lam, memory=memory)
        #: The weights looked at last, with their biases and slopes.
        self.seen: tuple[Array, Array, Array] | None = None

    @property
    def largest(self) -> float:
        return max(self.B, float(np.sqrt(self.problem.examples.squared_norms.max())))

    def at_zero(self) -> float:
        return float(self.problem.at_zero().sum())

    def objective(self, W: Array) -> tuple[float, Array]:
        p, n = self.problem, self.problem.examples.n
        b = self.B * W[:, n] if self.B else np.zeros(p.outputs)
        own = np.ascontiguousarray(W[:, :n])
        Z = p.scores(own, b)
        if p.bias == "free":
            shift = best_biases(p, Z)
            b, Z = b + shift, Z + shift
        u = p.entrywise(p.by_rows.slope, Z)
        gradient = W - p.dual_weights(u) if not self.B else W - np.column_stack([p.dual_weights(u), self._feature(u)])
        self.seen = W, b, u
        value = p.penalty(p.squared_norms_of(own), b) + p.mean_losses(Z)
        return float(value.sum()), self.lam * gradient

    def _feature(self, u: Array) -> Array:
        """The constant feature's weights of W(u)."""
        return np.asarray(self.B * (self.problem.c @ u) / (self.lam * self.problem.total))

    def start(self, point: Point[Weights]) -> None:
        """Begin at the weights of the dual variables."""
        if point.duals is not None:
            u = point.duals
            W = self.problem.dual_weights(u)
            self.W = np.column_stack([W, self._feature(u)]) if self.B else W

    def _at_current(self) -> tuple[Array, Array, Array]:
        if self.seen is None or self.seen[0] is not self.W:  # after a step that was not taken
            self.objective(self.W)
        assert self.seen is not None
        return self.seen

    def model(self) -> tuple[Array | None, Array]:
        W, b, _ = self._at_current()
        return np.ascontiguousarray(W[:, : self.problem.examples.n]), b

    def duals(self) -> Array | None:
        return self._at_current()[2]


@dataclass(frozen=True)
class LBFGS(Solver):
    """L-BFGS with a certificate, for smooth losses, on all rows at once.

    For linear machines with a smooth loss, a :class:`~pegasos.losses.CustomLoss` with a ``smoothness`` among them; for
    sequences with the log loss (:class:`~pegasos.SequenceSVC`: conditional random fields); and for the log loss of an
    oracle that can sum over labellings (:class:`~pegasos.StructuredSVC`).

    Parameters
    ----------
    memory : int, default=5
        Pairs of changes that are kept, each two arrays of the size of the weights.

    Examples
    --------
    >>> from pegasos import LBFGS, SequenceSVC
    >>> X, y = [["a", "b"], ["b", "a"]], [["A", "B"], ["B", "A"]]
    >>> model = SequenceSVC(loss="log", solver=LBFGS(memory=3)).fit(X, y)
    >>> model.certificate_.converged
    True
    """

    memory: int = 5
    name: ClassVar[str] = "lbfgs"
    losses: ClassVar[Which] = Which(lambda loss: loss.smooth and loss.kind != "joint")
    own_losses: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_count(self, "memory")

    def check(self, problem: LinearProblem, intercept: str) -> None:
        super().check(problem, intercept)
        if not np.isfinite(problem.loss.smoothness):
            raise ValueError(
                "solver 'lbfgs' needs a smooth loss: give CustomLoss its smoothness, or use 'cutting_plane'"
            )

    def numbers_per_weight(self, outputs: int) -> int:
        return 2 * int(self.memory) + 6

    def engine(self, problem: LinearProblem, options: Options) -> LinearEngine:
        return LinearLbfgsEngine(problem, int(self.memory))
