"""The working sets of SMO: which variables to take, and Newton's method where steps on pairs make little progress."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from pegasos.rows.views import Array
from pegasos.util.threads import one_blas_thread

#: Newton steps in a row, and free variables, up to which Newton's method is worth its cost.
MAX_NEWTON_STEPS, MAX_NEWTON_VARIABLES = 50, 2048


def select(last: Array, size: int, g: Array, up: Array, low: Array, top: float, bottom: float) -> Array:
    """The next working set: half of the last one, and the variables that violate the conditions most.

    Those that can rise violate them against ``bottom``, those that can fall against ``top``; without a bias both are 0.
    """
    if not len(last):
        # All variables are zero, and the violations say little: take rows evenly from the whole order.
        chosen = [_spread(np.flatnonzero(side), size // 2) for side in (up, low)]
        return np.unique(np.concatenate(chosen))
    kept = last[-(size // 2) :]  # the newest half
    there = np.zeros(len(g), dtype=bool)
    there[kept] = True
    room = size - len(kept)
    upper = _largest(np.where(up & ~there & (g > bottom), g, -np.inf), room // 2)
    there[upper] = True
    lower = _largest(np.where(low & ~there & (g < top), -g, -np.inf), room - len(upper))
    there[lower] = True
    if (room := room - len(upper) - len(lower)) > 0:
        upper = np.concatenate([upper, _largest(np.where(up & ~there & (g > bottom), g, -np.inf), room)])
    return np.concatenate([kept, upper, lower])


def _largest(values: Array, count: int) -> Array:
    """Where the ``count`` largest finite values are, the largest first."""
    if count <= 0:
        return np.zeros(0, dtype=np.int64)
    at = np.argpartition(-values, count - 1)[:count] if count < len(values) else np.arange(len(values))
    at = at[np.argsort(-values[at], kind="stable")]
    return at[values[at] > -np.inf]


def _spread(candidates: Array, count: int) -> Array:
    """``count`` of the candidates, evenly spread."""
    if len(candidates) <= count:
        return candidates
    return candidates[np.linspace(0, len(candidates) - 1, count).astype(np.int64)]


def newton_steps(K: Array, g: Array, a: Array, lo: Array, hi: Array, *, balance: bool) -> None:
    """Maximise Σ g δ − ½ δᵀKδ over the variables between their bounds, again and again; g and a are updated.

    With ``balance``, which a free bias asks for, Σδ = 0.

    A step ends at the first bound it meets, and that variable stays there. This is for kernel matrices that are nearly
    singular, where steps on pairs gain little; a tiny ridge keeps the equations solvable.
    """
    for _ in range(MAX_NEWTON_STEPS):
        free = np.flatnonzero((a > lo) & (a < hi))
        if not 1 + balance <= len(free) <= MAX_NEWTON_VARIABLES:
            return
        own = K[np.ix_(free, free)].astype(np.float64)
        delta = _direction(own, g[free], balance)
        if delta is None:
            return
        at, low, high = a[free], lo[free], hi[free]
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(delta > 0, (high - at) / delta, np.where(delta < 0, (low - at) / delta, np.inf))
        step = min(1.0, float(room.min()))
        moved = np.clip(at + step * delta, low, high)
        if step < 1.0:
            stopped = room <= step
            moved[stopped] = np.where(delta[stopped] > 0, high[stopped], low[stopped])
        change = moved - at
        if not float(change @ g[free]) - 0.5 * float(change @ (own @ change)) > 0:
            return
        a[free] = moved
        g -= K[:, free].astype(np.float64) @ change
        if step == 1.0:
            return


def _direction(K: Array, g: Array, balance: bool) -> Array | None:
    """The Newton step, or None if K is too far from positive definite."""
    scale = float(np.abs(np.diagonal(K)).mean())
    with one_blas_thread():
        for ridge in (1e-14, 1e-12, 1e-10, 1e-8):
            try:
                factor = cho_factor(K + ridge * scale * np.eye(len(K)), lower=True)
            except LinAlgError:
                continue
            if not balance:
                p = cho_solve(factor, g)
                if np.isfinite(p).all():
                    return np.asarray(p)
                continue
            p, q = cho_solve(factor, np.column_stack([g, np.ones(len(g))])).T
            if np.isfinite(p).all() and np.isfinite(q).all() and (total := float(q.sum())) > 0:
                delta = p - (float(p.sum()) / total) * q
                return np.asarray(delta - delta.mean())  # so that the sum is zero but for rounding
    return None
