"""Slow, obvious runs of Pegasos, and what they met on the way."""

from __future__ import annotations

import numpy as np
import oracles as o


def problem(seed, m=30, n=4, radius=1.0):
    X, y = o.toy(m, n, seed=seed)
    return X * radius / np.linalg.norm(X, axis=1).max(), y


def instantaneous(X, y, batches, W, lam, loss):
    """Mean over t of f(w_t; A_t), or of f(u; A_t) for one u."""
    points = W if W.ndim == 2 else [W] * len(batches)
    return np.mean([o.primal(X[A], y[A], w, loss=loss, lam=lam) for w, A in zip(points, batches, strict=True)])


def gradients(X, y, batches, W, lam, loss):
    loss = o.as_loss(loss)
    for w, A in zip(W, batches, strict=True):
        yield lam * w - loss.slope(X[A] @ w, y[A]) @ X[A] / len(A)


def many_runs(X, y, order, lam, radius=np.inf, start=None):
    """`oracles.pegasos` with the hinge, one run a row of `order`: yields the iterates w_1…w_T of all runs together."""
    w = np.zeros((len(order), X.shape[1])) if start is None else np.tile(start, (len(order), 1))
    for t, i in enumerate(order.T, start=1):
        yield w
        violated = y[i] * (w * X[i]).sum(1) < 1
        w = (1 - 1 / t) * w + ((y[i] * violated)[:, None] * X[i]) / (lam * t)
        w *= np.minimum(1, radius / np.maximum(np.linalg.norm(w, axis=1), 1e-300))[:, None]
