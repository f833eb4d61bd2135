"""Certificates of kernel machines for every scalar loss and kind of bias, from coefficients and dual variables of rows.

With w = Σ coef_i φ(x_i), scores F = K coef and ‖w‖² = coef·F; a constant feature of value B adds B² to the kernel,
so that b = B² Σ coef and ‖w‖² + b²/B² is regularised. For u in the domain of the conjugates (and Σ c u = 0 if the
bias is free)

    D(u) = (1/M) Σ c_i (−ℓ*(−u_i)) − (λ/2)‖w(u)‖²  ≤  P*  ≤  P(w, b),   w(u) = Σ_i C c_i u_i φ(x_i),

if the kernel is positive semi-definite. With u all of t u, 0 ≤ t ≤ 1, lies in the domain, which holds zero: the best t
counts. Of a K that is only proven to have no eigenvalue below −s, which is what a matrix with rounding errors can be,
K with negative eigenvalues set to zero is meant. K + sI is above that, so that with it in ‖w(u)‖² D is a lower bound.

A solver proposes coefficients, dual variables and, if it has them, scores. Nothing of it is believed: scores are
computed anew in float64, but for rows whose loss is proven to be zero by the scores proposed and the a-priori bound of
their rounding errors.
"""

from __future__ import annotations

import numpy as np

from pegasos._certificate import Bounds
from pegasos._data import Array
from pegasos._definite import lower_bounds
from pegasos._kernel_engine import FEW, Point, RunningScores
from pegasos._kernel_problem import KernelProblem, Part
from pegasos._pair_certificate import certify_pairs
from pegasos._pair_problem import PairProblem
from pegasos._threads import dot


def squared_norm(problem: KernelProblem, coef: Array, F: Array) -> float:
    """‖w‖², with the weight of a constant feature."""
    return dot(coef, F) + _feature_square(problem, coef)


def _feature_square(problem: KernelProblem, coef: Array) -> float:
    return (problem.feature * float(coef.sum())) ** 2 if problem.bias == "feature" else 0.0


def primal_value(problem: KernelProblem, part: Part, coef: Array, F: Array) -> tuple[float, float]:
    """P of these coefficients, whose scores without bias are F, and the best bias."""
    b = _bias(problem, part, coef, F)
    loss = dot(part.weight, part.core.value(np.ascontiguousarray(F + b), part.y)) / problem.total
    return 0.5 * problem.lam * squared_norm(problem, coef, F) + loss, b


def _bias(problem: KernelProblem, part: Part, coef: Array, F: Array) -> float:
    if problem.bias == "free":
        return part.best_bias(F)
    return problem.feature**2 * float(coef.sum()) if problem.bias == "feature" else 0.0


def dual_value(problem: KernelProblem, part: Part, u: Array, coef: Array, F: Array) -> float:
    """D of u in the domain, whose w(u) has these coefficients and scores."""
    return _conjugates(problem, part, u) - 0.5 * problem.lam * squared_norm(problem, coef, F)


def _conjugates(problem: KernelProblem, part: Part, u: Array) -> float:
    return dot(part.weight, part.core.conjugate(np.ascontiguousarray(u), part.y)) / problem.total


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
    return [primal_value(problem, problem.pieces[k], own, F)[0] for k, own, F in found]


# --- the certificate -------------------------------------------------------------------------------------------------


def certify(problem: KernelProblem, point: Point) -> Bounds:
    """P and D of what a solver proposes, for each part."""
    if isinstance(problem, PairProblem) and point.coef.ndim == 2:
        return certify_pairs(problem, point.coef)
    shared = all(part.index is None for part in problem.pieces) and point.scores is None and not point.separate
    groups = [list(range(problem.parts))] if shared else [[k] for k in range(problem.parts)]
    coefs, duals = problem.split(point.coef), None if point.duals is None else problem.split(point.duals)
    found: dict[int, tuple[float, float, float, float]] = {}
    for group in groups:
        own = point.coef.reshape(problem.parts, -1) if shared else np.stack([coefs[k] for k in group])
        u = None if duals is None else np.stack([duals[k] for k in group])
        if point.scores is not None:
            found[group[0]] = _from_running(problem, group[0], own[0], point.scores[group[0]])
        else:
            found |= zip(group, _from_rows(problem, group, own, u, point.separate), strict=True)
    primal, formal, b, error = np.array([found[k] for k in range(problem.parts)]).T.copy()
    proven = np.array([problem.definiteness(k).known == "proven" for k in range(problem.parts)])
    dual = lower_bounds(proven, primal, formal)
    return Bounds(primal, dual, b, np.empty((0, problem.parts)), formal=np.minimum(formal, primal), score_error=error)


def _from_rows(
    problem: KernelProblem, numbers: list[int], coef: Array, u: Array | None, separate: bool
) -> list[tuple[float, float, float, float]]:
    """P, D, bias and 0 of parts that have the same rows, all scores computed anew."""
    parts = [problem.pieces[k] for k in numbers]
    # Line by line: of a thousand classes each copy is as large as the model.
    proposed = (_own_duals(p, c) for p, c in zip(parts, coef, strict=True)) if u is None else u
    feasible = np.empty_like(coef)
    for line, p, v in zip(feasible, parts, proposed, strict=True):
        line[:] = p.feasible_duals(v, balanced=problem.bias == "free")
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
        P, b = primal_value(problem, problem.pieces[k], own, F)
        found.append((P, _best_on_ray(problem, k, v, c, square), b, 0.0))
    return found


def _own_duals(part: Part, coef: Array) -> Array:
    """The dual variables whose weights are these coefficients."""
    return np.divide(coef, part.shares, out=np.zeros_like(coef), where=part.shares > 0)


def _from_running(
    problem: KernelProblem, k: int, coef: Array, kept: RunningScores
) -> tuple[float, float, float, float]:
    """P, and D of its own dual variables, of part k, its bias, and the largest error seen in scores kept up to date.

    Those are believed of rows whose loss is zero however wrong rounding can have made them; all others are computed.
    """
    part, support = problem.pieces[k], np.flatnonzero(coef)
    if len(support) * part.m <= FEW:
        scores = exact_scores(problem, k, coef[None])[0]
        error = float(np.abs(scores - kept.values).max())
    else:
        scores, error = _wanted_scores(problem, k, coef, kept)
    P, b = primal_value(problem, part, coef, scores)
    u = part.feasible_duals(_own_duals(part, coef), balanced=problem.bias == "free")
    dual_coef = part.shares * u
    if not (np.abs(dual_coef - coef) > 1e-12 * np.abs(coef)).any():
        square = dot(coef[support], scores[support])
    else:
        square = problem.square(k, dual_coef)
    return P, _best_on_ray(problem, k, u, dual_coef, square), b, error


def _wanted_scores(problem: KernelProblem, k: int, coef: Array, kept: RunningScores) -> tuple[Array, float]:
    """Scores of all rows, computed anew where that can make a difference, and the largest error seen."""
    part, rows, support = problem.pieces[k], problem.rows(k), np.flatnonzero(coef)
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
    part, shift = problem.pieces[k], problem.definiteness(k).shift
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
