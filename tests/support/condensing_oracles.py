"""Slow, obvious versions of what RSVM, the condensed machines and the curvature heuristic compute."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar


def rsvm(G, y, C):
    """min ½‖θ‖² + C Σ max(0, 1 − y Gθ)² over θ = (β, b), G = [K(A, Ā), 1]: Newton's steps with halving."""
    theta = np.zeros(G.shape[1])

    def value(t):
        return 0.5 * t @ t + C * np.sum(np.maximum(0, 1 - y * (G @ t)) ** 2)

    for _ in range(500):
        slack = 1 - y * (G @ theta)
        on = slack > 0
        gradient = theta - 2 * C * G[on].T @ (y[on] * slack[on])
        if np.linalg.norm(gradient) <= 1e-11 * (1 + np.linalg.norm(theta)):
            break
        step = np.linalg.solve(np.eye(len(theta)) + 2 * C * G[on].T @ G[on], -gradient)
        t = 1.0
        while value(theta + t * step) > value(theta) and t > 1e-12:
            t /= 2
        theta = theta + t * step
    return theta, float(value(theta))


def combine(x, z, a, b, gamma):
    """The point of the segment, and its coefficient, by a search over the segment for the least difference."""
    kappa = np.exp(-gamma * np.sum((x - z) ** 2))

    def lost(t):
        point = t * x + (1 - t) * z
        merged = a * np.exp(-gamma * np.sum((point - x) ** 2)) + b * np.exp(-gamma * np.sum((point - z) ** 2))
        return a * a + b * b + 2 * a * b * kappa - merged**2

    grid = np.linspace(0, 1, 2001)
    first = grid[int(np.argmin([lost(t) for t in grid]))]
    near = (max(0.0, first - 1e-3), min(1.0, first + 1e-3))
    t = float(minimize_scalar(lost, bounds=near, method="bounded", options={"xatol": 1e-12}).x)
    point = t * x + (1 - t) * z
    coef = a * np.exp(-gamma * np.sum((point - x) ** 2)) + b * np.exp(-gamma * np.sum((point - z) ** 2))
    return point, coef, np.sqrt(max(0.0, lost(t)))


def condensed(Z, y, alpha, weight, gamma, size):
    """The two nearest vectors of one class become one, until there are so many or one of each class."""
    items = [(Z[i], y[i], alpha[i], weight[i], {i}) for i in range(len(Z))]
    lost = 0.0
    while len(items) > size:
        pairs = [
            (float(np.sum((items[i][0] - items[j][0]) ** 2)), i, j)
            for i in range(len(items))
            for j in range(i + 1, len(items))
            if items[i][1] == items[j][1]
        ]
        if not pairs:
            break
        _, i, j = min(pairs)
        point, coef, more = combine(items[i][0], items[j][0], items[i][2], items[j][2], gamma)
        lost += more
        merged = (point, items[i][1], coef, items[i][3] + items[j][3], items[i][4] | items[j][4])
        items = [item for k, item in enumerate(items) if k not in (i, j)] + [merged]
    return items, lost


def curvature(f, x, h=1e-4):
    """‖P ∇²f P‖_F/‖∇f‖ by finite differences."""
    n, unit = len(x), np.eye(len(x))
    g = np.array([(f(x + h * e) - f(x - h * e)) / (2 * h) for e in unit])
    H = np.array(
        [
            [
                (
                    f(x + h * unit[i] + h * unit[j])
                    - f(x + h * unit[i] - h * unit[j])
                    - f(x - h * unit[i] + h * unit[j])
                    + f(x - h * unit[i] - h * unit[j])
                )
                / (4 * h * h)
                for j in range(n)
            ]
            for i in range(n)
        ]
    )
    P = unit - np.outer(g, g) / (g @ g)
    return float(np.linalg.norm(P @ H @ P) / np.linalg.norm(g))
