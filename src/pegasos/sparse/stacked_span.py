"""What ``sparse/span.py`` does for one machine, for stacks of small ones at a time.

Arrays have a first axis of machines, then n rows each, and c vectors: too few of both for anything to be gained by
blocks of rows, threads or single precision.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pegasos.rows.views import Array
from pegasos.sparse.span import JITTER, MAX_NEWTON_STEPS, MIN_NEWTON_DECREASE, MIN_OUTSIDE_SHARE, POWER, solved


def project_all(K: Array, inner: Array, usable: Array, most: int) -> tuple[Array, Array]:
    """For each machine up to ``most`` of its usable rows in the order they are chosen, and how many.

    ``inner`` is ⟨w, φ_j⟩ of each row. Beyond the number chosen the rows mean nothing.
    """
    B, n = inner.shape
    every, own = np.arange(B), np.diagonal(K, axis1=1, axis2=2)
    floor = MIN_OUTSIDE_SHARE * np.maximum(own, np.finfo(float).tiny)
    d, r = np.where(usable, own, 0.0), inner.astype(np.float64)
    V = np.zeros((B, min(most, n), n))
    chosen, count, open_ = np.zeros(V.shape[:2], dtype=np.int64), np.zeros(B, dtype=np.int64), np.ones(B, dtype=bool)
    for k in range(V.shape[1]):
        score = np.where(d > floor, r * r / np.maximum(d, floor) ** POWER, -1.0)
        j = np.argmax(score, axis=1)
        open_ &= score[every, j] > 0
        if not open_.any():
            break
        column = K[every, j] - np.einsum("bk,bkn->bn", V[every, :k, j], V[:, :k])
        v = np.where(open_[:, None], column / np.sqrt(np.where(open_, d[every, j], 1.0))[:, None], 0.0)
        V[:, k] = v
        d -= v * v
        d[every, j] = 0.0
        r -= v * (r[every, j] / np.where(open_, v[every, j], 1.0))[:, None]
        chosen[:, k] = j
        count += open_
    return chosen, count


@dataclass(frozen=True)
class StackedSpan:
    """Coordinates of rows on the span of vectors: features = K back, K among the vectors = (back backᵀ)⁻¹."""

    features: Array
    back: Array


def span_all(K: Array, at: Array, there: Array) -> StackedSpan:
    """The span of the rows ``at``, machines × c, of each machine as far as they are ``there``.

    A vector that is not there has features of zero. LinAlgError: kernels that are none.
    """
    both = there[:, :, None] & there[:, None, :]
    across = np.where(there[:, None, :], np.take_along_axis(K, at[:, None, :], axis=2), 0.0)
    square = np.where(both, np.take_along_axis(across, at[:, :, None], axis=1), 0.0)
    square = (square + square.transpose(0, 2, 1)) / 2
    diagonal = np.diagonal(square, axis1=1, axis2=2)
    more = np.where(there, JITTER * diagonal.max(axis=1, initial=0.0)[:, None], 1.0)
    L = np.linalg.cholesky(square + more[:, :, None] * np.eye(at.shape[1]))
    back = np.linalg.inv(L).transpose(0, 2, 1)
    return StackedSpan(across @ back, back)


def newton_all(features: Array, sign: Array, cost: Array, bias: Array, learn: bool) -> tuple[Array, Array]:
    """What ``_span.newton`` finds from u = 0: u of each machine, and its bias.

    A machine that has come to its end is left out of the steps of the others.
    """
    B, n, c = features.shape
    A = np.concatenate([features, np.ones((B, n, 1))], axis=2)
    free = c + 1 if learn else c
    theta = np.concatenate([np.zeros((B, c)), bias[:, None]], axis=1)
    found, left = theta.copy(), np.arange(B)

    def value(s: Array, theta: Array) -> Array:
        slack = np.maximum(1 - sign * s, 0.0)
        return np.asarray(0.5 * (theta[:, :c] ** 2).sum(axis=1) + 0.5 * (cost * slack * slack).sum(axis=1))

    s = np.broadcast_to(bias[:, None], (B, n))
    now = value(s, theta)
    for _ in range(MAX_NEWTON_STEPS):
        slack = 1 - sign * s
        weight = np.where(slack > 0, cost, 0.0)
        H = (A * weight[:, :, None]).transpose(0, 2, 1) @ A
        H[:, np.arange(c), np.arange(c)] += 1.0
        # a bias that no row presses on stays where it is
        H[:, c, c] += 1e-10 * np.maximum(H[:, c, c], 1.0)
        gradient = -np.einsum("bn,bnc->bc", weight * slack * sign, A)
        gradient[:, :c] += theta[:, :c]
        way = np.zeros_like(theta)
        way[:, :free] = -_all_solved(H[:, :free, :free], gradient[:, :free])
        slope, change = (gradient * way).sum(axis=1), np.einsum("bnc,bc->bn", A, way)
        t = np.ones(len(left))
        while True:
            then = value(s + t[:, None] * change, theta + t[:, None] * way)
            if not (far := (then > now + 1e-4 * t * slope) & (t > 1e-6)).any():
                break
            t[far] /= 2
        lower = then < now
        theta = np.where(lower[:, None], theta + t[:, None] * way, theta)
        found[left] = theta
        on = lower & (now - then > MIN_NEWTON_DECREASE * then)
        if not on.any():
            break
        A, sign, cost, theta, left, now = A[on], sign[on], cost[on], theta[on], left[on], then[on]
        s = s[on] + t[on, None] * change[on]
    return found[:, :c], found[:, c]


def _all_solved(H: Array, right: Array) -> Array:
    """H⁻¹ times a vector, for each machine."""
    try:
        return np.asarray(np.linalg.solve(H, right[:, :, None])[:, :, 0])
    except np.linalg.LinAlgError:
        return np.stack([solved(*one) for one in zip(H, right, strict=True)])
