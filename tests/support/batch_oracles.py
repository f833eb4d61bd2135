"""Pegasos as Fig. 2 of the 2011 paper and the 2007 paper print it, and what its batches are, in plain NumPy."""

from __future__ import annotations

import numpy as np

from pegasos import _core


def figure_2(X, y, batches, lam, *, w1=None, project=False, t0=0):
    """All iterates w_1, w_2, …: w ← (1 − η_t λ) w + (η_t/k) Σ_{i ∈ A_t, y_i⟨w, x_i⟩ < 1} y_i x_i, η_t = 1/(λt).

    The paper has ``t0`` = 0; with a multiple of k, steps are those of t + t0/k. ``project``: min{1, (1/√λ)/‖w‖} w.
    """
    w = np.zeros(X.shape[1]) if w1 is None else np.array(w1, dtype=float)
    iterates = [w]
    for t, A in enumerate(batches, start=1):
        k = len(A)
        eta = 1.0 / (lam * (t + t0 / k))
        violated = [i for i in A if y[i] * (X[i] @ w) < 1]
        w = (1 - eta * lam) * w + eta / k * sum((y[i] * X[i] for i in violated), np.zeros(X.shape[1]))
        if project:
            w = min(1.0, 1 / np.sqrt(lam) / max(np.linalg.norm(w), 1e-300)) * w
        iterates.append(w)
    return np.array(iterates)


def batches(m, epochs, *, sampling="permutation", seed=0, k=1):
    """The batches that begin in so many epochs, all of k rows: an endless row of epochs, cut into pieces of k.

    Subsets are drawn by the core, each for itself.
    """
    k = min(k, m)
    drawn = k if sampling == "subset" else 1
    rows = np.concatenate([_core.epoch_order(m, sampling, seed, e, batch=drawn) for e in range(epochs + 1)])
    return [rows[t * k : (t + 1) * k] for t in range(-(-epochs * m // k))]


def epoch_batches(m, epoch, **how):
    """Those that begin in one epoch."""
    return batches(m, epoch + 1, **how)[len(batches(m, epoch, **how)) :]
