"""Certificates of kernel machines for every scalar loss and kind of bias, from coefficients and dual variables of rows.

With w = Σ coef_i φ(x_i), scores F = K coef and ‖w‖² = coef·F; a constant feature of value B adds B² to the kernel,
so that b = B² Σ coef and ‖w‖² + b²/B² is regularised. For u in the domain of the conjugates (and Σ c u = 0 if the
bias is free)

    D(u) = (1/M) Σ c_i (−ℓ*(−u_i)) − (λ/2)‖w(u)‖²  ≤  P*  ≤  P(w, b),   w(u) = Σ_i C c_i u_i φ(x_i).
"""

from __future__ import annotations

import numpy as np

from pegasos._data import Array
from pegasos._kernel_problem import KernelProblem, Part


def dot(a: Array, b: Array) -> float:
    """⟨a, b⟩, whose bits do not depend on the threads of BLAS."""
    return float(np.einsum("i,i->", a, b))


def squared_norm(problem: KernelProblem, coef: Array, F: Array) -> float:
    """‖w‖², with the weight of a constant feature."""
    weight = problem.feature * float(coef.sum()) if problem.bias == "feature" else 0.0
    return dot(coef, F) + weight * weight


def primal_value(problem: KernelProblem, part: Part, coef: Array, F: Array) -> tuple[float, float]:
    """P of these coefficients, whose scores without bias are F, and the best bias."""
    b = 0.0
    if problem.bias == "feature":
        b = problem.feature**2 * float(coef.sum())
    elif problem.bias == "free":
        b = part.best_bias(F)
    loss = dot(part.weight, part.core.value(np.ascontiguousarray(F + b), part.y)) / problem.total
    return 0.5 * problem.lam * squared_norm(problem, coef, F) + loss, b


def dual_value(problem: KernelProblem, part: Part, u: Array, coef: Array, F: Array) -> float:
    """D of u in the domain, whose w(u) has these coefficients and scores."""
    conjugates = dot(part.weight, part.core.conjugate(np.ascontiguousarray(u), part.y)) / problem.total
    return conjugates - 0.5 * problem.lam * squared_norm(problem, coef, F)


def certify_rows(
    problem: KernelProblem, numbers: list[int], coef: Array, u: Array
) -> tuple[list[float], list[float], list[float]]:
    """P, D and bias of the parts ``numbers``, which have the same rows; a line of ``coef`` and ``u`` for each.

    All scores are computed anew, in float64.
    """
    parts = [problem.pieces[k] for k in numbers]
    u = np.stack([p.feasible_duals(v, balanced=problem.bias == "free") for p, v in zip(parts, u, strict=True)])
    dual_coef = np.stack([p.shares * v for p, v in zip(parts, u, strict=True)])
    points = coef if np.array_equal(coef, dual_coef) else np.concatenate([coef, dual_coef])
    Z = exact_scores(problem, numbers[0], points)
    primal, bias, dual = [], [], []
    for k, part in enumerate(parts):
        P, b = primal_value(problem, part, coef[k], Z[k])
        D = dual_value(problem, part, u[k], dual_coef[k], Z[k - len(parts)])
        primal.append(P)
        bias.append(b)
        dual.append(P if P < D <= P + 1e-12 * abs(P) else D)  # rounding
    return primal, dual, bias


def exact_scores(problem: KernelProblem, k: int, coef: Array) -> Array:
    """K coef for each line of ``coef``, on the rows of part k, in float64."""
    support = np.flatnonzero(coef.any(axis=0))
    if not len(support):
        return np.zeros_like(coef)
    return np.asarray(problem.rows(k).exact(support, coef[:, support], np.arange(coef.shape[1])))
