"""Functions on a few chosen points: w = Σ_j β_j φ(z_j), the z_j rows or new points.

    K_ZZ = LLᵀ,   Φ = K_XZ L⁻ᵀ,   ⟨w, φ(x_i)⟩ = (Φ u)_i  and  ‖w‖² = βᵀK_ZZ β = ‖u‖²  for  u = Lᵀβ

so that a kernel machine restricted to the span of the φ(z_j) is a linear machine on Φ (Nyström).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy import linalg, sparse
from sklearn.exceptions import ConvergenceWarning

from pegasos import _core
from pegasos.estimators.linear import LinearSVC
from pegasos.kernels.functions import Kernel
from pegasos.kernels.gram import provider
from pegasos.kernels.layout import compact
from pegasos.losses import Hinge
from pegasos.rows.views import Array
from pegasos.sparse.span import newton

Refit = Literal["hinge", "squared_hinge"]

#: A point is in the span of the others if what is left of its K(z, z) is below this share of it: in single precision,
#: whose errors L⁻¹ multiplies, and in double.
MIN_OUTSIDE_SHARE = {"f": 1e-5, "d": 1e-10}

#: Points that are compared with rows at a time.
POINTS_PER_BATCH = 32


def kernel_values(kernel: Kernel, A: Any, B: Any, threads: int = 1) -> Array:
    """K(a_i, b_j) for the rows of A and B, in float64; B is the shorter one."""
    return _core_values(kernel, kernel.core(compact(A), threads), B, threads)


def _core_values(kernel: Kernel, rows: _core.KernelRows, B: Any, threads: int) -> Array:
    """The same for rows that the core has already seen: scores of b_j with one coefficient, 1."""
    points = kernel.core(compact(B), threads)
    out = np.empty((rows.rows, B.shape[0]))
    for first in range(0, B.shape[0], POINTS_PER_BATCH):
        index = np.arange(first, min(first + POINTS_PER_BATCH, B.shape[0]))
        out[:, index] = np.asarray(points.scores(index, np.eye(len(index)), rows, None, threads)).T
    return out


class Basis:
    """Orthonormal coordinates of the span of a growing set of points, for all rows of X.

    Parameters
    ----------
    X
        Rows.
    kernel
        Of the core; others can only add rows.
    capacity
        Points there is room for.
    """

    def __init__(self, X: Any, kernel: Kernel, capacity: int, threads: int = 1) -> None:
        self.X, self.kernel, self.threads = X, kernel, threads
        self.rows = provider(X, kernel, 0, threads)
        self.m, self.dtype, self.size = int(X.shape[0]), self.rows.dtype, 0
        self._store = np.empty((capacity, self.m), dtype=self.dtype)  # the features of a point lie together
        self.L = np.zeros((capacity, capacity))
        self.index = np.zeros(0, dtype=np.int64)
        self._points: list[Any] = []

    @cached_property
    def diagonal(self) -> Array:
        """K(x_i, x_i)."""
        return self.rows.diagonal()

    @cached_property
    def _given(self) -> _core.KernelRows:
        """The rows with their columns where new points have them."""
        return self.kernel.core(compact(self.X, self.threads), self.threads)

    @property
    def features(self) -> Array:
        """Φ: a row for each of X, a column for each point."""
        return self._store[: self.size].T

    @property
    def vectors(self) -> Any:
        """The points."""
        if not self._points:
            return self.X[self.index]
        return sparse.vstack(self._points).tocsr() if sparse.issparse(self.X) else np.concatenate(self._points)

    def add_rows(self, index: Array) -> Array:
        """Take rows of X in; those in the span of the others are left out. Return which of them were kept."""
        assert not self._points
        index = np.asarray(index, dtype=np.int64)
        n = len(index)
        columns = self.rows.block(index, np.arange(self.m))[:, : self.m].T
        among = np.concatenate([self.index, index])
        square = self.rows.block(among, index)[:, :n].astype(np.float64)
        kept = self._extend(columns, square)
        self.index = np.concatenate([self.index, index[kept]])
        return kept

    def add_points(self, Z: Any) -> Array:
        """Take new points in; as :meth:`add_rows`, which cannot be mixed with it."""
        assert not len(self.index)
        columns = _core_values(self.kernel, self._given, Z, self.threads).astype(self.dtype, copy=False)
        before = kernel_values(self.kernel, self.vectors, Z) if self.size else np.zeros((0, Z.shape[0]))
        square = np.concatenate([before, kernel_values(self.kernel, Z, Z)])
        kept = self._extend(columns, square)
        if len(kept):
            self._points.append(Z[kept])
        return kept

    def _extend(self, columns: Array, square: Array) -> Array:
        """A step of Cholesky's factorisation: K_ZT = LM, K_TT − MᵀM = RRᵀ with pivots, Φ_T = (K_XT − ΦM)R⁻ᵀ."""
        s = self.size
        M = linalg.solve_triangular(self.L[:s, :s], square[:s], lower=True) if s else square[:0]
        own = np.diagonal(square[s:])
        scale = 1.0 / np.sqrt(np.maximum(own, np.finfo(float).tiny))
        rest = (square[s:] - M.T @ M) * scale[:, None] * scale
        floor = MIN_OUTSIDE_SHARE[self.dtype.char]
        if not np.diagonal(rest).max(initial=0.0) > floor:  # LAPACK does not ask this of the first pivot
            return np.zeros(0, dtype=np.int64)
        R, pivot, rank, _ = linalg.lapack.dpstrf(rest, lower=1, tol=floor)
        kept: Array = pivot[:rank].astype(np.int64) - 1
        kept = kept[own[kept] > 0][: len(self._store) - s]
        n = len(kept)
        if n == 0:
            return kept
        R = np.tril(R[:n, :n]) / scale[kept][:, None]
        M = M[:, kept]
        fresh = columns[:, kept]
        if s:
            fresh = fresh - self.features @ M.astype(self.dtype)
        self._store[s : s + n] = linalg.solve_triangular(R.astype(self.dtype), fresh.T, lower=True)
        self.L[s : s + n, :s], self.L[s : s + n, s : s + n] = M.T, R
        self.size = s + n
        return kept

    def coefficients(self, u: Array) -> Array:
        """β of the w with coordinates u: L⁻ᵀu."""
        n = len(u)
        return u if n == 0 else np.asarray(linalg.solve_triangular(self.L[:n, :n], u, lower=True, trans="T"))


@dataclass(frozen=True)
class Fitted:
    """Coordinates and bias of a machine on a basis, and its ½‖w‖² + CΣℓ."""

    u: Array
    bias: float
    objective: float


def refit(basis: Basis, y: Array, C: float, loss: Refit = "squared_hinge", tol: float = 1e-3) -> Fitted:
    """The minimum of ½‖w‖² + C Σ ℓ(y_i(⟨w, φ(x_i)⟩ + b)) over the span of a basis; b is not regularised.

    ℓ is the hinge, or its square, within ``tol`` of the optimum; y is ±1.
    """
    if loss == "squared_hinge":
        return refit_squared(basis, y, C, np.zeros(basis.size), 0.0, 0.01 * tol)
    if basis.size == 0:  # every K(x, x) is zero
        core, scores, ones = Hinge().scalar(), np.zeros(len(y)), np.ones(len(y))
        low, high, _ = core.best_offset(scores, y, ones, 0.0)
        bias = 0.5 * (low + high)
        return Fitted(np.zeros(0), bias, C * float(np.sum(core.value(scores + bias, y))))
    model = LinearSVC(C=C, loss=loss, tol=tol, n_jobs=basis.threads)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the objective is what counts here
        model.fit(np.ascontiguousarray(basis.features), y)
    scale = C * len(y)  # certificates are of (λ/2)‖w‖² + mean loss, λ = 1/(C m)
    return Fitted(model.coef_[0], float(model.intercept_[0]), scale * float(model.certificate_.primal))


def refit_squared(basis: Basis, y: Array, C: float, u: Array, bias: float, small: float) -> Fitted:
    """The same for the squared hinge, by Newton's method from a start, until a step gains a share ``small`` or less."""
    cost = np.full(basis.m, 2 * C)  # newton has ½ before its losses
    u, bias = newton(basis.features, y, cost, u, bias, True, basis.threads, small=small)
    scores = (basis.features @ u.astype(basis.dtype)).astype(np.float64)
    slack = np.maximum(0.0, 1.0 - y * (scores + bias))
    return Fitted(u, bias, float(0.5 * u @ u + C * slack @ slack))
