"""Few support vectors by projection: greedy choice of a basis, and the machine on it, fitted anew.

A basis φ_{z_1}, …, φ_{z_n} of rows is grown so that the projection of the reference w on its span comes close to w.
With V the orthonormal coordinates so far (a Cholesky factorisation of K), what is left of each candidate and of w is

    d_j = K_jj − Σ_k V_kj²        r_j = ⟨w − P w, φ_j⟩

and adding j shortens ‖w − Pw‖² by r_j²/d_j. The next one is argmax r_j²/d_j^0.85: between that (orthogonal least
squares, which falls for candidates that are nearly in the span already) and r_j² (orthogonal matching pursuit).

Then w̃ = Σ_k u_k e_k over the orthonormal basis minimises ½‖u‖² + ½ Σ C_i max(0, 1 − y_i(⟨u, Φ_i⟩ + b))² on all rows, by
Newton's method (Keerthi, Chapelle & DeCoste 2006); Φ = K L⁻ᵀ for K_SS = LLᵀ. The first n columns of Φ are those of the
first n vectors, so that one Φ serves every size.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg

from pegasos.kernels.gram import Provider
from pegasos.rows.views import Array
from pegasos.util.threads import hold_worker, one_blas_thread

#: The exponent of d, and the share of K_jj below which a candidate counts as being in the span.
POWER, MIN_OUTSIDE_SHARE = 0.85, 1e-4

#: What is added to the diagonal of K of the vectors, as a share of its largest value.
JITTER = 1e-6

#: Rows that are summed together: the sums then do not depend on threads.
BLOCK_ROWS = 2048

#: Newton's method ends at this relative decrease, or after so many steps.
MIN_NEWTON_DECREASE, MAX_NEWTON_STEPS = 1e-3, 30

#: A fit begins on every COARSE_STRIDE-th row, if those are MIN_ROWS_PER_VECTOR for each vector.
COARSE_STRIDE, MIN_ROWS_PER_VECTOR = 4, 8


def project(rows: Provider, candidates: Array, inner: Array, n: int) -> Array:
    """Up to n of the candidates (row numbers), in the order they are chosen.

    ``inner`` is ⟨w, φ_j⟩ for each candidate.
    """
    own = rows.diagonal()[candidates]
    d, r = own.copy(), inner.astype(np.float64)
    floor = MIN_OUTSIDE_SHARE * np.maximum(own, np.finfo(float).tiny)
    V = np.zeros((min(n, len(candidates)), len(candidates)), dtype=np.float32)
    chosen: list[int] = []
    with one_blas_thread():
        for k in range(len(V)):
            score = np.where(d > floor, r * r / np.maximum(d, floor) ** POWER, -1.0)
            j = int(np.argmax(score))
            if score[j] <= 0:
                break
            column = rows.block(candidates[j : j + 1], candidates)[0, : len(candidates)].astype(np.float64)
            v = (column - V[:k, j] @ V[:k]) / np.sqrt(d[j])
            V[k] = v
            d -= v * v
            d[j] = 0.0
            r -= v * (r[j] / v[j])
            chosen.append(j)
    return candidates[chosen]


class _Serial:
    """One thread is this one: starting another takes as long as fitting a pair of classes of few rows."""

    map = staticmethod(map)

    def __enter__(self) -> _Serial:
        return self

    def __exit__(self, *args: object) -> None:
        pass


def _workers(threads: int) -> Any:
    """What maps functions over blocks of rows."""
    return ThreadPoolExecutor(threads, initializer=hold_worker) if threads > 1 else _Serial()


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
        self.threads, n = threads, len(square)
        square = (square + square.T) / 2
        scale = float(np.diagonal(square).max(initial=0.0))
        with one_blas_thread():
            try:
                L = np.linalg.cholesky(square + JITTER * scale * np.eye(n))
                # SciPy before 1.14 knows no empty systems.
                self.back = linalg.solve_triangular(L, np.eye(n), lower=True).T if n else L
                self.front = L.T
                self.nested = True
            except np.linalg.LinAlgError:  # sigmoid and other kernels that are none
                value, vector = np.linalg.eigh(square)
                kept = value > 1e-6 * max(float(value.max(initial=0.0)), np.finfo(float).tiny)
                root = np.sqrt(value[kept])
                self.back, self.front = vector[:, kept] / root, (vector[:, kept] * root).T
                self.nested = False
            self.features = np.empty((m, self.back.shape[1]), dtype=kind)
            back = self.back.astype(kind)

            def fill(first: int) -> None:
                part = slice(first, min(first + BLOCK_ROWS, m))
                np.matmul(values(part), back, out=self.features[part])

            with _workers(together if m > BLOCK_ROWS else 1) as pool:
                list(pool.map(fill, range(0, m, BLOCK_ROWS)))

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
        n = len(coef) if self.nested else self.features.shape[1]
        u = self.front[:n, : len(coef)] @ coef
        with one_blas_thread():
            return np.asarray(self.features[:, :n] @ u.astype(self.features.dtype), dtype=np.float64) + bias

    def objective(self, coef: Array, bias: float, sign: Array, cost: Array) -> float:
        """What a fit minimises."""
        n = len(coef) if self.nested else self.features.shape[1]
        u = self.front[:n, : len(coef)] @ coef
        slack = np.maximum(0.0, 1.0 - sign * self.scores(coef, bias))
        return float(0.5 * u @ u + 0.5 * (cost * slack) @ slack)


def span_of_rows(rows: Provider, order: Array, threads: int) -> Span:
    """The span of some of the rows of a provider."""

    def values(part: slice) -> Array:
        cols = np.arange(part.start, part.stop)
        return np.asarray(rows.block(order, cols)[:, : len(cols)].T)

    square = np.asarray(rows.block(order, order), dtype=np.float64)[:, : len(order)]
    return Span(square, values, rows.m, np.float32 if rows.dtype == np.float32 else np.float64, threads)


def newton(
    features: Array,
    sign: Array,
    cost: Array,
    u: Array,
    bias: float,
    learn: bool,
    threads: int,
    steps: int = MAX_NEWTON_STEPS,
    *,
    offset: Array | float = 0.0,
    small: float = MIN_NEWTON_DECREASE,
) -> tuple[Array, float]:
    """The minimum of ½‖u‖² + ½ Σ C_i max(0, 1 − y_i(⟨u, Φ_i⟩ + b))² over u, and over b if ``learn``.

    ``offset`` is a part of the scores that stays as it is.
    """
    n = features.shape[1]
    theta = np.append(u, bias)
    free = n + 1 if learn else n
    with one_blas_thread(), _workers(threads if len(features) > BLOCK_ROWS else 1) as pool:

        def scores(theta: Array) -> Array:
            u, plain = theta[:n].astype(features.dtype), np.empty(len(features), dtype=features.dtype)

            def part(first: int) -> None:
                np.matmul(features[first : first + BLOCK_ROWS], u, out=plain[first : first + BLOCK_ROWS])

            list(pool.map(part, range(0, len(features), BLOCK_ROWS)))
            return plain.astype(np.float64) + float(theta[n])

        def value(s: Array, theta: Array) -> float:
            slack = np.maximum(1 - sign * s, 0.0)
            return float(0.5 * theta[:n] @ theta[:n] + 0.5 * (cost * slack) @ slack)

        s = scores(theta) + offset
        now = value(s, theta)
        for _ in range(steps):
            slack = 1 - sign * s
            index = np.flatnonzero((slack > 0) & (cost > 0))
            gradient, H = _derivatives(features, index, sign, cost, slack, theta, pool)
            # a bias that no row presses on stays where it is
            H[n, n] += 1e-10 * max(float(H[n, n]), 1.0)
            way = np.zeros(n + 1)
            way[:free] = -solved(H[:free, :free], gradient[:free])
            slope, change, t = float(gradient @ way), scores(way), 1.0
            while (then := value(s + t * change, theta + t * way)) > now + 1e-4 * t * slope and t > 1e-6:
                t /= 2
            if not then < now:
                break
            theta, s = theta + t * way, s + t * change
            gained, now = now - then, then
            if gained <= small * now:
                break
    return theta[:n], float(theta[n])


def solved(H: Array, right: Array) -> Array:
    """H⁻¹ times a vector; an H that rounding has made indefinite (large C, single precision) gets a larger diagonal."""
    more, top = 0.0, float(np.diagonal(H).max())
    while True:
        try:
            factor = linalg.cho_factor(H + more * np.eye(len(H)), check_finite=False)
            return np.asarray(linalg.cho_solve(factor, right, check_finite=False))
        except linalg.LinAlgError:
            more = 10 * more if more else 1e-7 * top
            if not more < top:
                return right / top


def _derivatives(
    features: Array, index: Array, sign: Array, cost: Array, slack: Array, theta: Array, pool: Any
) -> tuple[Array, Array]:
    """Gradient and Hessian in (u, b), summed block by block."""
    n = features.shape[1]
    root = np.sqrt(cost[index])
    pull = root * slack[index] * sign[index]

    def block(first: int) -> tuple[Array, Array, Array]:
        part = slice(first, first + BLOCK_ROWS)
        A = features[index[part]] * root[part, None].astype(features.dtype)
        kind = features.dtype
        return A.T @ A, A.T @ root[part].astype(kind), A.T @ pull[part].astype(kind)

    H, gradient = np.zeros((n + 1, n + 1)), np.zeros(n + 1)
    for square, side, force in pool.map(block, range(0, len(index), BLOCK_ROWS)):
        H[:n, :n] += square
        H[n, :n] += side
        gradient[:n] -= force
    H[:n, n] = H[n, :n]
    H[n, n] = float(root @ root)
    H[np.arange(n), np.arange(n)] += 1.0
    gradient[:n] += theta[:n]
    gradient[n] = -float(root @ pull)
    return gradient, H
