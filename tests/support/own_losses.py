"""Losses of a user's own for tests: a module's functions, so that they can be pickled; and their exact optimum."""

from __future__ import annotations

import numpy as np
import oracles as o
from scipy import optimize, special

from pegasos.losses import CustomLoss


def hinge(z, y):
    return np.maximum(0.0, 1.0 - y * z)


def hinge_slope(z, y):
    return -y * (y * z < 1)


def hinge_conjugate(a, y):
    return np.where((y * a <= 0) & (y * a >= -1), y * a, np.inf)


def log(z, y):
    return np.logaddexp(0.0, -y * z)


def log_slope(z, y):
    return -y * special.expit(-y * z)


def log_conjugate(a, y):
    p = -y * a
    inside = np.clip(p, 0.0, 1.0)
    return np.where((p >= 0) & (p <= 1), special.xlogy(inside, inside) + special.xlogy(1 - inside, 1 - inside), np.inf)


def clipped_exponential(z, y):
    """exp(−yz), and its tangent at yz = −1 below that."""
    return np.where(y * z < -1, -np.e * y * z, np.exp(-np.maximum(y * z, -1)))


def clipped_exponential_slope(z, y):
    return -y * np.exp(-np.maximum(y * z, -1))


def pseudo_huber(z, y):
    return np.hypot(1.0, z - y) - 1.0


def pseudo_huber_slope(z, y):
    return (z - y) / np.hypot(1.0, z - y)


def pseudo_huber_conjugate(a, y):
    return np.where(np.abs(a) <= 1, a * y + 1 - np.sqrt(np.maximum(1 - a * a, 0)), np.inf)


def expectile(z, y):
    return np.where(z > y, 0.2, 0.8) * (z - y) ** 2


def expectile_slope(z, y):
    return np.where(z > y, 0.4, 1.6) * (z - y)


def lopsided(z, y):
    """Three straight pieces around the target."""
    r = z - y
    return np.maximum(np.maximum(-3.0 * r, 0.5 * r), 2.0 * r - 3.0)


def lopsided_slope(z, y):
    r = z - y
    return np.where(r < 0, -3.0, np.where(r < 2, 0.5, 2.0))


HINGE = CustomLoss(hinge, hinge_slope)
HINGE_DUAL = CustomLoss(hinge, hinge_slope, hinge_conjugate, steepness=1.0)
LOG = CustomLoss(log, log_slope)
LOG_DUAL = CustomLoss(log, log_slope, log_conjugate, smoothness=0.25, steepness=1.0)
EXPONENTIAL = CustomLoss(clipped_exponential, clipped_exponential_slope, smoothness=np.e)
PSEUDO_HUBER = CustomLoss(pseudo_huber, pseudo_huber_slope, kind="regression", smoothness=1.0, steepness=1.0)
PSEUDO_HUBER_DUAL = CustomLoss(pseudo_huber, pseudo_huber_slope, pseudo_huber_conjugate, kind="regression")
EXPECTILE = CustomLoss(expectile, expectile_slope, kind="regression", smoothness=1.6)
LOPSIDED = CustomLoss(lopsided, lopsided_slope, kind="regression", steepness=3.0)

MARGIN = {"hinge": HINGE, "hinge*": HINGE_DUAL, "log": LOG, "log*": LOG_DUAL, "exponential": EXPONENTIAL}
REGRESSION = {"huber": PSEUDO_HUBER, "huber*": PSEUDO_HUBER_DUAL, "expectile": EXPECTILE, "lopsided": LOPSIDED}


def objective(loss, X, y, w, b, lam, weight=None, B=None):
    """P(w, b), as it is written; B: the constant feature whose weight is b/B."""
    c = np.ones(len(y)) if weight is None else weight
    squares = w @ w + (0.0 if B is None else (b / B) ** 2)
    return lam / 2 * squares + c @ loss.value(X @ w + b, y) / c.sum()


def pieces(loss, y):
    """The straight pieces α z + β of a loss that is the largest of some; None of one that is curved."""
    if loss.value is hinge:
        return [(-y, np.ones(len(y))), (0 * y, 0 * y)]
    if loss.value is lopsided:
        return [(s + 0 * y, o - s * y) for s, o in ((-3.0, 0.0), (0.5, 0.0), (2.0, -3.0))]
    return None


def optimum(loss, X, y, lam, *, free, weight=None):
    """P* to some ten digits: SciPy's BFGS where the loss is smooth, else Clarabel's interior point on its pieces."""
    m, n = X.shape
    c = np.ones(m) if weight is None else weight
    lines = pieces(loss, y)
    if lines is not None:  # min (λ/2)‖w‖² + mean t, t ≥ α (Xw + b) + β
        zero = np.zeros((0, n + 1 + m))
        fixed = zero if free else np.eye(1, n + 1 + m, n)
        quadratic = np.diag(np.concatenate([np.full(n, lam), np.zeros(1 + m)]))
        linear = np.concatenate([np.zeros(n + 1), c / c.sum()])
        below = np.vstack([np.hstack([a[:, None] * np.column_stack([X, np.ones(m)]), -np.eye(m)]) for a, _ in lines])
        of = np.concatenate([-b for _, b in lines])
        x, _ = o._clarabel(quadratic, linear, fixed, np.zeros(len(fixed)), below, of, 1e-11)
        return objective(loss, X, y, x[:n], x[n], lam, c)

    def P(v):
        return objective(loss, X, y, v[:n], v[n] if free else 0.0, lam, c)

    def gradient(v):
        g = c / c.sum() * loss.slope(X @ v[:n] + (v[n] if free else 0.0), y)
        return np.append(lam * v[:n] + X.T @ g, g.sum() if free else 0.0)

    return optimize.minimize(P, np.zeros(n + 1), jac=gradient, method="BFGS", options={"gtol": 1e-10}).fun


def conjugate(loss, a, y, reach=60.0):
    """ℓ*(a) by looking: the largest a z − ℓ(z) on a fine grid that is made finer around its best point."""
    low, high = y - reach, y + reach
    for _ in range(8):
        z = np.linspace(low, high, 4001)
        values = a * z - loss.value(z, np.full(len(z), y))
        k = int(np.argmax(values))
        low, high = z[max(k - 1, 0)], z[min(k + 1, len(z) - 1)]
    return float(values[k])
