"""The optimisation problem of a kernel machine, frozen, and its certificates.

Over the reproducing space of the kernel, for each part (a pair of classes, or all rows)

    P(w, b) = (λ/2)‖w‖² + (1/M) Σ_i c_i ℓ(y_i, ⟨w, φ(x_i)⟩ + b),   λ = 1/(C M),

with a bias that is not regularised (``bias="free"``), the weight of a constant feature ("feature"), or none. For the
hinge and the ε-insensitive loss and a free bias the dual, in units of λ, is one concave quadratic program,

    D/λ = max Σ_v t_v α_v − ½ Σ_uv α_u α_v K(x_r(u), x_r(v)),   lo ≤ α ≤ hi,  Σα = 0,

and the same without Σα = 0 where there is no bias, with a variable v for each row (hinge: t = y, α between 0 and y C c)
or two (ε-insensitive: t = y − ε and α in [0, C c], t = y + ε and α in [−C c, 0]); w = Σ_v α_v φ(x_r(v)).
For all losses there are dual variables u_i in the loss's unit domain too, as for linear machines:
w = Σ_i C c_i u_i φ(x_i).

With w = Σ coef_i φ(x_i), scores F = K coef and ‖w‖² = coef·F; a constant feature of value B adds B² to the kernel,
so that b = B² Σ coef and ‖w‖² + b²/B² is regularised. For u in the domain of the conjugates (and Σ c u = 0 if the
bias is free)

    D(u) = (1/M) Σ c_i (−ℓ*(−u_i)) − (λ/2)‖w(u)‖²  ≤  P*  ≤  P(w, b),   w(u) = Σ_i C c_i u_i φ(x_i),

if the kernel is positive semi-definite. With u all of t u, 0 ≤ t ≤ 1, lies in the domain, which holds zero: the best t
counts. Of a K that is only proven to have no eigenvalue below −s, which is what a matrix with rounding errors can be,
K with negative eigenvalues set to zero is meant. K + sI is above that, so that with it in ‖w(u)‖² D is a lower bound.

A solver proposes coefficients, dual variables and, if it has them, scores. None of it is relied on: scores are
computed anew in float64, but for rows whose loss is proven to be zero by the scores proposed and the a-priori bound of
their rounding errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from pegasos.kernels.definite import BY_KIND, MAX_CHECKED_ROWS, UNKNOWN, Definiteness, check, lower_bounds
from pegasos.kernels.functions import Kernel
from pegasos.kernels.gram import PartRows
from pegasos.losses import Loss
from pegasos.problems.base import Bounds, Point, RunningScores
from pegasos.problems.linear import Bias
from pegasos.problems.part import Part
from pegasos.rows.views import Array, stored_arrays
from pegasos.util.arrays import Matrix
from pegasos.util.digests import digest
from pegasos.util.fields import MAX_FINITE, saved
from pegasos.util.threads import dot

#: Why there is no lower bound: there is no duality without a space of features.
UNBOUNDED = "so there is no lower bound"
INDEFINITE = f"the kernel is not positive semi-definite, {UNBOUNDED}"

#: Kernel values up to which a certificate computes all scores: to find out which of them matter would take longer.
FULL_CERTIFICATE_VALUES = 1 << 16


class Coefficients(NamedTuple):
    """Coefficients of the rows, those of one part after the other, and the biases (None: not known yet)."""

    coef: Array
    b: Array | None = None


@dataclass(frozen=True)
class KernelProblem:
    """See the module's docstring. ``rows(k)`` gives the kernel rows of part k."""

    X: Matrix
    kernel: Kernel
    parts: Sequence[Part]
    lam: float
    total: float
    rows: PartRows
    bias: Bias = "free"
    feature: float = 1.0
    _proofs: dict[bytes, Definiteness] = field(default_factory=dict, repr=False, compare=False)
    _kept: dict[tuple[str, int], tuple[Array, Any]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def n_parts(self) -> int:
        """Independent problems."""
        return len(self.parts)

    @property
    def loss(self) -> Loss:
        """That of all parts."""
        return self.parts[0].loss

    @property
    def C(self) -> float:
        """1/(λM), of all parts."""
        return self.parts[0].C

    @property
    def size(self) -> int:
        """Coefficients of a model: one for each row of each part."""
        return sum(p.m for p in self.parts)

    def mean_squared_norm(self, k: int) -> float:
        """(1/M) Σ c_i K(x_i, x_i) over the rows of part k; a kernel that is not positive semi-definite has none."""
        return max(float(self.parts[k].weight @ self.rows(k).diagonal()) / self.total, 0.0)

    def at_zero(self) -> Array:
        """P(0, 0) of each part."""
        return np.array([p.weight @ p.by_rows.value(np.zeros(p.m), p.y) / self.total for p in self.parts])

    def split(self, flat: Array) -> list[Array]:
        """Views of numbers of the rows of each part."""
        ends = accumulate(part.m for part in self.parts)
        return [flat[end - part.m : end] for end, part in zip(ends, self.parts, strict=True)]

    def scores(self, k: int, coef: Array) -> Array:
        """K coef on the rows of part k, in float64; those computed last are kept, and serve for multiples of coef."""
        return np.asarray(self._multiple("scores", k, coef, self._computed_scores, 1))

    def square(self, k: int, coef: Array) -> float:
        """‖Σ coef_i φ(x_i)‖² in part k, in float64; kept in the same way."""
        return float(self._multiple("square", k, coef, self._computed_square, 2))

    def _multiple(self, what: str, k: int, coef: Array, compute: Callable[[int, Array], Any], power: int) -> Any:
        before, found = self._kept.get((what, k), (np.zeros(0), None))
        at = int(np.argmax(np.abs(before))) if before.any() else -1
        if at >= 0 and len(before) == len(coef):
            factor = float(coef[at] / before[at])
            if np.allclose(coef, factor * before, rtol=1e-15, atol=0.0):
                return found * factor**power
        found = compute(k, coef)
        self._kept[what, k] = coef.copy(), found
        return found

    def _computed_scores(self, k: int, coef: Array) -> Array:
        support, m = np.flatnonzero(coef), self.parts[k].m
        return np.asarray(self.rows(k).exact(support, coef[support], np.arange(m))) if len(support) else np.zeros(m)

    def _computed_square(self, k: int, coef: Array) -> float:
        support = np.flatnonzero(coef)
        if not len(support):
            return 0.0
        own = coef[support]
        return dot(own, self.rows(k).exact(support, own, support))

    def definiteness(self, k: int) -> Definiteness:
        """What is known of the kernel matrix of part k; rows without weight are no part of the problem.

        Kernels that need not be positive semi-definite by their kind are checked, if the rows are not too many.
        """
        if self.kernel.definite:
            return BY_KIND
        if (of_all := self._proofs.get(b"all", UNKNOWN)).known == "proven":
            return of_all
        part = self.parts[k]
        rows = np.flatnonzero(part.weight > 0)
        if len(rows) > MAX_CHECKED_ROWS:
            return UNKNOWN
        key = rows.tobytes() if part.index is None else part.index[rows].tobytes()
        if key not in self._proofs:
            self._proofs[key] = check(self.rows(k).matrix(rows))
        return self._proofs[key]

    def definiteness_of_all(self) -> Definiteness:
        """The same for all rows: what is proven of them holds for each part."""
        if self.kernel.definite:
            return BY_KIND
        m = int(self.X.shape[0])
        if m > MAX_CHECKED_ROWS:
            return UNKNOWN
        if b"all" not in self._proofs:
            self._proofs[b"all"] = check(self.rows.of_all().matrix(np.arange(m)))
        return self._proofs[b"all"]

    @property
    def doubt(self) -> str:
        """Why there is no lower bound, if there is none."""
        if self.kernel.definite:
            return ""
        known = {self.definiteness(k).known for k in range(self.n_parts)}
        if "refuted" in known:
            return INDEFINITE
        return f"the kernel is not known to be positive semi-definite, {UNBOUNDED}" if "unknown" in known else ""

    def numbers(self, k: int, rows: Array) -> Array:
        """The numbers in X of rows of part k."""
        index = self.parts[k].index
        return rows if index is None else np.asarray(index[rows])

    # --- what the loop asks ------------------------------------------------------------------------------------------

    def first_bounds(self) -> Array:
        """None: with a kernel that is not positive semi-definite even u = 0 bounds nothing."""
        return np.broadcast_to(-np.inf, self.n_parts)

    def trivial(self) -> None:
        """None: estimators handle targets that are all equal before they make a problem."""
        return

    def certify(self, point: Point[Coefficients]) -> Bounds[Coefficients]:
        """P and D of what a solver proposes, for each part; a bias that is not regularised is the best one."""
        shared = all(part.index is None for part in self.parts) and point.scores is None and not point.separate
        groups = [list(range(self.n_parts))] if shared else [[k] for k in range(self.n_parts)]
        coefs, duals = self.split(point.model.coef), None if point.duals is None else self.split(point.duals)
        found: dict[int, tuple[float, float, float, float]] = {}
        for group in groups:
            own = point.model.coef.reshape(self.n_parts, -1) if shared else np.stack([coefs[k] for k in group])
            u = None if duals is None else np.stack([duals[k] for k in group])
            if point.scores is not None:
                found[group[0]] = _from_running(self, group[0], own[0], point.scores[group[0]])
            else:
                found |= zip(group, _from_rows(self, group, own, u, point.separate), strict=True)
        primal, formal, b, error = np.array([found[k] for k in range(self.n_parts)]).T.copy()
        proven = np.array([self.definiteness(k).known == "proven" for k in range(self.n_parts)])
        dual = lower_bounds(proven, primal, formal)
        model = Coefficients(point.model.coef, b)
        return Bounds(primal, dual, model, formal=np.minimum(formal, primal), score_error=error)

    def choose(self, first: Array, one: Coefficients, other: Coefficients) -> Coefficients:
        """The coefficients ``one`` of the parts in ``first``, and the other ones of the rest."""
        assert one.b is not None
        assert other.b is not None
        pairs = zip(first, self.split(one.coef), self.split(other.coef), strict=True)
        coef = np.concatenate([mine if chosen else rest for chosen, mine, rest in pairs])
        return Coefficients(coef, np.where(first, one.b, other.b))

    def arrays(self, model: Coefficients) -> dict[str, Array]:
        """Coefficients and biases."""
        assert model.b is not None
        return {"W": model.coef, "b": model.b}

    def model_of(self, arrays: Mapping[str, Array]) -> Coefficients:
        """What ``arrays`` wrote."""
        shapes = {"W": (self.size,), "b": (self.n_parts,)}
        return Coefficients(*(saved(arrays, k, shape, low=-MAX_FINITE, high=MAX_FINITE) for k, shape in shapes.items()))

    def digests(self) -> dict[str, str]:
        """What the problem is, in words and digests; a kernel function is known by its name only."""
        arrays, kernel = stored_arrays(self.X), self.kernel
        function = kernel.function
        named = "" if function is None else f" {getattr(function, '__qualname__', type(function).__qualname__)}"
        return {
            "rows": str(self.X.shape[0]),
            "columns": str(self.X.shape[1]),
            "layout": "CSR" if len(arrays) > 1 else "dense",
            "dtype": " ".join(str(a.dtype) for a in arrays),
            "data": digest(*arrays),
            "targets": digest(*self._targets()),
            "weights": digest(*self._weights()),
            "outputs": str(self.n_parts),
            "loss": self.loss.spelled(),
            "lam": repr(float(self.lam)),
            "kernel": f"{kernel.name}{named} gamma={kernel.gamma!r} coef0={kernel.coef0!r} degree={kernel.degree}",
            "intercept_scaling": repr(float(self.feature)),
            "sharing of kernel rows": "yes" if self.rows.whole is not None else "no",
        }

    def _targets(self) -> list[Array]:
        """Those of all parts."""
        return [part.y for part in self.parts]

    def _weights(self) -> list[Array]:
        """Those of the rows."""
        return [part.weight for part in self.parts]


# --- certificates ----------------------------------------------------------------------------------------------------


def squared_norm(problem: KernelProblem, coef: Array, F: Array) -> float:
    """‖w‖², with the weight of a constant feature."""
    return dot(coef, F) + _feature_square(problem, coef)


def _feature_square(problem: KernelProblem, coef: Array) -> float:
    return (problem.feature * float(coef.sum())) ** 2 if problem.bias == "feature" else 0.0


def primal_value(problem: KernelProblem, part: Part, coef: Array, F: Array) -> tuple[float, float]:
    """P of these coefficients, whose scores without bias are F, and the best bias."""
    b = _bias(problem, part, coef, F)
    loss = dot(part.weight, part.by_rows.value(np.ascontiguousarray(F + b), part.y)) / problem.total
    return 0.5 * problem.lam * squared_norm(problem, coef, F) + loss, b


def _bias(problem: KernelProblem, part: Part, coef: Array, F: Array) -> float:
    if problem.bias == "free":
        return part.best_bias(F)
    return problem.feature**2 * float(coef.sum()) if problem.bias == "feature" else 0.0


def dual_value(problem: KernelProblem, part: Part, u: Array, coef: Array, F: Array) -> float:
    """D of u in the domain, whose w(u) has these coefficients and scores."""
    return _conjugates(problem, part, u) - 0.5 * problem.lam * squared_norm(problem, coef, F)


def dual_value_near(problem: KernelProblem, part: Part, u: Array, coef: Array, near: Array, F: Array) -> float:
    """An estimate of D where F are the scores of other coefficients ``near`` those of w(u), whose weights are w̃.

    ‖w(u)‖² = 2⟨w(u), w̃⟩ − ‖w̃‖² + ‖w(u) − w̃‖², the last of which is left out.
    """
    B2 = problem.feature**2 if problem.bias == "feature" else 0.0
    ahead = 2 * coef - near
    square = dot(ahead, F) + B2 * float(ahead.sum()) * float(near.sum())
    return _conjugates(problem, part, u) - 0.5 * problem.lam * square


def _conjugates(problem: KernelProblem, part: Part, u: Array) -> float:
    return dot(part.weight, part.by_rows.conjugate(np.ascontiguousarray(u), part.y)) / problem.total


def exact_scores(problem: KernelProblem, k: int, coef: Array) -> Array:
    """K coef for each line of ``coef``, on the rows of part k, in float64."""
    support = np.flatnonzero(coef.any(axis=0))
    if not len(support):
        return np.zeros_like(coef)
    own = coef if len(support) == coef.shape[1] else coef[:, support]
    return np.asarray(problem.rows(k).exact(support, own, np.arange(coef.shape[1])))


def primal_values(problem: KernelProblem, numbers: list[int], coef: Array) -> list[float]:
    """P of the parts ``numbers``, which have the same rows; a line of ``coef`` for each."""
    found = zip(numbers, coef, exact_scores(problem, numbers[0], coef), strict=True)
    return [primal_value(problem, problem.parts[k], own, F)[0] for k, own, F in found]


def _from_rows(
    problem: KernelProblem, numbers: list[int], coef: Array, u: Array | None, separate: bool
) -> list[tuple[float, float, float, float]]:
    """P, D, bias and 0 of parts that have the same rows, with all scores recomputed."""
    parts = [problem.parts[k] for k in numbers]
    # Line by line: of a thousand classes each copy is as large as the model.
    proposed = (_own_duals(p, c) for p, c in zip(parts, coef, strict=True)) if u is None else u
    feasible = np.empty_like(coef)
    for line, p, v in zip(feasible, parts, proposed, strict=True):
        line[:] = p.feasible_duals(v, balance=problem.bias == "free")
    same = all(np.array_equal(c, p.shares * v) for c, p, v in zip(coef, parts, feasible, strict=True))
    dual_coef = coef if same else np.stack([p.shares * v for p, v in zip(parts, feasible, strict=True)])
    if same:
        Z = exact_scores(problem, numbers[0], coef)
        squares = [dot(c, F) for c, F in zip(dual_coef, Z, strict=True)]
    elif separate:
        Z = np.stack([problem.scores(k, c) for k, c in zip(numbers, coef, strict=True)])
        squares = [problem.square(k, c) for k, c in zip(numbers, dual_coef, strict=True)]
    else:  # kernel values are computed once for both
        Z = exact_scores(problem, numbers[0], np.concatenate([coef, dual_coef]))
        squares = [dot(c, F) for c, F in zip(dual_coef, Z[len(parts) :], strict=True)]
    found = []
    for k, own, F, v, c, square in zip(numbers, coef, Z[: len(parts)], feasible, dual_coef, squares, strict=True):
        P, b = primal_value(problem, problem.parts[k], own, F)
        found.append((P, _best_on_ray(problem, k, v, c, square), b, 0.0))
    return found


def _own_duals(part: Part, coef: Array) -> Array:
    """The dual variables whose weights are these coefficients."""
    return np.divide(coef, part.shares, out=np.zeros_like(coef), where=part.shares > 0)


def _from_running(
    problem: KernelProblem, k: int, coef: Array, kept: RunningScores
) -> tuple[float, float, float, float]:
    """P, and D of its own dual variables, of part k, its bias, and the largest error seen in scores kept up to date.

    Such a score is used if the row's loss is zero within the bound of its rounding error; all others are computed.
    """
    part, support = problem.parts[k], np.flatnonzero(coef)
    if len(support) * part.m <= FULL_CERTIFICATE_VALUES:
        scores = exact_scores(problem, k, coef[None])[0]
        error = float(np.abs(scores - kept.values).max())
    else:
        scores, error = _wanted_scores(problem, k, coef, kept)
    P, b = primal_value(problem, part, coef, scores)
    u = part.feasible_duals(_own_duals(part, coef), balance=problem.bias == "free")
    dual_coef = part.shares * u
    if not (np.abs(dual_coef - coef) > 1e-12 * np.abs(coef)).any():
        square = dot(coef[support], scores[support])
    else:
        square = problem.square(k, dual_coef)
    return P, _best_on_ray(problem, k, u, dual_coef, square), b, error


def _wanted_scores(problem: KernelProblem, k: int, coef: Array, kept: RunningScores) -> tuple[Array, float]:
    """Scores of all rows, recomputed where the loss may depend on them, and the largest error seen."""
    part, rows, support = problem.parts[k], problem.rows(k), np.flatnonzero(coef)
    reach = kept.drift.reach(coef - kept.coef, *rows.value_errors())
    scores, known = kept.values.copy(), np.zeros(part.m, dtype=bool)
    wanted, error = (coef != 0) | ~np.isfinite(scores) | (reach == np.inf), 0.0
    while len(new := np.flatnonzero(wanted & ~known)):
        scores[new] = rows.exact(support, coef[support], new)
        known[new] = True
        off = np.abs(scores[new] - kept.values[new])
        error = max(error, float(off[np.isfinite(off)].max(initial=0.0)))
        b = _bias(problem, part, coef, scores)
        # The second term is for the rounding of sums with the bias, and of their comparison with the kink.
        wanted = ~part.flat(scores + b, reach + 1e-14 * (1 + np.abs(part.y) + np.abs(scores) + abs(b)))
    return scores, error


def _best_on_ray(problem: KernelProblem, k: int, u: Array, coef: Array, square: float) -> float:
    """The best D of t u over 0 ≤ t ≤ 1, where w(u) has these coefficients and coef·K coef; D is concave in t."""
    part, shift = problem.parts[k], problem.definiteness(k).shift
    square += _feature_square(problem, coef) + (shift * dot(coef, coef) if shift else 0.0)
    half = 0.5 * problem.lam * square

    def value(t: float) -> float:
        return _conjugates(problem, part, t * u) - t * t * half

    best = value(1.0)
    if part.loss.piecewise_linear:  # so are the conjugates
        slope = best + half
        t = slope / (2 * half) if 2 * half > slope > 0 else 1.0
        return max(best, t * slope - t * t * half, 0.0)
    low, high = 0.0, 1.0
    if best < value(0.99):
        for _ in range(60):
            third = (high - low) / 3
            low, high = (low + third, high) if value(low + third) < value(high - third) else (low, high - third)
        best = value(0.5 * (low + high))
    return max(best, 0.0)
