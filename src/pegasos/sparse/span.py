"""Few support vectors by projection: a greedy choice of rows, and the machine on the span of vectors, fitted anew.

Rows are chosen so that the projection of the reference w on their span comes close to w. On the orthonormal coordinates
of the span (``kernels/span.py``) the squared hinge of all rows is minimised by Newton's method. One Φ serves every
size: its first n columns are those of the first n vectors.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from pegasos.kernels.gram import Provider
from pegasos.kernels.span import coordinates, definite, fill_features, greedy_choice, greedy_choices, min_outside_share
from pegasos.rows.views import Array
from pegasos.solvers.squared_hinge import newton
from pegasos.util.threads import one_blas_thread

#: The exponent of d in the choice of rows: between orthogonal least squares (1), which prefers rows that are nearly in
#: the span already, and orthogonal matching pursuit (0).
DISTANCE_EXPONENT = 0.85

#: A fit begins on every COARSE_STRIDE-th row, if those are MIN_ROWS_PER_VECTOR for each vector.
COARSE_STRIDE, MIN_ROWS_PER_VECTOR = 4, 8


def project(rows: Provider, candidates: Array, inner: Array, n: int) -> Array:
    """Up to n of the candidates (row numbers), in the order they are chosen.

    ``inner`` is ⟨w, φ_j⟩ for each candidate.
    """

    def column(j: int) -> Array:
        return rows.block(candidates[j : j + 1], candidates)[0, : len(candidates)]

    own = rows.diagonal()[candidates]
    with one_blas_thread():
        order, _ = greedy_choice(column, own, inner, n, power=DISTANCE_EXPONENT, floor=_floor(own), dtype=np.float32)
    return candidates[order]


def project_all(K: Array, inner: Array, usable: Array, most: int) -> tuple[Array, Array]:
    """The same for a stack of machines with kernel values K: of each up to ``most`` usable rows, and how many.

    ``inner`` is ⟨w, φ_j⟩ of each row. Beyond the number chosen the rows mean nothing.
    """
    own = np.diagonal(K, axis1=1, axis2=2)
    return greedy_choices(K, np.where(usable, own, 0.0), inner, most, power=DISTANCE_EXPONENT, floor=_floor(own))


def _floor(own: Array) -> Array:
    """What must be left of K_jj for a row to be chosen: the same for one machine and for stacks."""
    return np.asarray(min_outside_share(np.float32) * np.maximum(own, np.finfo(float).tiny))


class Span:
    """Coordinates of rows on the span of some vectors, in an order; the first n serve for the first n vectors.

    Parameters
    ----------
    square
        K of the vectors among themselves.
    values
        K of the rows of a slice with the vectors.
    m, kind
        Number of rows, and the type their coordinates are kept in.
    threads
        Of fits; ``together`` is how many may ask for values at a time.
    """

    def __init__(
        self,
        square: Array,
        values: Callable[[slice], Array],
        m: int,
        kind: npt.DTypeLike,
        threads: int,
        together: int = 1,
    ) -> None:
        self.threads = threads
        with one_blas_thread():
            self.back, self.front, self.nested = coordinates(square)
            self.features = np.empty((m, self.back.shape[1]), dtype=kind)
            fill_features(self.features, values, self.back.astype(kind), together)

    def fit(
        self, n: int, sign: Array, cost: Array, bias: float, learn: bool, start: Array | None = None
    ) -> tuple[Array, float]:
        """Coefficients of the first n vectors, and the bias (learnt, or kept), of the machine fitted on all rows.

        ``start`` has coefficients from which the search begins.
        """
        n = n if self.nested else self.features.shape[1]
        features = self.features[:, :n]
        u = np.zeros(n) if start is None else self.front[:n, : len(start)] @ start
        if start is None and len(features) > MIN_ROWS_PER_VECTOR * COARSE_STRIDE * n:
            few = slice(None, None, COARSE_STRIDE)
            part = np.ascontiguousarray(features[few])
            u, bias = newton(part, sign[few], COARSE_STRIDE * cost[few], u, bias, learn, self.threads)
        u, bias = newton(features, sign, cost, u, bias, learn, self.threads)
        return np.asarray(self.back[:n, :n] @ u if self.nested else self.back @ u), bias

    def scores(self, coef: Array, bias: float) -> Array:
        """f of all rows, for coefficients of the first vectors."""
        return self._scores(self._coordinates(coef), bias)

    def objective(self, coef: Array, bias: float, sign: Array, cost: Array) -> float:
        """What a fit minimises."""
        u = self._coordinates(coef)
        slack = np.maximum(0.0, 1.0 - sign * self._scores(u, bias))
        return float(0.5 * u @ u + 0.5 * (cost * slack) @ slack)

    def _coordinates(self, coef: Array) -> Array:
        n = len(coef) if self.nested else self.features.shape[1]
        return np.asarray(self.front[:n, : len(coef)] @ coef)

    def _scores(self, u: Array, bias: float) -> Array:
        with one_blas_thread():
            return np.asarray(self.features[:, : len(u)] @ u.astype(self.features.dtype), dtype=np.float64) + bias


def span_of_rows(rows: Provider, order: Array, threads: int) -> Span:
    """The span of some of the rows of a provider."""

    def values(part: slice) -> Array:
        cols = np.arange(part.start, part.stop)
        return np.asarray(rows.block(order, cols)[:, : len(cols)].T)

    square = np.asarray(rows.block(order, order), dtype=np.float64)[:, : len(order)]
    return Span(square, values, rows.m, np.float32 if rows.dtype == np.float32 else np.float64, threads)


def span_all(K: Array, at: Array, there: Array) -> tuple[Array, Array]:
    """Features of all rows on the span of the rows ``at``, machines × c, as far as they are ``there``; and ``back``.

    For a stack of small machines. A vector that is not there has features of zero. LinAlgError: K is not definite.
    """
    both = there[:, :, None] & there[:, None, :]
    across = np.where(there[:, None, :], np.take_along_axis(K, at[:, None, :], axis=2), 0.0)
    square = np.where(both, np.take_along_axis(across, at[:, :, None], axis=1), 0.0)
    back = np.linalg.inv(np.linalg.cholesky(definite(square, there))).transpose(0, 2, 1)
    return across @ back, back
