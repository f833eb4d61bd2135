"""Machines on a few chosen points, rows or new ones: the points' kernel values, and fits on their span."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from pegasos import _core
from pegasos.estimators.linear import LinearSVC
from pegasos.kernels.functions import Kernel
from pegasos.kernels.gram import provider
from pegasos.kernels.layout import compact
from pegasos.kernels.span import GrowingSpan, independent, min_outside_share
from pegasos.losses import Hinge
from pegasos.problems.feasible import best_bias
from pegasos.rows.views import Array, is_sparse
from pegasos.solvers.squared_hinge import newton
from pegasos.util.arrays import CSR, Matrix

Refit = Literal["hinge", "squared_hinge"]

#: Points that are compared with rows at a time.
POINTS_PER_BATCH = 32


def kernel_values(kernel: Kernel, A: Matrix, B: Matrix, threads: int = 1) -> Array:
    """K(a_i, b_j) for the rows of A and B, in float64; B is the shorter one."""
    return _core_values(kernel, kernel.core(compact(A), threads), B, threads)


def _core_values(kernel: Kernel, rows: _core.KernelRows, B: Matrix, threads: int) -> Array:
    """The same for rows that the core has already seen: scores of b_j with one coefficient, 1."""
    points = kernel.core(compact(B), threads)
    out = np.empty((rows.rows, B.shape[0]))
    for first in range(0, B.shape[0], POINTS_PER_BATCH):
        index = np.arange(first, min(first + POINTS_PER_BATCH, B.shape[0]))
        out[:, index] = np.asarray(points.scores(index, np.eye(len(index)), rows, None, threads)).T
    return out


class Basis(GrowingSpan):
    """The span of a growing set of points, with the features of all rows of X.

    Parameters
    ----------
    X
        Rows.
    kernel
        Of the core; others can only add rows.
    capacity
        Points there is room for.
    """

    def __init__(self, X: Matrix, kernel: Kernel, capacity: int, threads: int = 1) -> None:
        self.X, self.kernel, self.threads, self.m = X, kernel, threads, int(X.shape[0])
        self.rows = provider(X, kernel, 0, threads)
        super().__init__(capacity, self.m, self.rows.dtype)
        self.index = np.zeros(0, dtype=np.int64)
        self._points: list[Matrix] = []

    @cached_property
    def diagonal(self) -> Array:
        """K(x_i, x_i)."""
        return self.rows.diagonal()

    @cached_property
    def _given(self) -> _core.KernelRows:
        """The rows with their columns where new points have them."""
        return self.kernel.core(compact(self.X, self.threads), self.threads)

    @property
    def vectors(self) -> Matrix:
        """The points."""
        if not self._points:
            return self.X[self.index]
        if is_sparse(self.X):
            stacked: CSR = sparse.vstack(self._points).tocsr()
            return stacked
        return np.concatenate([Z for Z in self._points if not is_sparse(Z)])

    def add_rows(self, index: Array) -> Array:
        """Take rows of X in; those in the span of the others are left out. Return which of them were kept."""
        assert not self._points
        index = np.asarray(index, dtype=np.int64)
        n = len(index)
        values = self.rows.block(index, np.arange(self.m))[:, : self.m]
        among = np.concatenate([self.index, index])
        square = self.rows.block(among, index)[:, :n].astype(np.float64)
        kept = self._extend(values, square)
        self.index = np.concatenate([self.index, index[kept]])
        return kept

    def add_points(self, Z: Matrix) -> Array:
        """Take new points in; as :meth:`add_rows`, which cannot be mixed with it."""
        assert not len(self.index)
        values = _core_values(self.kernel, self._given, Z, self.threads).astype(self.dtype, copy=False).T
        before = kernel_values(self.kernel, self.vectors, Z) if self.size else np.zeros((0, Z.shape[0]))
        square = np.concatenate([before, kernel_values(self.kernel, Z, Z)])
        kept = self._extend(values, square)
        if len(kept):
            self._points.append(Z[kept])
        return kept

    def _extend(self, values: Array, square: Array) -> Array:
        """Take in points that do not depend on others; ``square`` are kernel values of all points with the new ones."""
        cross, among = square[: self.size], square[self.size :]
        M, outside = self.outside(cross, among)
        kept = independent(outside, np.diagonal(among), min_outside_share(self.dtype))[: self.room]
        if len(kept):
            self.add(M, outside, kept, values[kept])
        return kept


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
        core, scores = Hinge().scalar(), np.zeros(len(y))
        bias = best_bias(core, scores, y, np.ones(len(y)))
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
