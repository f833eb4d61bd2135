"""Newton's method for the squared hinge on few features (Keerthi, Chapelle & DeCoste 2006).

    min_{u, b}  ½‖u‖² + ½ Σ C_i max(0, 1 − y_i(⟨u, Φ_i⟩ + b))²,   b kept or free

The objective is quadratic as long as the same rows have a loss: a few steps find the minimum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import lapack

from pegasos.kernels.span import BLOCK_ROWS, Mapped, block_map
from pegasos.rows.views import Array
from pegasos.solvers.line_search import backtracked
from pegasos.util.threads import one_blas_thread

#: The method ends at this relative decrease, or after so many steps.
MIN_DECREASE, MAX_STEPS = 1e-3, 30


def newton(
    features: Array,
    sign: Array,
    cost: Array,
    u: Array,
    bias: float,
    learn: bool,
    threads: int,
    steps: int = MAX_STEPS,
    *,
    offset: Array | float = 0.0,
    small: float = MIN_DECREASE,
) -> tuple[Array, float]:
    """The minimum over u, and over b if ``learn``, for one machine.

    ``offset`` is a part of the scores that stays as it is; ``small`` the relative decrease that ends the search.
    """
    theta = np.append(u, bias)[None]
    with one_blas_thread(), block_map(threads if len(features) > BLOCK_ROWS else 1) as mapped:
        machine = _OneMachine(features, sign, cost, mapped)
        theta = _minimised(machine, theta, machine.scores(theta) + offset, learn, steps, small)
    return theta[0, :-1], float(theta[0, -1])


def newton_all(features: Array, sign: Array, cost: Array, bias: Array, learn: bool) -> tuple[Array, Array]:
    """What :func:`newton` finds from u = 0, for a stack of small machines: u of each, and its bias.

    The first axis of the arrays is that of machines; there are too few rows and features in each for anything to be
    gained by blocks of rows, threads or single precision.
    """
    machines, n, c = features.shape
    stack = _Stack(np.concatenate([features, np.ones((machines, n, 1))], axis=2), sign, cost)
    theta = np.concatenate([np.zeros((machines, c)), bias[:, None]], axis=1)
    theta = _minimised(stack, theta, np.broadcast_to(bias[:, None], (machines, n)), learn, MAX_STEPS, MIN_DECREASE)
    return theta[:, :-1], theta[:, -1]


class _Machines(Protocol):
    """Objectives of machines with θ = (u, b), an entry or a line for each; scores may have more in them than θ's."""

    def scores(self, theta: Array) -> Array: ...
    def value(self, scores: Array, theta: Array) -> Array: ...
    def derivatives(self, scores: Array, theta: Array) -> tuple[Array, Array]: ...
    def solved(self, H: Array, right: Array) -> Array: ...
    def only(self, which: Array) -> _Machines: ...


def _minimised(machines: _Machines, theta: Array, scores: Array, learn: bool, steps: int, small: float) -> Array:
    """θ of each machine at its minimum; a machine that has come to its end is left out of the steps of the others."""
    found, left = theta.copy(), np.arange(len(theta))
    free = theta.shape[1] - (not learn)
    if not free:  # no vectors, and a bias that is kept
        return found
    now = machines.value(scores, theta)
    for _ in range(steps):
        gradient, H = machines.derivatives(scores, theta)
        # A bias on which no row depends stays where it is.
        H[:, -1, -1] += 1e-10 * np.maximum(H[:, -1, -1], 1.0)
        way = np.zeros_like(theta)
        way[:, :free] = -machines.solved(H[:, :free, :free], gradient[:, :free])
        t, then = _searched(machines, scores, change := machines.scores(way), theta, way, now, gradient)
        lower = then < now
        theta = np.where(lower[:, None], theta + t[:, None] * way, theta)
        found[left] = theta
        on = lower & (now - then > small * then)
        if not on.any():
            break
        scores, now = scores + t[:, None] * change, then
        if not on.all():
            machines, left = machines.only(on), left[on]
            theta, scores, now = theta[on], scores[on], now[on]
    return found


def _searched(
    machines: _Machines, scores: Array, change: Array, theta: Array, way: Array, now: Array, gradient: Array
) -> tuple[Array, Array]:
    def value(t: Array) -> Array:
        return machines.value(scores + t[:, None] * change, theta + t[:, None] * way)

    return backtracked(value, now, (gradient * way).sum(axis=1))


@dataclass(frozen=True)
class _OneMachine:
    """One machine, its rows in blocks."""

    features: Array
    sign: Array
    cost: Array
    mapped: Mapped

    def scores(self, theta: Array) -> Array:
        features = self.features
        u, plain = theta[0, :-1].astype(features.dtype), np.empty(len(features), dtype=features.dtype)

        def part(first: int) -> None:
            np.matmul(features[first : first + BLOCK_ROWS], u, out=plain[first : first + BLOCK_ROWS])

        list(self.mapped(part, range(0, len(features), BLOCK_ROWS)))
        return np.asarray(plain.astype(np.float64)[None] + theta[0, -1])

    def value(self, scores: Array, theta: Array) -> Array:
        slack, u = np.maximum(1 - self.sign * scores[0], 0.0), theta[0, :-1]
        return np.array([0.5 * u @ u + 0.5 * (self.cost * slack) @ slack])

    def derivatives(self, scores: Array, theta: Array) -> tuple[Array, Array]:
        """Gradient and Hessian, summed block by block."""
        features, n = self.features, self.features.shape[1]
        slack = 1 - self.sign * scores[0]
        index = np.flatnonzero((slack > 0) & (self.cost > 0))
        root = np.sqrt(self.cost[index])
        pull = root * slack[index] * self.sign[index]

        def block(first: int) -> tuple[Array, Array, Array]:
            part, kind = slice(first, first + BLOCK_ROWS), features.dtype
            A = features[index[part]] * root[part, None].astype(kind)
            return A.T @ A, A.T @ root[part].astype(kind), A.T @ pull[part].astype(kind)

        H, gradient = np.zeros((n + 1, n + 1)), np.zeros(n + 1)
        for square, side, force in self.mapped(block, range(0, len(index), BLOCK_ROWS)):
            H[:n, :n] += square
            H[n, :n] += side
            gradient[:n] -= force
        H[:n, n] = H[n, :n]
        H[n, n] = float(root @ root)
        H[np.arange(n), np.arange(n)] += 1.0
        gradient[:n] += theta[0, :n]
        gradient[n] = -float(root @ pull)
        return gradient[None], H[None]

    def solved(self, H: Array, right: Array) -> Array:
        return _solved(H[0], right[0])[None]

    def only(self, which: Array) -> _OneMachine:
        return self


@dataclass(frozen=True)
class _Stack:
    """Machines whose rows, with a constant feature, are few."""

    A: Array
    sign: Array
    cost: Array

    def scores(self, theta: Array) -> Array:
        return np.asarray(np.einsum("bnc,bc->bn", self.A, theta))

    def value(self, scores: Array, theta: Array) -> Array:
        slack = np.maximum(1 - self.sign * scores, 0.0)
        return np.asarray(0.5 * (theta[:, :-1] ** 2).sum(axis=1) + 0.5 * (self.cost * slack * slack).sum(axis=1))

    def derivatives(self, scores: Array, theta: Array) -> tuple[Array, Array]:
        slack, c = 1 - self.sign * scores, theta.shape[1] - 1
        weight = np.where(slack > 0, self.cost, 0.0)
        H = (self.A * weight[:, :, None]).transpose(0, 2, 1) @ self.A
        H[:, np.arange(c), np.arange(c)] += 1.0
        gradient = -np.einsum("bn,bnc->bc", weight * slack * self.sign, self.A)
        gradient[:, :c] += theta[:, :c]
        return gradient, H

    def solved(self, H: Array, right: Array) -> Array:
        try:
            return np.asarray(np.linalg.solve(H, right[:, :, None])[:, :, 0])
        except np.linalg.LinAlgError:
            return np.stack([_solved(*one) for one in zip(H, right, strict=True)])

    def only(self, which: Array) -> _Stack:
        return _Stack(self.A[which], self.sign[which], self.cost[which])


def _solved(H: Array, right: Array) -> Array:
    """H⁻¹ times a vector; an H that rounding has made indefinite (large C, single precision) gets a larger diagonal."""
    more, top = 0.0, float(np.diagonal(H).max())
    while True:
        _, x, info = lapack.dposv(H + more * np.eye(len(H)), right)
        if info == 0:
            return np.asarray(x)
        more = 10 * more if more else 1e-7 * top
        if not more < top:
            return right / top
