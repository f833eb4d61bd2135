"""The span of a few points φ(z_j) of a kernel's feature space: orthonormal coordinates, and which points add to it.

    K_ZZ = LLᵀ,   Φ = K_XZ L⁻ᵀ,   ⟨w, φ(x_i)⟩ = (Φu)_i  and  ‖w‖² = βᵀK_ZZ β = ‖u‖²  for  w = Σ_j β_j φ(z_j),  u = Lᵀβ

so that a kernel machine restricted to the span is a linear machine on the features Φ (Nyström). L is triangular: the
first n columns of Φ are the features on the first n points alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import linalg

from pegasos.rows.views import Array
from pegasos.util.threads import hold_worker

#: A point counts as linearly dependent on others if its squared distance from their span is at most this share of
#: K(z, z), and an eigenvalue of K_ZZ counts as zero if it is at most this share of the largest. Rounding errors of
#: kernel values grow by one over the share's square root, to some 1e-5 in single and 1e-11 in double precision.
MIN_OUTSIDE_SHARE = {"f": 1e-5, "d": 1e-10}

#: Where no point may be left out, K_ZZ is made definite: this share of its largest diagonal value is added to all.
JITTER = 1e-6

#: ``map``, or that of a pool of threads.
Mapped = Callable[..., Iterator[Any]]

#: Rows that are computed together: sums over them then do not depend on threads.
BLOCK_ROWS = 2048


def min_outside_share(dtype: npt.DTypeLike) -> float:
    """The threshold of linear dependence for kernel values, or features, of this type."""
    return MIN_OUTSIDE_SHARE[np.dtype(dtype).char]


class Coordinates(NamedTuple):
    """Between coefficients and orthonormal coordinates: β = back u and u = front β.

    ``nested``: the first n coordinates are those of the first n points.
    """

    back: Array
    front: Array
    nested: bool


def coordinates(square: Array) -> Coordinates:
    """Of all points, whose kernel values among themselves are ``square``; a kernel that is not definite loses some."""
    try:
        L = np.linalg.cholesky(definite(square))
    except np.linalg.LinAlgError:
        # Nothing bounds the features of small eigenvalues of such a kernel: the wider threshold in either precision.
        return spectral_coordinates(square, share=min_outside_share(np.float32))
    # SciPy before 1.14 knows no empty systems.
    back = linalg.solve_triangular(L, np.eye(len(L)), lower=True).T if len(L) else L
    return Coordinates(back, L.T, nested=True)


def spectral_coordinates(square: Array, *, share: float) -> Coordinates:
    """Of the eigenvectors whose eigenvalue is above a share of the largest."""
    value, vector = np.linalg.eigh(0.5 * (square + square.T))
    kept = value > share * max(float(value.max(initial=0.0)), np.finfo(float).tiny)
    root = np.sqrt(value[kept])
    return Coordinates(vector[:, kept] / root, (vector[:, kept] * root).T, nested=False)


def definite(square: Array, there: Array | None = None) -> Array:
    """Symmetric kernel values with jitter; in a stack of machines the points that are not ``there`` get a 1 instead."""
    largest = np.diagonal(square, axis1=-2, axis2=-1).max(axis=-1, initial=0.0)
    more = np.broadcast_to(JITTER * largest[..., None], square.shape[:-1])
    if there is not None:
        more = np.where(there, more, 1.0)
    return np.asarray((square + square.swapaxes(-2, -1)) / 2 + more[..., None] * np.eye(square.shape[-1]))


@contextmanager
def block_map(threads: int) -> Iterator[Mapped]:
    """``map`` by threads. One thread is this one: to start another takes as long as fitting a small pair of classes."""
    if threads <= 1:
        yield map
    else:
        with ThreadPoolExecutor(threads, initializer=hold_worker) as pool:
            yield pool.map


def fill_features(out: Array, values: Callable[[slice], Array], back: Array, threads: int = 1) -> None:
    """Φ of all rows: ``values`` are the kernel values of a slice of the rows with the points."""

    def fill(first: int) -> None:
        part = slice(first, min(first + BLOCK_ROWS, len(out)))
        np.matmul(values(part), back, out=out[part])

    with block_map(threads if len(out) > BLOCK_ROWS else 1) as mapped:
        list(mapped(fill, range(0, len(out), BLOCK_ROWS)))


def greedy_choice(
    column: Callable[[int], Array],
    own: Array,
    inner: Array,
    most: int,
    *,
    power: float,
    floor: Array | float,
    least: Array | None = None,
    dtype: npt.DTypeLike = np.float64,
) -> tuple[Array, Array]:
    """Candidates on whose span the projection Pw of w comes close to w, in the order they are chosen; w's coordinates.

    With V the orthonormal coordinates so far (a Cholesky factorisation of K), what is left of a candidate and of w is

        d_j = K_jj − Σ_k V_kj²        r_j = ⟨w − Pw, φ_j⟩

    and taking j shortens ‖w − Pw‖² by r_j²/d_j. The next is argmax r_j²/d_j^power among those with d_j above ``floor``
    for which that number is at least ``least``. Power 1 is orthogonal least squares, 0 orthogonal matching pursuit.

    ``own`` is K_jj, ``inner`` ⟨w, φ_j⟩, and ``column`` has the kernel values of one candidate with all. V is kept in
    ``dtype``.
    """
    d, r = own.astype(np.float64), inner.astype(np.float64)
    V = np.zeros((min(most, len(d)), len(d)), dtype=dtype)
    order: list[int] = []
    u: list[float] = []
    for k in range(len(V)):
        score = greedy_scores(d, r, power, floor, least)
        j = int(np.argmax(score))
        if score[j] <= 0:
            break
        v = (column(j).astype(np.float64) - V[:k, j] @ V[:k]) / np.sqrt(d[j])
        height = float(r[j] / v[j])
        V[k] = v
        d -= v * v
        d[j] = 0.0
        r -= v * height
        order.append(j)
        u.append(height)
    return np.array(order, dtype=np.int64), np.array(u)


def greedy_choices(K: Array, own: Array, inner: Array, most: int, *, power: float, floor: Array) -> tuple[Array, Array]:
    """The same choice for a stack of machines of few candidates each, with K of each: their order, and how many.

    Beyond the number chosen the entries of the order mean nothing.
    """
    machines, n = inner.shape
    each = np.arange(machines)
    d, r = own.astype(np.float64), inner.astype(np.float64)
    V = np.zeros((machines, min(most, n), n))
    order, count = np.zeros(V.shape[:2], dtype=np.int64), np.zeros(machines, dtype=np.int64)
    open_ = np.ones(machines, dtype=bool)
    for k in range(V.shape[1]):
        score = greedy_scores(d, r, power, floor)
        j = np.argmax(score, axis=1)
        open_ &= score[each, j] > 0
        if not open_.any():
            break
        rest = K[each, j] - np.einsum("bk,bkn->bn", V[each, :k, j], V[:, :k])
        v = np.where(open_[:, None], rest / np.sqrt(np.where(open_, d[each, j], 1.0))[:, None], 0.0)
        V[:, k] = v
        d -= v * v
        d[each, j] = 0.0
        r -= v * (r[each, j] / np.where(open_, v[each, j], 1.0))[:, None]
        order[:, k] = j
        count += open_
    return order, count


def greedy_scores(d: Array, r: Array, power: float, floor: Array | float, least: Array | None = None) -> Array:
    """r²/d^power; −1 where it is below ``least``, or d not above ``floor``."""
    score = np.where(d > floor, r * r / np.maximum(d, floor) ** power, -1.0)
    return score if least is None else np.where(score >= least, score, -1.0)


def independent(outside: Array, own: Array, share: float) -> Array:
    """Points none of which depends on those before it, by a Cholesky factorisation with pivots.

    ``outside`` are the inner products of what is outside a span already, ``own`` is K(z, z).
    """
    scale = 1.0 / np.sqrt(np.maximum(own, np.finfo(float).tiny))
    scaled = outside * scale[:, None] * scale
    if not np.diagonal(scaled).max(initial=0.0) > share:  # LAPACK does not ask this of the first pivot
        return np.zeros(0, dtype=np.int64)
    _, pivot, rank, _ = linalg.lapack.dpstrf(scaled, lower=1, tol=share)
    kept = pivot[:rank].astype(np.int64) - 1
    return np.asarray(kept[own[kept] > 0])


def incomplete_cholesky(
    column: Callable[[int], Array], own: Array, most: int, *, share: float, floor: float
) -> tuple[Array, Array]:
    """The incomplete Cholesky factorisation K ≈ VᵀV with pivots: their order, and V, a row for each of them.

    The next pivot is the point of the largest d_j = K_jj − Σ_k V_kj², what the factor lacks of its diagonal (Fine &
    Scheinberg 2001). It ends after ``most`` pivots, once Σ d is at most ``share`` of Σ K_jj, or no d_j is above
    ``floor`` · K_jj. K − VᵀV is positive semi-definite if K is, so that Σ d bounds its norm.

    ``own`` is K_jj, 0 for points that must not be pivots; ``column`` has the kernel values of one point with all.
    """
    d, most = own.astype(np.float64), min(most, int(np.count_nonzero(own > 0)))
    least, enough = floor * d, share * float(np.maximum(d, 0.0).sum())
    V, order = np.empty((most, len(d))), np.zeros(most, dtype=np.int64)
    for k in range(most):
        j = int(np.argmax(d))
        if d[j] <= least[j] or float(np.maximum(d, 0.0).sum()) <= enough:
            return order[:k], V[:k]
        v = (column(j) - V[:k, j] @ V[:k]) / np.sqrt(d[j])
        V[k], order[k] = v, j
        d -= np.where(own > 0, v * v, 0.0)
        d[j] = 0.0
    return order, V


class GrowingSpan:
    """The span of points that are added in batches, with the features of m rows on it."""

    def __init__(self, capacity: int, m: int, dtype: npt.DTypeLike) -> None:
        self.size, self.dtype = 0, np.dtype(dtype)
        self._L = np.zeros((capacity, capacity))
        self._features = np.empty((capacity, m), dtype=dtype)  # those on a point lie together

    @property
    def room(self) -> int:
        """Points that can still be added."""
        return len(self._L) - self.size

    @property
    def L(self) -> Array:
        """The factor of K_ZZ."""
        return self._L[: self.size, : self.size]

    @property
    def features(self) -> Array:
        """Φ: a row for each of the m, a column for each point."""
        return self._features[: self.size].T

    def outside(self, cross: Array, square: Array) -> tuple[Array, Array]:
        """Coordinates M of new points on the span, a column for each, and the inner products of what is outside it.

        ``cross`` are the kernel values of the points so far with the new ones, ``square`` those of the new ones.
        """
        M = forward(self.L, cross)
        return M, square - M.T @ M

    def add(self, M: Array, outside: Array, order: Array, values: Array) -> Array:
        """Take in those new points that ``order`` says, all of them independent; the features of the rows on them.

        A step of Cholesky's factorisation: K_ZT = LM, K_TT − MᵀM = RRᵀ, Φ_T = (K_XT − ΦM)R⁻ᵀ. ``values`` are those of
        the points of ``order`` with the rows, a row for each point.
        """
        s, new = self.size, slice(self.size, self.size + len(order))
        M, R = M[:, order], np.linalg.cholesky(outside[np.ix_(order, order)])
        fresh = values - M.T.astype(self.dtype) @ self._features[:s]
        (trsm,) = linalg.get_blas_funcs(("trsm",), (fresh,))
        fresh = trsm(1.0, R.astype(self.dtype), fresh.T, side=1, lower=1, trans_a=1, overwrite_b=1).T
        self._features[new], self._L[new, :s], self._L[new, new] = fresh, M.T, R
        self.size += len(order)
        return np.asarray(fresh)

    def coefficients(self, u: Array) -> Array:
        """β of the w with coordinates u on the first points: L⁻ᵀu."""
        return backward(self._L[: len(u), : len(u)], u)


def forward(L: Array, right: Array) -> Array:
    """L⁻¹ times a matrix."""
    return right if not len(L) else np.asarray(linalg.solve_triangular(L, right, lower=True, check_finite=False))


def backward(L: Array, right: Array) -> Array:
    """L⁻ᵀ times a vector."""
    if not len(L):
        return right
    return np.asarray(linalg.solve_triangular(L, right, lower=True, trans="T", check_finite=False))
