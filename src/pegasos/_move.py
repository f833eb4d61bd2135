"""Support vectors of the Gaussian kernel that move: f(x) = Σ_j β_j exp(−γ‖x − z_j‖²) + b with free z_j.

With β and b at their optimum for given Z (variable projection), the objective

    J(Z) = min_{β,b} ½βᵀK_ZZ β + ½ Σ C_i max(0, 1 − y_i f(x_i))²

has, by the envelope theorem, the gradient

    ∂J/∂z_j = 2γ β_j [ Σ_k β_k K_jk (z_k − z_j) − Σ_i C_i slack_i y_i K_ij (x_i − z_j) ]

A few steps of L-BFGS go down along it, in coordinates scaled by the diagonal of the Gauss–Newton Hessian. Only rows
near the margin press on the vectors; the coefficients are fitted on all rows afterwards.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, sparse

from pegasos._data import Array
from pegasos._kernel_layout import compact
from pegasos._kernels import Kernel
from pegasos._span import BLOCK, STEPS, newton
from pegasos._threads import one_blas_thread

#: Evaluations of J, and pairs of steps that L-BFGS remembers.
EVALUATIONS, MEMORY = 10, 8

#: Rows by which vectors move, at most, and the margin (of the reference) below which rows count.
ROWS, NEAR = 6000, 1.2

#: Columns up to which vectors move unless that is asked for: moved ones are dense.
COLUMNS = 512


def movable(kernel: Kernel, X: Any) -> bool:
    """Whether vectors can move: the Gaussian kernel, at distances that single precision can tell apart."""
    if kernel.name != "rbf" or not X.shape[0]:
        return False
    largest = float(abs(X).max())
    return bool(1e-7 * kernel.gamma * X.shape[1] * largest**2 < 1e-2)


def suited(X: Any) -> bool:
    """Whether vectors that are dense cost no more than the rows they began as."""
    return bool(X.shape[1] <= COLUMNS and not sparse.issparse(compact(X)))


def sampled(rows: Array, margin: Array, weight: Array) -> tuple[Array, Array]:
    """Of some rows those near the margin; of too many a sample that stands for all, with greater weights."""
    near = np.flatnonzero(margin < NEAR)
    if len(near) > ROWS:
        weight = weight * (len(near) / ROWS)
        near = np.sort(np.random.default_rng(0).permutation(near)[:ROWS])
    return rows[near], weight[near]


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
    """The problem of moving the vectors of one machine of two classes."""

    def __init__(self, X: Any, sign: Array, cost: Array, bias: float, gamma: float, learn: bool, threads: int) -> None:
        rows = np.asarray(X.toarray() if sparse.issparse(X) else X)
        self.dtype = rows.dtype
        self.shift = rows.mean(axis=0, dtype=np.float64)  # about the origin, distances lose the least
        self.X = np.ascontiguousarray(rows - self.shift, dtype=np.float32)
        self.norms = np.einsum("ij,ij->i", self.X, self.X)
        self.sign, self.cost, self.bias, self.gamma = sign, cost, bias, gamma
        self.learn, self.threads = learn, threads

    def moved(self, Z: Any, rows: Array, weight: Array) -> tuple[Array, Array, float]:
        """The vectors Z after they have moved, their coefficients fitted on all rows, and the bias.

        They move by what these rows say, at these weights.
        """
        Z = np.asarray(Z.toarray() if sparse.issparse(Z) else Z, dtype=np.float64) - self.shift
        part = copy(self)
        part.X, part.norms, part.sign = self.X[rows], self.norms[rows], self.sign[rows]
        part.cost = self.cost[rows] * weight
        with one_blas_thread(), ThreadPoolExecutor(self.threads) as pool:
            here = part._descend(Z, pool)
            _, L, back, _, features = self._coordinates(here.Z, pool)
            u, bias = newton(features, self.sign, self.cost, L.T @ here.beta, here.bias, self.learn, self.threads)
        return (here.Z + self.shift).astype(self.dtype), np.asarray(back.astype(np.float64) @ u), bias

    def _kernel(self, part: slice, Z: Array, norms: Array) -> Array:
        K = self.X[part] @ Z.T
        K *= 2
        K -= self.norms[part, None]
        K -= norms
        np.minimum(K, 0, out=K)
        K *= np.float32(self.gamma)
        return np.exp(K, out=K)

    def _coordinates(self, wide: Array, pool: ThreadPoolExecutor) -> tuple[Array, Array, Array, Array, Array]:
        """K_ZZ = LLᵀ, L, L⁻ᵀ, K_XZ, and Φ = K_XZ L⁻ᵀ."""
        n, kind = len(wide), np.float32
        Z = np.ascontiguousarray(wide, dtype=kind)
        norms = np.einsum("ij,ij->i", Z, Z)
        square = wide @ wide.T
        own = np.diagonal(square)
        square = np.exp(-self.gamma * np.maximum(own[:, None] + own - 2 * square, 0))
        L = np.linalg.cholesky(square + 1e-6 * np.eye(n))
        back = linalg.solve_triangular(L, np.eye(n), lower=True).T.astype(kind)
        K, features = np.empty((len(self.X), n), dtype=kind), np.empty((len(self.X), n), dtype=kind)

        def fill(part: slice) -> None:
            K[part] = self._kernel(part, Z, norms)
            np.matmul(K[part], back, out=features[part])

        list(pool.map(fill, self._parts()))
        return square, L, back, K, features

    def _parts(self) -> list[slice]:
        return [slice(k, k + BLOCK) for k in range(0, len(self.X), BLOCK)]

    def _at(self, Z: Array, beta: Array, bias: float, pool: ThreadPoolExecutor, steps: int) -> _Point:
        """J and its gradient at Z; β and b are where the search for theirs begins, in so many steps."""
        kind = np.float32
        square, L, back, K, features = self._coordinates(Z, pool)
        u, bias = newton(features, self.sign, self.cost, L.T @ beta, bias, self.learn, self.threads, steps)
        beta = np.asarray(back.astype(np.float64) @ u)
        slack = np.maximum(0.0, 1 - self.sign * (np.asarray(features @ u.astype(kind), dtype=np.float64) + bias))
        pull = (self.cost * slack * self.sign).astype(kind)
        push = (self.cost * (slack > 0)).astype(kind)

        def press(part: slice) -> tuple[Array, Array, Array]:
            R = K[part] * pull[part, None]
            return R.T @ self.X[part], R.sum(axis=0), push[part] @ (K[part] * K[part])

        gradient, mass, stiff = np.zeros(Z.shape), np.zeros(len(Z)), np.zeros(len(Z))
        for G, w, c in pool.map(press, self._parts()):
            gradient -= G
            mass += w
            stiff += c
        gradient += mass[:, None] * Z
        Q = square * beta
        gradient += Q @ Z - Q.sum(axis=1)[:, None] * Z
        gradient *= 2 * self.gamma * beta[:, None]
        value = float(0.5 * u @ u + 0.5 * (self.cost * slack) @ slack)
        return _Point(Z, value, gradient, beta, bias, 2 * self.gamma * beta**2 * (1 + stiff))

    def _descend(self, Z: Array, pool: ThreadPoolExecutor) -> _Point:
        """Better places for the vectors Z."""
        here = self._at(Z, np.zeros(len(Z)), self.bias, pool, STEPS)
        scale = np.sqrt(np.maximum(here.stiffness, 1e-3 * here.stiffness.mean() + np.finfo(float).tiny))[:, None]
        pairs: deque[tuple[Array, Array]] = deque(maxlen=MEMORY)
        left = EVALUATIONS
        while left > 0:
            downhill = here.gradient / scale
            way = -_two_loops(downhill, pairs)
            slope, t = float(np.sum(downhill * way)), 1.0
            if slope >= 0:
                break
            there = here
            while left > 0:
                left -= 1
                there = self._at(here.Z + t * way / scale, here.beta, here.bias, pool, 2)
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
