"""Few points for many: w = Σ α_i φ(x_i) approximated by new ones, for the rbf kernel (Burges & Schölkopf 1997).

Points z_1, …, z_n are found one after the other. With P the projection on the span of the φ(z_j) so far and

    r_i = ⟨w − Pw, φ(x_i)⟩        d_i = ‖φ(x_i) − Pφ(x_i)‖²

the search for the next begins at the row with the greatest r_i²/d_i^power (1: the row that shortens ‖w − Pw‖ most by
itself; 0: the one that w − Pw points to), and goes to a preimage of w − Pw. The first n points serve for size n.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from pegasos._data import Array
from pegasos._preimage import GAIN, STEPS, Rows, Vector
from pegasos._threads import with_one_blas_thread

#: The share of K(z, z) = 1 below which a point counts as being in the span of the others.
SPANNED = 1e-5


@dataclass(frozen=True)
class ReducedSet:
    """Points, the rows at which the searches for them began, and w in their span.

    ``L`` is the Cholesky factor of K_ZZ and ``u`` = Lᵀβ, so that ‖Pw‖² = ‖u‖², of the first n points Σ_{k<n} u_k².
    """

    points: Array
    starts: Array
    L: Array
    u: Array

    def coefficients(self, n: int) -> Array:
        """β of the projection of w on the first n points."""
        return _back(self.L[:n, :n], self.u[:n])


def _back(L: Array, u: Array) -> Array:
    return np.asarray(linalg.solve_triangular(L, u, lower=True, trans="T", check_finite=False)) if len(u) else u


def _beyond(L: Array, near: Array) -> tuple[Array, float]:
    """The next row of L for a point with these K(z_j, z), and its diagonal: 0 if it is in the span."""
    M = np.asarray(linalg.solve_triangular(L, near, lower=True, check_finite=False)) if len(near) else near
    own = 1.0 - float(M @ M)
    return M, float(np.sqrt(own)) if own > SPANNED else 0.0


@with_one_blas_thread
def reduced_set(
    V: Any,
    alpha: Array,
    gamma: float,
    starts: Any,
    inner: Array,
    n: int,
    *,
    power: float = 0.0,
    steps: int = STEPS,
    gain: float = GAIN,
) -> ReducedSet:
    """Up to n points for w = Σ α_i φ(v_i); ``inner`` is ⟨w, φ(x)⟩ of the rows ``starts`` where searches may begin.

    Every row is the beginning of one point at most. A preimage in the span of the points there are gives way to the row
    its search began at; what is in the span, too, is left out.
    """
    n = min(n, len(inner)) if len(alpha) else 0
    if n == 0:
        return ReducedSet(np.zeros((0, V.shape[1])), np.zeros(0, dtype=np.int64), np.zeros((0, 0)), np.zeros(0))
    reference, rows = Rows.of(V), Rows.of(starts)
    Z, L, u = np.zeros((n, starts.shape[1])), np.zeros((n, n)), np.zeros(n)
    features = np.zeros((n, len(inner)), dtype=np.float32)  # of the rows, on the orthonormal basis; they choose only
    left, rest, began = inner.astype(np.float64), np.ones(len(inner)), []
    norms, k = np.zeros(n), 0
    while k < n:
        score = np.where(rest > SPANNED, left * left / np.maximum(rest, SPANNED) ** power, -1.0)
        j = int(np.argmax(score))
        if score[j] <= 0:
            break  # what is left is rounding
        so_far = Rows(Z[:k], norms[:k], Z[:k].T)
        residual = Vector(gamma, [(reference, alpha), (so_far, -_back(L[:k, :k], u[:k]))])
        rest[j] = 0.0
        begin = rows.row(j)
        z, (whole, _) = residual.preimage(begin, steps, gain)
        M, root = _beyond(L[:k, :k], so_far.kernel(gamma, z))
        if root == 0.0:
            z, whole = begin, residual.at(begin)[0]
            M, root = _beyond(L[:k, :k], so_far.kernel(gamma, z))
            if root == 0.0:
                continue
        Z[k], norms[k], L[k, :k], L[k, k] = z, float(z @ z), M, root
        u[k] = (whole - M @ u[:k]) / root
        fresh = (rows.kernel(gamma, z) - M.astype(np.float32) @ features[:k]) / root
        features[k] = fresh
        left -= fresh * u[k]
        rest -= fresh**2
        began.append(j)
        k += 1
    return ReducedSet(Z[:k], np.array(began, dtype=np.int64), L[:k, :k], u[:k])
