"""Few points for many: w = Σ α_i φ(x_i) approximated by new ones, for the rbf kernel (Burges & Schölkopf 1997).

With P the projection on the span of the φ(z_j) found so far and

    r_i = ⟨w − Pw, φ(x_i)⟩        d_i = ‖φ(x_i) − Pφ(x_i)‖²

the search for the next begins at the row with the greatest r_i²/d_i^power (1: the row that shortens ‖w − Pw‖ most by
itself; 0: the one that w − Pw points to), and goes to a preimage of w − Pw. The first n points serve for size n.

Several searches can share their passes over the reference. They begin at the rows that would be taken one after the
other if rows were all there is, and the preimages are taken in by how much each still shortens ‖w − Pw‖: one that has
lost much of that to others of its batch is left for a later one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from pegasos.rows.views import Array
from pegasos.sparse.preimage import MAX_SEARCH_STEPS, MIN_SEARCH_GAIN, Rows, Vector, gaussian
from pegasos.util.threads import with_one_blas_thread

#: The share of K(z, z) = 1 below which a point counts as being in the span of the others.
MIN_OUTSIDE_SHARE = 1e-5

#: Rows for each search of a batch among which the batch chooses where to begin.
STARTS_PER_SEARCH = 4

#: The share of its first gain that a point of a batch must still have after those taken before it.
MIN_GAIN_LEFT = 0.5


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
        return _solved(self.L[:n, :n], self.u[:n], trans="T")


def _solved(L: Array, right: Array, trans: str = "N") -> Array:
    if not len(L):
        return right
    return np.asarray(linalg.solve_triangular(L, right, lower=True, trans=trans, check_finite=False))


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
    steps: int = MAX_SEARCH_STEPS,
    gain: float = MIN_SEARCH_GAIN,
    together: int = 1,
    single: bool = False,
    threads: int = 1,
) -> ReducedSet:
    """Up to n points for w = Σ α_i φ(v_i); ``inner`` is ⟨w, φ(x)⟩ of the rows ``starts`` where searches may begin.

    Every row is the beginning of one point at most. A preimage in the span of the points there are gives way to the row
    its search began at; what is in the span, too, is left out. ``together`` searches share their passes, in single
    precision if ``single``.
    """
    n = min(n, len(inner)) if len(alpha) else 0
    if single:
        V, starts = V.astype(np.float32, copy=False), starts.astype(np.float32, copy=False)
    growth = _Growth(Rows.of(starts, gamma), inner, n, power)
    if n == 0:
        return growth.result()
    reference = Rows.of(V, gamma)
    while growth.size < n:
        begin = growth.beginnings(together)  # however many are left to find: fewer points are the first of more
        if not len(begin):
            break  # what is left is rounding
        terms = [(reference, alpha)]
        if growth.size:
            so_far = growth.points.astype(np.float32) if single else growth.points
            terms.append((Rows.of(so_far, gamma), -growth.coefficients()))
        residual = Vector(terms, single=single, threads=threads)
        growth.take(*residual.preimages(growth.rows.dense(begin), steps, gain), begin)
    return growth.result()


class _Growth:
    """Points so far, and the rows at which searches may begin, seen from their span."""

    def __init__(self, rows: Rows, inner: Array, n: int, power: float) -> None:
        m = len(inner)
        self.rows, self.power, self.size = rows, power, 0
        self._Z, self._L, self._u = np.zeros((n, rows.V.shape[1])), np.zeros((n, n)), np.zeros(n)
        self._features = np.zeros((n, m), dtype=np.float32)  # of the rows, on the orthonormal basis; they choose only
        self._left, self._rest, self._began = inner.astype(np.float64), np.ones(m), np.zeros(n, dtype=np.int64)

    @property
    def points(self) -> Array:
        return self._Z[: self.size]

    def coefficients(self) -> Array:
        return self.result().coefficients(self.size)

    def result(self) -> ReducedSet:
        k = self.size
        return ReducedSet(self._Z[:k], self._began[:k], self._L[:k, :k], self._u[:k])

    def _score(self, left: Array, rest: Array) -> Array:
        return np.where(rest > MIN_OUTSIDE_SHARE, left * left / np.maximum(rest, MIN_OUTSIDE_SHARE) ** self.power, -1.0)

    def beginnings(self, count: int) -> Array:
        """Up to so many rows, each with the greatest score once those before it are in the span."""
        score = self._score(self._left, self._rest)
        if count == 1:
            best = int(np.argmax(score))
            return np.array([best] if score[best] > 0 else [], dtype=np.int64)
        few = min(STARTS_PER_SEARCH * count, len(score))
        top = np.sort(np.argpartition(-score, few - 1)[:few])
        X, F = self.rows.dense(top), self._features[: self.size, top]
        P = gaussian(X, X, self.rows.kernel.gamma) - F.T @ F
        left, rest, sides, chosen = self._left[top], self._rest[top], np.zeros((count, few)), []
        for c in range(count):
            score = self._score(left, rest)
            j = int(np.argmax(score))
            if score[j] <= 0:
                break
            chosen.append(top[j])
            sides[c] = (P[j] - sides[:c, j] @ sides[:c]) / np.sqrt(rest[j])
            left, rest = left - sides[c] * (left[j] / np.sqrt(rest[j])), rest - sides[c] ** 2
            rest[j] = 0.0
        return np.array(chosen, dtype=np.int64)

    def take(self, Z: Array, r: Array, begin: Array) -> None:
        """Take in those of the points that bring something new; one at least, or a row is not tried again.

        ``r`` is ⟨w − Pw, φ(z)⟩ of each.
        """
        M, P = self._beyond(Z)
        if len(spanned := np.flatnonzero(np.diagonal(P) <= MIN_OUTSIDE_SHARE)):
            Z[spanned], r[spanned] = self.rows.dense(begin[spanned]), self._left[begin[spanned]]
            M, P = self._beyond(Z)
        k = self.size
        order, u = _by_gain(P, r, len(self._u) - k)
        if not len(order):
            self._rest[begin] = 0.0
            return
        # the rows of L that are new: what the points before the batch have of each, and the batch itself
        own = np.linalg.cholesky(P[np.ix_(order, order)])
        new, M = slice(k, k + len(order)), M[:, order]
        self._Z[new], self._u[new], self._began[new] = Z[order], u, begin[order]
        self._L[new, :k], self._L[new, new] = M.T, own
        fresh = self.rows.values(Z[order]) - M.T.astype(np.float32) @ self._features[:k]
        fresh = _solved(own, np.eye(len(own))).astype(np.float32) @ fresh
        self._features[new] = fresh
        self._left -= u @ fresh
        self._rest -= np.einsum("ij,ij->j", fresh, fresh)
        self._rest[begin[order]] = 0.0
        self.size += len(order)

    def _beyond(self, Z: Array) -> tuple[Array, Array]:
        """Coordinates of new points on the span, a column for each, and the inner products of what is beyond it."""
        gamma, k = self.rows.kernel.gamma, self.size
        M = _solved(self._L[:k, :k], gaussian(self._Z[:k], Z, gamma))
        return M, gaussian(Z, Z, gamma) - M.T @ M


def _by_gain(P: Array, r: Array, most: int) -> tuple[Array, Array]:
    """Points in the order of r²/d, d the diagonal of P, each with those before it taken away; and r/√d of each.

    Left out are those in the span of others, and those that have lost much of what they had.
    """
    P, r, open_ = P.copy(), r.copy(), np.ones(len(r), dtype=bool)
    order: list[int] = []
    u: list[float] = []
    first = r * r / np.maximum(np.diagonal(P), MIN_OUTSIDE_SHARE)
    while len(order) < most:
        d = np.diagonal(P)
        gain = np.where(open_ & (d > MIN_OUTSIDE_SHARE), r * r / np.maximum(d, MIN_OUTSIDE_SHARE), -1.0)
        gain[gain < MIN_GAIN_LEFT * first] = -1.0
        i = int(np.argmax(gain))
        if gain[i] <= 0:
            break
        open_[i] = False
        root = np.sqrt(d[i])
        side, height = P[i] / root, r[i] / root
        r -= side * height
        P -= np.outer(side, side)
        order.append(i)
        u.append(height)
    return np.array(order, dtype=np.int64), np.array(u)
