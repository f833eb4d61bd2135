"""Kernel machines by the interior point method on a low-rank kernel (Fine & Scheinberg 2001).

An incomplete Cholesky factorisation with pivots makes K ≈ GGᵀ of r columns, r as large as the trace of what is left
asks for. The quadratic program with GGᵀ in place of K is that of the linear machine on the rows of G, and an iteration
of the interior point method on it costs O(m r²) and memory for m r numbers. (Theirs solves its Newton systems by a
product form of the Cholesky factor of GGᵀ + D; the linear solver's r × r normal equations are the same systems after
the Sherman–Morrison–Woodbury formula.)

With P the pivots and L the rows of G that are theirs, K_PP = LLᵀ and G = K_XP L⁻ᵀ: the machine on G is the exact one
with weights restricted to the span of the pivots, β_P = L⁻ᵀu. So everything else is as with Nyström features: the
primal value is that of the exact problem, and so is the lower bound that the dual variables prove with the whole K.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

import numpy as np
from scipy import linalg

from pegasos.fit.engine import Engine, Options
from pegasos.kernels.span import incomplete_cholesky, min_outside_share
from pegasos.losses import Which
from pegasos.problems.kernel import Coefficients, KernelProblem
from pegasos.problems.part import check_values
from pegasos.rows.views import Array
from pegasos.solvers.base import KernelSolver, check_count, check_flag
from pegasos.solvers.kernel.nystroem import Machine, NystroemEngine
from pegasos.solvers.kernel.spans import Span, empty_features, values
from pegasos.solvers.linear.interior_point import InteriorPoint


class LowRankEngine(NystroemEngine):
    """The linear machines of the parts on the factors of their kernel matrices, one after the other."""

    def __init__(
        self, problem: KernelProblem, options: Options, *, rank: int, trace_tol: float, exact_bound: bool
    ) -> None:
        self.rank, self.trace_tol = rank, trace_tol
        super().__init__(problem, options, components=rank, exact_bound=exact_bound)

    def _choose(self, components: int) -> list[Array]:
        """Nothing yet: the pivots are found with the factor, when it is the part's turn."""
        return [np.zeros(0, dtype=np.int64) for _ in self.problem.parts]

    def _machine(self, k: int) -> Machine:
        return Machine(self.problem, k, self._span(k), InteriorPoint(), self.seed)

    def _span(self, k: int) -> Span:
        """The factor of part k, whose pivots are among the rows that have weight."""
        problem, part = self.problem, self.problem.parts[k]
        problem.rows.widen(k)
        rows, every = problem.rows(k), np.arange(part.m)

        def column(j: int) -> Array:
            return np.asarray(values(problem, k, np.array([j]), every)[0])

        diagonal = rows.diagonal()
        endless = np.flatnonzero(~np.isfinite(diagonal))[:1]
        check_values(diagonal[endless, None], problem.numbers(k, endless))
        own = np.where(part.weight > 0, diagonal, 0.0)
        floor = min_outside_share(rows.dtype)
        pivots, V = incomplete_cholesky(column, own, self.rank, share=self.trace_tol, floor=floor)
        if not len(pivots):  # every K(x, x) is zero
            return Span(every[:1], np.zeros((1, 1)), np.zeros((part.m, 1)))
        features = empty_features(part.m, len(pivots))
        features[:] = V.T
        back = linalg.solve_triangular(V[:, pivots], np.eye(len(pivots)))
        return Span(pivots, np.asarray(back), features)


@dataclass(frozen=True)
class LowRankInteriorPoint(KernelSolver):
    """The interior point method on a low-rank kernel, K ≈ GGᵀ (Fine & Scheinberg, JMLR 2, 2001).

    G is an incomplete Cholesky factor with pivots, the row that is farthest from the span of those before being the
    next, until what is left of the trace is small. The quadratic program with GGᵀ is solved by :class:`InteriorPoint`
    on the rows of G, the problem of a smooth loss by Newton's method there. The weights are those of the exact problem
    restricted to the span of the pivots, which become the support vectors. The fit ends where they are within ``tol``
    of the best ones in the span; by how much at most they are above those is the certificate's ``restricted_gap``. Its
    ``primal`` and ``dual`` are those of the exact problem.

    Parameters
    ----------
    rank : int, default=500
        Columns of G at most, for each pair of classes. They take rows · rank · 8 bytes twice, and the factorisation
        rows · rank² operations, as many as an iteration of the interior point method.
    trace_tol : float, default=1e-6
        The share of the trace of K, (1/m) Σ (K − GGᵀ)_ii ≤ trace_tol · (1/m) Σ K_ii, at which G is good enough.
    exact_bound : bool, default=True
        Whether to compute the lower bound of the exact problem in the end. It takes the kernel values between all rows
        that have a dual variable other than zero, in blocks. Without it the lower bound is 0, that of all losses.

    Examples
    --------
    >>> from pegasos import SVC
    >>> from pegasos.solvers import LowRankInteriorPoint
    >>> model = SVC(solver=LowRankInteriorPoint(rank=3), gamma=1.0).fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 1, 0])
    >>> model.support_vectors_.shape
    (3, 1)
    """

    rank: int = 500
    trace_tol: float = 1e-6
    exact_bound: bool = True
    name: ClassVar[str] = "low_rank"
    intercepts: ClassVar[tuple[str, ...]] = ("unregularized", "none")
    losses: ClassVar[Which] = Which(lambda loss: loss.kind != "joint" and (loss.piecewise_linear or loss.smooth))

    def __post_init__(self) -> None:
        check_count(self, "rank")
        check_flag(self, "exact_bound")
        share = self.trace_tol
        if not isinstance(share, Real) or isinstance(share, bool) or not 0 <= float(share) < 1:
            raise ValueError(f"LowRankInteriorPoint: trace_tol={share!r} must be a number of at least 0 and below 1")

    def engine(self, problem: KernelProblem, options: Options) -> Engine[Coefficients]:
        return LowRankEngine(
            problem,
            options,
            rank=int(self.rank),
            trace_tol=float(self.trace_tol),
            exact_bound=bool(self.exact_bound),
        )
