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

from typing import NamedTuple

import numpy as np

from pegasos.kernels.span import GrowingSpan, backward, greedy_choice, greedy_scores, min_outside_share
from pegasos.rows.views import Array
from pegasos.sparse.preimage import MAX_SEARCH_STEPS, MIN_SEARCH_GAIN, Rows, Vector, gaussian
from pegasos.util.arrays import Matrix
from pegasos.util.threads import with_one_blas_thread

#: What must be left of K(z, z) = 1 for a point not to count as being in the span of the others.
MIN_OUTSIDE = min_outside_share(np.float32)

#: Rows for each search of a batch among which the batch chooses where to begin.
STARTS_PER_SEARCH = 4

#: The share of its first gain that a point of a batch must still have after those taken before it.
MIN_GAIN_LEFT = 0.5


class ReducedSet(NamedTuple):
    """Points, the rows at which the searches for them began, and w in their span.

    ``L`` is the Cholesky factor of K_ZZ and ``u`` = Lᵀβ, so that ‖Pw‖² = ‖u‖², of the first n points Σ_{k<n} u_k².
    """

    points: Array
    starts: Array
    L: Array
    u: Array

    def coefficients(self, n: int) -> Array:
        """β of the projection of w on the first n points."""
        return backward(self.L[:n, :n], self.u[:n])


@with_one_blas_thread
def reduced_set(
    V: Matrix,
    alpha: Array,
    gamma: float,
    starts: Matrix,
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
    while growth.span.room:
        begin = growth.beginnings(together)  # however many are left to find: fewer points are the first of more
        if not len(begin):
            break  # what is left is rounding
        terms = [(reference, alpha)]
        if k := growth.span.size:
            so_far = growth.result()
            points = so_far.points.astype(np.float32) if single else so_far.points
            terms.append((Rows.of(points, gamma), -so_far.coefficients(k)))
        residual = Vector(terms, single=single, threads=threads)
        growth.take(*residual.preimages(growth.rows.dense(begin), steps, gain), begin)
    return growth.result()


class _Growth:
    """Points so far, and the rows at which searches may begin, seen from their span."""

    def __init__(self, rows: Rows, inner: Array, n: int, power: float) -> None:
        self.rows, self.power = rows, power
        self.span = GrowingSpan(n, len(inner), np.float32)  # the features of the rows only choose
        self._Z, self._u, self._began = np.zeros((n, rows.V.shape[1])), np.zeros(n), np.zeros(n, dtype=np.int64)
        #: ⟨w − Pw, φ(x)⟩ of the rows, and the squared length of what is outside the span.
        self._left, self._rest = inner.astype(np.float64), np.ones(len(inner))

    def result(self) -> ReducedSet:
        k = self.span.size
        return ReducedSet(self._Z[:k], self._began[:k], self.span.L, self._u[:k])

    def beginnings(self, count: int) -> Array:
        """Up to so many rows, each with the greatest score once those before it are in the span."""
        score = greedy_scores(self._rest, self._left, self.power, MIN_OUTSIDE)
        if count == 1:
            best = int(np.argmax(score))
            return np.array([best] if score[best] > 0 else [], dtype=np.int64)
        few = min(STARTS_PER_SEARCH * count, len(score))
        top = np.sort(np.argpartition(-score, few - 1)[:few])
        X, F = self.rows.dense(top), self.span.features[top]
        P = gaussian(X, X, self.rows.kernel.gamma) - F @ F.T
        left, rest = self._left[top], self._rest[top]
        return top[greedy_choice(P.__getitem__, rest, left, count, power=self.power, floor=MIN_OUTSIDE)[0]]

    def take(self, Z: Array, r: Array, begin: Array) -> None:
        """Take in those of the points that bring something new; one at least, or a row is not tried again.

        ``r`` is ⟨w − Pw, φ(z)⟩ of each.
        """
        M, P = self._outside(Z)
        if len(spanned := np.flatnonzero(np.diagonal(P) <= MIN_OUTSIDE)):
            Z[spanned], r[spanned] = self.rows.dense(begin[spanned]), self._left[begin[spanned]]
            M, P = self._outside(Z)
        # In the order of what each shortens ‖w − Pw‖² by, without those that have lost much of it to others.
        gains = r * r / np.maximum(np.diagonal(P), MIN_OUTSIDE)
        order, u = greedy_choice(
            P.__getitem__, np.diagonal(P), r, self.span.room, power=1.0, floor=MIN_OUTSIDE, least=MIN_GAIN_LEFT * gains
        )
        if not len(order):
            self._rest[begin] = 0.0
            return
        new = slice(self.span.size, self.span.size + len(order))
        self._Z[new], self._u[new], self._began[new] = Z[order], u, begin[order]
        fresh = self.span.add(M, P, order, self.rows.values(Z[order]))
        self._left -= u @ fresh
        self._rest -= np.einsum("ij,ij->j", fresh, fresh)
        self._rest[begin[order]] = 0.0

    def _outside(self, Z: Array) -> tuple[Array, Array]:
        gamma = self.rows.kernel.gamma
        return self.span.outside(gaussian(self._Z[: self.span.size], Z, gamma), gaussian(Z, Z, gamma))
