"""Cutting planes: SVM-Perf's one-slack method with the line search of OCAS.

    F(w) = (λ/2)‖w‖² + R(w),   R(w) = min_b (1/M) Σ c_i ℓ_i(⟨w, x_i⟩ + b)   (b only if it is free)

R is convex; at any w it has the tangent plane R(w′) ≥ e + ⟨a, w′⟩ with a = −(1/M) Σ c_i u_i x_i, where u_i are the
slopes at the best b, mixed at a kink so that Σ c_i u_i = 0. The minimum w over the planes seen so far (``planes.py``)
gives a lower bound of the optimum. It is the dual value, or less, of the planes' slopes mixed by α: every plane touches
its loss, so that Σ α_j e_j ≤ (1/M) Σ c_i (−ℓ_i*(−Σ α_j u_ji)). That dual point is what is certified. The next plane is
not cut at w: OCAS goes to the best point on the way from the best weights so far to w, and cuts a little beyond it
(Franc & Sonnenburg 2008).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pegasos.fit.engine import Options
from pegasos.losses import Which
from pegasos.problems.base import Bounds
from pegasos.problems.linear import LinearProblem, Weights
from pegasos.rows.views import Array
from pegasos.solvers.base import SCALAR_LOSSES, Solver, check_count
from pegasos.solvers.linear.engine import LinearEngine
from pegasos.solvers.linear.planes import Planes, balanced_slopes
from pegasos.util.fields import saved

#: Share of the way from the best point to the model's minimum at which the next plane is cut (OCAS's μ).
CUT_SHARE = 0.1


class _Slopes:
    """The slopes of a plane, a byte a row where nearly all are whole numbers, as the hinge's are."""

    def __init__(self, u: Array) -> None:
        with np.errstate(invalid="ignore"):  # what a byte cannot hold differs from it afterwards
            whole = u.astype(np.int8)
        others = np.flatnonzero(whole != u)
        if len(others) > len(u) // 16:
            whole, others = u, others[:0]
        self.most, self.others, self.rest = whole, others, u[others] - whole[others]

    def add_to(self, total: Array, share: float) -> None:
        """Add ``share`` times the slopes."""
        total += share * self.most
        total[self.others] += share * self.rest

    def array(self) -> Array:
        """The slopes as they were."""
        u = self.most.astype(np.float64)
        u[self.others] += self.rest
        return u


class _Bundle:
    """The planes of one part. w is extended by the constant feature's weight where there is one."""

    def __init__(self, problem: LinearProblem, part: int, max_planes: int) -> None:
        self.problem, self.y, self.max_planes = problem, problem.targets(part), max_planes
        self.B = problem.feature if problem.bias == "feature" else 0.0
        width = problem.examples.n + int(self.B != 0)
        self.planes: Planes[_Slopes] = Planes(width)
        self.best = self.aim = np.zeros(width)
        self.best_score = np.zeros(problem.examples.m)
        self.bias = 0.0
        self.lower = -np.inf
        self._cut(self.best, self.best_score)

    def iterate(self) -> None:
        """Minimise the model, search along the line to its minimum, and cut."""
        p = self.problem
        self.planes.limit(self.max_planes)  # only now: until here ``duals`` needed all planes of the last mixture
        self.aim, self.lower = self.planes.minimum(p.lam, self._precision())
        score = self._score(self.aim)
        t = self._line_search(score - self.best_score)
        self.best = self.best + t * (self.aim - self.best)
        self.best_score = self.best_score + t * (score - self.best_score)
        cut = (1 - CUT_SHARE) * self.best + CUT_SHARE * self.aim
        self._cut(cut, (1 - CUT_SHARE) * self.best_score + CUT_SHARE * score)
        if p.bias == "free":
            self.bias = self._best_bias(self.best_score)[0]

    def _score(self, w: Array) -> Array:
        n = self.problem.examples.n
        b = np.array([self.B * w[n]]) if self.B else np.zeros(1)
        return self.problem.scores(np.ascontiguousarray(w[None, :n]), b)[:, 0]

    def _best_bias(self, score: Array) -> tuple[float, Array]:
        """The best free bias for these scores (0 if there is none) and the balanced slopes there."""
        p = self.problem
        if p.bias != "free":
            return 0.0, p.by_rows.slope(score, self.y)
        return balanced_slopes(p.by_rows, score, self.y, p.c, self.bias)

    def _cut(self, w: Array, score: Array) -> None:
        p = self.problem
        b, u = self._best_bias(score)
        total = score + b
        a = -p.examples.rows.adjoint(np.ascontiguousarray((p.c * u / p.total)[:, None]), p.threads)[0]
        if self.B:
            a = np.append(a, -self.B * float(p.c @ u) / p.total)
        # e = mean(ℓ + u z): the plane's height at w′ = 0.
        e = float(p.c @ (p.by_rows.value(total, self.y) + u * total)) / p.total
        self.planes.add(a, e, _Slopes(u))

    def _precision(self) -> float:
        gap = self.value() - self.lower
        return 1e-3 * gap if np.isfinite(gap) else 1e-3 * max(self.value(), 1e-12)

    def duals(self) -> Array:
        """The slopes of the planes, mixed as their model's minimum mixes them."""
        u = np.zeros(self.problem.examples.m)
        for slopes, share in zip(self.planes.contents, self.planes.alpha, strict=True):
            if share > 0:
                slopes.add_to(u, float(share))
        return u

    def value(self) -> float:
        """F at the best weights."""
        p = self.problem
        losses = float(p.c @ p.by_rows.value(self.best_score + self.bias, self.y)) / p.total
        return 0.5 * p.lam * float(self.best @ self.best) + losses

    def state(self) -> dict[str, Array]:
        """Arrays from which ``restore`` continues to the same bits."""
        named: list[tuple[object, str]]
        named = [(self.planes, name) for name in ("planes", "heights", "gram", "alpha", "unused")]
        named += [(self, name) for name in ("best", "aim", "best_score", "bias", "lower")]
        arrays = {name: np.array(getattr(owner, name), dtype=float, ndmin=1) for owner, name in named}
        return arrays | {"slopes": np.stack([slopes.array() for slopes in self.planes.contents])}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from ``state``."""
        p, width, planes = len(saved(state, "heights", (None,))), len(self.best), self.planes
        if not 1 <= p <= self.max_planes + 1:
            raise ValueError(f"state: {p} planes, not between 1 and {self.max_planes + 1}")
        planes.planes, planes.heights = saved(state, "planes", (p, width)), saved(state, "heights", (p,))
        planes.gram, planes.alpha = saved(state, "gram", (p, p)), saved(state, "alpha", (p,))
        planes.contents = [_Slopes(u) for u in saved(state, "slopes", (p, self.problem.examples.m))]
        planes.unused = saved(state, "unused", (p,), low=0, high=1e15, whole=True).astype(int)
        self.best, self.aim = (saved(state, name, (width,)) for name in ("best", "aim"))
        self.best_score = saved(state, "best_score", self.best_score.shape)
        self.bias, self.lower = (float(saved(state, name, (1,))[0]) for name in ("bias", "lower"))

    def _line_search(self, along: Array) -> float:
        """The t in [0, 1] that minimises F(best + t(aim − best)), by bisection on its derivative."""
        p, d = self.problem, self.aim - self.best
        linear, square = p.lam * float(self.best @ d), p.lam * float(d @ d)

        def rises(t: float) -> bool:
            _, u = self._best_bias(self.best_score + t * along)
            return linear + t * square > float(p.c @ (u * along)) / p.total

        if not rises(1.0):
            return 1.0
        lo, hi = 0.0, 1.0
        for _ in range(20):
            middle = 0.5 * (lo + hi)
            lo, hi = (lo, middle) if rises(middle) else (middle, hi)
        return lo


class CuttingPlaneEngine(LinearEngine):
    """An iteration on each part in turn."""

    def __init__(self, problem: LinearProblem, *, max_planes: int) -> None:
        self.problem = problem
        self.bundles = [_Bundle(problem, part, max_planes) for part in range(problem.n_parts)]
        self.passes, self.turn, self.tol, self.checked = 0.0, 0, 0.0, 0.5
        self.done = np.zeros(problem.n_parts, dtype=bool)

    @property
    def epochs(self) -> float:
        """Iterations."""
        return self.passes

    def advance(self) -> None:
        if not self.done[self.turn]:
            self.bundles[self.turn].iterate()
            self.passes += 1.0 / self.problem.n_parts
        self.turn = (self.turn + 1) % self.problem.n_parts

    def due(self, tol: float) -> bool:
        self.tol = tol
        if self.turn != 0:
            return False
        values = np.array([b.value() for b in self.bundles])
        lower = np.array([b.lower for b in self.bundles])
        return bool(np.all(values - lower <= tol * values)) or self.passes >= 2 * self.checked

    def model(self) -> tuple[Array, Array]:
        n = self.problem.examples.n
        W = np.stack([b.best[:n] for b in self.bundles])
        bias = np.array([b.B * b.best[n] if b.B else b.bias for b in self.bundles])
        return W, bias

    def duals(self) -> Array | None:
        return np.column_stack([b.duals() for b in self.bundles])

    def learn(self, bounds: Bounds[Weights]) -> None:
        self.checked = self.passes
        self.done = bounds.gap <= self.tol * bounds.primal

    def state(self) -> dict[str, Any]:
        named = {f"{k}.{name}": value for k, b in enumerate(self.bundles) for name, value in b.state().items()}
        numbers = {
            "passes": self.passes,
            "turn": self.turn,
            "checked": self.checked,
            "tol": self.tol,
            "done": self.done,
        }
        return named | {name: np.array(value, dtype=float, ndmin=1) for name, value in numbers.items()}

    def restore(self, state: dict[str, Any]) -> None:
        parts = self.problem.n_parts
        self.passes = float(saved(state, "passes", (1,), low=0, high=1e15)[0])
        self.turn = int(saved(state, "turn", (1,), low=0, high=parts - 1, whole=True)[0])
        self.checked, self.tol = (float(saved(state, name, (1,))[0]) for name in ("checked", "tol"))
        self.done = saved(state, "done", (parts,), low=0, high=1, whole=True).astype(bool)
        for k, bundle in enumerate(self.bundles):
            prefix = f"{k}."
            bundle.restore({n.removeprefix(prefix): a for n, a in state.items() if n.startswith(prefix)})


@dataclass(frozen=True)
class CuttingPlane(Solver):
    """SVM-Perf's cutting planes in one-slack form, with the line search of OCAS.

    The mean loss is replaced by the maximum of its tangent planes; each iteration adds one, at a point near the best
    weights so far, and solves a small quadratic program. Joachims (2006); Franc & Sonnenburg (2008); Teo et al. (2010).
    Structured machines (:class:`~pegasos.StructuredSVC`) are cut at the model's minimum, without a line search, which
    would decode all rows again and again: Joachims, Finley & Yu (2009).

    Parameters
    ----------
    max_planes : int, default=200
        Planes kept; the longest unused ones go first. Each takes 8 bytes a column, and a byte a row for the hinge and
        the ε-insensitive loss, 8 for the others; of a structured machine 16 bytes for each weight that is not zero.

    Examples
    --------
    >>> from pegasos import CuttingPlane, LinearSVC
    >>> LinearSVC(solver=CuttingPlane(), lam=0.1).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).certificate_.converged
    True
    """

    max_planes: int = 200
    name: ClassVar[str] = "cutting_plane"
    losses: ClassVar[Which] = SCALAR_LOSSES
    own_losses: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_count(self, "max_planes", 2)

    def engine(self, problem: LinearProblem, options: Options) -> LinearEngine:
        return CuttingPlaneEngine(problem, max_planes=int(self.max_planes))
