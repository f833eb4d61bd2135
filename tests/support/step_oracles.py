"""Slow, obvious versions of the online methods: proximal steps, dual averaging, passive-aggressive steps, NORMA."""

from __future__ import annotations

import numpy as np
import oracles as o


def _start(X, y, loss, weight, B):
    loss, X, y = o.as_loss(loss), o.augment(X, B), np.asarray(y)
    c = o.weights(len(y), weight)
    return loss, X, y, c * len(y) / c.sum()


def _slopes(loss, X, y, W, A):
    """−∂ℓ/∂score of some rows, a line each."""
    return loss.slope(X[A] @ W.T, y[A]).reshape(len(A), -1)


def dual_averaging(X, y, batches, *, lam, gamma, loss="hinge", weight=None, B=None, radius=np.inf):
    """All iterates: argmin of −⟨mean of all slopes, w⟩ + (λ/2)‖w‖² + (γ√t/2t)‖w‖², from the list of all slopes.

    A projection shrinks all slopes so far.
    """
    loss, X, y, c = _start(X, y, loss, weight, B)
    w, seen = loss.zeros(X.shape[1]), []
    out = [w]
    for t, A in enumerate(map(np.atleast_1d, batches), 1):
        g = _slopes(loss, X, y, w, A) * c[A, None]
        seen.append(g.T @ X[A] / len(A))
        mean = sum(seen) / t
        w = (mean / (lam + gamma * np.sqrt(t) / t)).reshape(w.shape)
        length = np.linalg.norm(w)
        if length > radius:
            seen, w = [s * radius / length for s in seen], w * radius / length
        out.append(w)
    return np.array(out)


def proximal(X, y, batches, *, lam, D, loss="hinge", weight=None, B=None, radius=np.inf):
    """All iterates of one part, and Σ τ: τ by bisection on its definition, the step as the argmin that defines it."""
    loss, X, y, c = _start(X, y, loss, weight, B)
    w, total = loss.zeros(X.shape[1]), 0.0
    out, taus = [w], []
    for t, A in enumerate(map(np.atleast_1d, batches), 1):
        g = _slopes(loss, X, y, w, A)
        lengths = np.linalg.norm(g, axis=1) * np.linalg.norm(X[A], axis=1)
        G = lam * np.linalg.norm(w) + float(c[A] @ lengths) / len(A)
        lo, hi = 0.0, G / D
        for _ in range(200):
            tau = 0.5 * (lo + hi)
            lo, hi = (tau, hi) if tau * D**2 * (lam * t + total + tau) <= G**2 else (lo, tau)
        total += hi
        taus.append(hi)
        near = lam * (t - 1) + total  # of (σ/2)‖w − w_t‖²
        step = ((g * c[A, None]).T @ X[A] / len(A)).reshape(w.shape)
        w = (near * w + step) / (lam + near) if lam + near > 0 else w
        length = np.linalg.norm(w)
        w = w * radius / length if length > radius else w
        out.append(w)
    return np.array(out), np.array(taus)


def passive_aggressive(X, y, order, *, variant="PA-I", C=1.0, loss="hinge", weight=None, B=None):
    """All iterates, and the loss that each row had."""
    loss, X, y, c = _start(X, y, loss, weight, B)
    w = loss.zeros(X.shape[1])
    out, losses = [w], []
    for i in order:
        A = np.array([i])
        g, value = _slopes(loss, X, y, w, A)[0], float(np.sum(loss.value(X[A] @ w.T, y[A])))
        square = float(g @ g) * float(X[i] @ X[i])
        losses.append(value)
        w = w + (c[i] * passive_step(value, square, variant, C) * np.outer(g, X[i])).reshape(w.shape)
        out.append(w)
    return np.array(out), np.array(losses)


def passive_step(value, square, variant, C):
    """τ of the three variants."""
    if variant == "PA-II":
        return value / (square + 1 / (2 * C))
    plain = value / square if square > 0 else 0.0
    return plain if variant == "PA" else min(C, plain)


def kernel_passive_aggressive(K, y, order, *, variant, C):
    """A coefficient of each row, and the losses in the order of the rows."""
    coef, losses = np.zeros(len(y)), []
    for i in order:
        value = max(0.0, 1 - y[i] * float(K[i] @ coef))
        losses.append(value)
        coef[i] += y[i] * passive_step(value, K[i, i], variant, C)
    return coef, np.array(losses)


def norma(K, y, order, *, size, p, lam, nu=None, bias=False):
    """The terms (step, row, coefficient) that are left, b, ρ and the norm of what has been dropped, one term at a time.

    ``dropped`` is ‖Σ dropped terms‖ with every coefficient as far as it would have shrunk.
    """
    terms, gone, b, rho, wrong = [], [], 0.0, 1.0, []
    for t, i in enumerate(order, 1):
        eta = p / (lam * np.sqrt(t))
        margin = y[i] * (sum(a * K[row, i] for _, row, a in terms) + b)
        terms = [(step, row, (1 - eta * lam) * a) for step, row, a in terms]
        gone = [(row, (1 - eta * lam) * a) for row, a in gone]
        violated = margin <= rho
        wrong.append((eta, violated))
        if violated:
            terms.append((t, i, eta * y[i]))
            b += eta * y[i] * bias
        if nu is not None:
            rho -= eta * (violated - nu)
        gone += [(row, a) for step, row, a in terms if step <= t - size]
        terms = [term for term in terms if term[0] > t - size]
    coef, dropped = np.zeros(len(y)), np.zeros(len(y))
    for _, row, a in terms:
        coef[row] += a
    for row, a in gone:
        dropped[row] += a
    return coef, b, rho, float(np.sqrt(max(0.0, dropped @ K @ dropped))), wrong
