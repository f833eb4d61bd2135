"""Slow, obvious NumPy versions of methods for the primal problem of a kernel machine, in the coefficients."""

from typing import Any

import numpy as np
import oracles as o

Array = Any


def curvature(loss: o.Scalar, z: Array, y: Array, width: float = 1e-5) -> Array:
    """ℓ″ by differences: exact but for rounding where ℓ is quadratic around z."""
    return np.maximum(loss.slope(z - width, y) - loss.slope(z + width, y), 0) / (2 * width)


def chapelle(K: Array, y: Array, C: Array, steps: int) -> Array:
    """β after some steps of Chapelle's algorithm for the squared hinge without a bias, from all rows as active ones."""
    beta, active = np.zeros(len(y)), np.arange(len(y))
    for _ in range(steps):
        beta = np.zeros(len(y))
        own = K[np.ix_(active, active)] + np.diag(1 / (2 * C[active]))
        beta[active] = np.linalg.solve(own, y[active])
        active = np.flatnonzero(y * (K @ beta) < 1)
    return beta


def newton(K: Array, y: Array, C: Array, loss: o.Scalar, steps: int, *, free: bool) -> Array:
    """β after some Newton steps on ½βᵀKβ + Σ C_i ℓ_i((Kβ)_i + b), halved until the objective falls enough.

    The whole system is solved, divided by K; the bias is the best one before each step.
    """
    m = len(y)
    beta = np.zeros(m)

    def bias(beta):
        return o.best_bias(K @ beta, y, loss=loss, weight=C) if free else 0.0

    def value(beta, b):
        return 0.5 * beta @ K @ beta + C @ loss.value(K @ beta + b, y)

    b = bias(beta)
    for _ in range(steps):
        z = K @ beta + b
        u, H = loss.slope(z, y), np.diag(C * curvature(loss, z, y))
        system, right = np.eye(m) + H @ K, C * u - beta
        if free and H.any():
            system = np.block([[system, np.diag(H)[:, None]], [np.ones((1, m)), np.zeros((1, 1))]])
            right = np.append(right, -beta.sum())
        found = np.linalg.solve(system, right)
        way, change = found[:m], found[m] if len(found) > m else 0.0
        slope = way @ (K @ (beta - C * u)) - change * (C @ u)
        t = 1.0
        while value(beta + t * way, b + t * change) > value(beta, b) + 1e-4 * t * slope and t > 1e-9:
            t /= 2
        beta = beta + t * way
        b = bias(beta)
    return beta


def incomplete_cholesky(K: Array, steps: int) -> tuple[list[int], Array]:
    """Pivots, and G with K ≈ GGᵀ: a column at a time from the whole Schur complement, largest diagonal entry first."""
    left, order, G = K.astype(float).copy(), [], np.zeros((len(K), 0))
    for _ in range(steps):
        j = int(np.argmax(np.diag(left)))
        g = left[:, j] / np.sqrt(left[j, j])
        left = left - np.outer(g, g)
        left[j, :] = left[:, j] = 0.0
        order.append(j)
        G = np.column_stack([G, g])
    return order, G


def alpha_sgd(K: Array, y: Array, order: Any, *, lam: float, eta: Any, preconditioned: bool) -> Array:
    """All iterates of stochastic gradients of Eq. 19 of the 2011 paper, α_1 = 0 first; ``eta(t)`` is the step."""
    alpha = np.zeros(len(y))
    out = [alpha]
    for t, i in enumerate(order, start=1):
        gradient = lam * K @ alpha
        if y[i] * (K[i] @ alpha) < 1:
            gradient = gradient - y[i] * K[:, i]
        step = np.linalg.solve(K, gradient) if preconditioned else gradient
        alpha = alpha - eta(t) * step
        out.append(alpha)
    return np.array(out)
