"""Support vectors of the Gaussian kernel that are no rows: f(x) = Σ_j β_j exp(−γ‖x − z_j‖²) + b with free z_j.

With β and b at their optimum for given Z (variable projection), the objective

    J(Z) = min_{β,b} ½βᵀK_ZZ β + ½ Σ C_i max(0, 1 − y_i f(x_i))²

has, by the envelope theorem, the gradient

    ∂J/∂z_j = 2γ β_j [ Σ_k β_k K_jk (z_k − z_j) − Σ_i C_i slack_i y_i K_ij (x_i − z_j) ]

A few steps of L-BFGS go down along it, in coordinates scaled by the diagonal of the Gauss–Newton Hessian. Only rows
near the margin press on the vectors; the coefficients are fitted on all rows afterwards.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pegasos.kernels.functions import Kernel
from pegasos.kernels.layout import compact
from pegasos.kernels.span import BLOCK_ROWS, Mapped, block_map
from pegasos.rows.views import Array, is_sparse
from pegasos.solvers.squared_hinge import MAX_STEPS, newton
from pegasos.sparse.preimage import gaussian
from pegasos.sparse.span import Span
from pegasos.util.arrays import Matrix
from pegasos.util.threads import one_blas_thread

#: Evaluations of J at most; the fewest that are worth the start; and pairs of steps that L-BFGS keeps.
MAX_EVALUATIONS, MIN_EVALUATIONS, LBFGS_PAIRS = 8, 4, 8

#: Multiplications that moving vectors may cost by default: some tenths of a second.
DEFAULT_WORK = 1e9

#: Rows that the objective is computed on, at most; from more rows those with a margin below this one are taken.
MAX_ROWS, MAX_MARGIN = 6000, 1.2

#: Columns up to which vectors are moved away from their rows by default: moved ones are dense.
MAX_COLUMNS = 512


def movable(kernel: Kernel, X: Matrix) -> bool:
    """Whether vectors can move: the Gaussian kernel, at distances that single precision can tell apart."""
    if kernel.name != "rbf" or not X.shape[0]:
        return False
    norm = X.shape[1] * float((abs(X) if is_sparse(X) else np.abs(X)).max()) ** 2
    return kernel.within_single(norm) and bool(1e-7 * kernel.gamma * norm < 1e-2)


def suited(X: Matrix) -> bool:
    """Whether vectors that are dense stay small."""
    return bool(X.shape[1] <= MAX_COLUMNS)


def evaluations(n: int, columns: int, rows: int, work: float) -> int:
    """How many evaluations of J that much work allows for n vectors; none if they are not worth it."""
    allowed = work / max(1.0, float(min(rows, MAX_ROWS)) * n * (n + columns))
    return int(min(allowed, MAX_EVALUATIONS)) if allowed >= MIN_EVALUATIONS else 0


class GaussianRows:
    """Rows for kernel values with points that are none of them, a block at a time.

    Dense ones have their mean at the origin: there distances lose least to rounding, of single precision if ``kind`` is
    that. Those with many zeros are near it as they are.
    """

    def __init__(self, X: Matrix, gamma: float, kind: npt.DTypeLike, threads: int) -> None:
        self.X, self.gamma, self.kind, self.threads = compact(X, threads), gamma, np.dtype(kind), threads
        self.shift = np.zeros(X.shape[1])
        if not is_sparse(self.X):
            mean = self.X.sum(axis=0, dtype=np.float64) / max(1, X.shape[0])
            self.shift = mean.astype(self.kind).astype(np.float64)  # points are moved by exactly as much

    def _rows(self, index: Array | slice) -> Matrix:
        part = self.X[index].astype(self.kind, copy=False)
        return part if is_sparse(part) else part - self.shift.astype(self.kind)

    def dense(self, index: Array | slice) -> Array:
        """Some rows, moved to the origin."""
        part = self._rows(index)
        return np.asarray(part.toarray() if is_sparse(part) else part)

    def span(self, Z: Array) -> Span:
        """Coordinates of all rows on the span of points."""
        wide = Z - self.shift
        narrow = wide.astype(self.kind)

        def values(part: slice) -> Array:
            return gaussian(self._rows(part), narrow, self.gamma)

        square = gaussian(wide, wide, self.gamma)
        return Span(square, values, self.X.shape[0], self.kind, self.threads, self.threads)


def pressing(margin: Array, cost: Array) -> tuple[Array, Array]:
    """Rows by which vectors move, and their C: all, or those near the margin, or a sample of these with greater C."""
    rows = np.flatnonzero(cost > 0)
    if len(rows) <= MAX_ROWS:
        return rows, cost[rows]
    rows = rows[margin[rows] < MAX_MARGIN]
    scale = max(1.0, len(rows) / MAX_ROWS)
    if len(rows) > MAX_ROWS:
        rows = np.sort(np.random.default_rng(0).permutation(rows)[:MAX_ROWS])
    return rows, cost[rows] * scale


@dataclass
class _Point:
    """J at Z, its gradient, and what they were computed from."""

    Z: Array
    value: float
    gradient: Array
    beta: Array
    bias: float
    stiffness: Array


class Mover:
    """The problem of moving the vectors of one machine of two classes, as some rows see it."""

    def __init__(self, rows: GaussianRows, index: Array, sign: Array, cost: Array, learn: bool) -> None:
        """``index`` are the numbers of the rows, ``sign`` and ``cost`` their labels and C."""
        self.X, self.shift, self.gamma = rows.dense(index), rows.shift, rows.gamma
        self.sign, self.cost, self.learn, self.threads = sign, cost, learn, rows.threads

    def moved(self, Z: Array, beta: Array, bias: float, left: int) -> tuple[Array, Array, float]:
        """The vectors Z after ``left`` evaluations of J, with coefficients and bias to begin a fit on all rows from."""
        with one_blas_thread(), block_map(self.threads) as mapped:
            here = self._descend(Z - self.shift, beta, bias, left, mapped)
        return here.Z + self.shift, here.beta, here.bias

    def _at(self, Z: Array, beta: Array, bias: float, mapped: Mapped, steps: int) -> _Point:
        """J and its gradient at Z; β and b are where the search for theirs begins, in so many steps."""
        kind, m = self.X.dtype, len(self.X)
        narrow, K = Z.astype(kind), np.empty((m, len(Z)), dtype=kind)

        def values(part: slice) -> Array:
            K[part] = gaussian(self.X[part], narrow, self.gamma)
            return K[part]

        square = gaussian(Z, Z, self.gamma)
        span = Span(square, values, m, kind, self.threads, self.threads)
        u, bias = newton(span.features, self.sign, self.cost, span.front @ beta, bias, self.learn, self.threads, steps)
        beta = np.asarray(span.back @ u)
        scores = np.asarray(span.features @ u.astype(kind), dtype=np.float64) + bias
        slack = np.maximum(0.0, 1 - self.sign * scores)
        pull = (self.cost * slack * self.sign).astype(kind)
        push = (self.cost * (slack > 0)).astype(kind)

        def press(first: int) -> tuple[Array, Array, Array]:
            part = slice(first, first + BLOCK_ROWS)
            R = K[part] * pull[part, None]
            return R.T @ self.X[part], R.sum(axis=0), push[part] @ (K[part] * K[part])

        gradient, mass, stiff = np.zeros(Z.shape), np.zeros(len(Z)), np.zeros(len(Z))
        for G, w, c in mapped(press, range(0, m, BLOCK_ROWS)):
            gradient -= G
            mass += w
            stiff += c
        gradient += mass[:, None] * Z
        Q = square * beta
        gradient += Q @ Z - Q.sum(axis=1)[:, None] * Z
        gradient *= 2 * self.gamma * beta[:, None]
        value = float(0.5 * u @ u + 0.5 * (self.cost * slack) @ slack)
        return _Point(Z, value, gradient, beta, bias, 2 * self.gamma * beta**2 * (1 + stiff))

    def _descend(self, Z: Array, beta: Array, bias: float, left: int, mapped: Mapped) -> _Point:
        """Better places for the vectors Z."""
        here = self._at(Z, beta, bias, mapped, MAX_STEPS)
        scale = np.sqrt(np.maximum(here.stiffness, 1e-3 * here.stiffness.mean() + np.finfo(float).tiny))[:, None]
        pairs: deque[tuple[Array, Array]] = deque(maxlen=LBFGS_PAIRS)
        while left > 0:
            downhill = here.gradient / scale
            way = -_two_loops(downhill, pairs)
            slope, t = float(np.sum(downhill * way)), 1.0
            if slope >= 0:
                break
            there = here
            while left > 0:
                left -= 1
                there = self._at(here.Z + t * way / scale, here.beta, here.bias, mapped, 2)
                if there.value <= here.value + 1e-4 * t * slope:
                    break
                t, there = t / 4, here
            if there is here:
                break
            step, change = t * way, there.gradient / scale - downhill
            if float(np.sum(step * change)) > 1e-12 * float(np.sum(change * change)):
                pairs.append((step, change))
            here = there
        return here


def _two_loops(gradient: Array, pairs: deque[tuple[Array, Array]]) -> Array:
    """The inverse Hessian of L-BFGS times the gradient (Nocedal & Wright, algorithm 7.4)."""
    q, weights = gradient.copy(), []
    for step, change in reversed(pairs):
        rho = 1.0 / float(np.sum(step * change))
        a = rho * float(np.sum(step * q))
        weights.append((rho, a))
        q -= a * change
    if pairs:
        step, change = pairs[-1]
        q *= float(np.sum(step * change)) / float(np.sum(change * change))
    for (step, change), (rho, a) in zip(pairs, reversed(weights), strict=True):
        q += step * (a - rho * float(np.sum(change * q)))
    return q
