"""Dual variables moved into the domain where they prove a lower bound: row by row, then balanced over all rows."""

from __future__ import annotations

import numpy as np

from pegasos.losses import RowLoss
from pegasos.rows.views import Array


def best_bias(core: RowLoss, scores: Array, y: Array, c: Array) -> float:
    """The middle of the biases that are best for scores without one: where the best dual variables are balanced."""
    low, high, _ = core.best_offset(np.ascontiguousarray(scores), y, c, 0.0)
    return 0.5 * (low + high)


def sign_sums(c: Array, u: Array) -> tuple[Array, Array]:
    """Σ c u over positive u, and −Σ c u over negative ones; of each column, if there are several."""
    return np.asarray(c @ np.maximum(u, 0)), np.asarray(c @ np.maximum(-u, 0))


def balanced(u: Array, up: Array, down: Array, imbalance: float = 0.0) -> Array:
    """Scale the heavier sign down, so that both weigh the same: the domain holds 0 and everything between.

    What differs by no more than ``imbalance``, relative to the heavier sign, is left alone.
    """
    light, heavy = np.minimum(up, down), np.maximum(up, down)
    with np.errstate(invalid="ignore"):  # of infinite sums, which prove nothing
        off = heavy - light > imbalance * heavy
    if not off.any():
        return u
    factor = np.divide(light, heavy, out=np.ones_like(heavy), where=off)
    return np.where(np.where(up > down, u > 0, u < 0), u * factor, u)


def on_simplex(u: Array, target: Array) -> Array:
    """u = e_y − α with α ≥ 0 and Σα = 1, by clipping and rescaling α."""
    alpha = np.maximum(_mirrored(u, target), 0.0)
    sums = alpha.sum(axis=1, keepdims=True)
    np.divide(alpha, sums, out=alpha, where=sums > 0)
    alpha[sums[:, 0] == 0] = 0.0
    alpha[np.arange(len(u)), target] += sums[:, 0] == 0
    return _mirrored(alpha, target)


def class_sums(c: Array, u: Array, target: Array) -> tuple[Array, Array]:
    """Σ c α of each class for u = e_y − α, and what it is to be for Σ c u = 0: the weight of the class's rows."""
    return c @ _mirrored(u, target), np.bincount(target, weights=c, minlength=u.shape[1])


def transported(u: Array, target: Array, have: Array, want: Array) -> Array:
    """Move α between classes so that each class's weighted total equals its share of the rows: Σ_i c_i u_i = 0.

    Classes with too much give the same fraction of every row's α to the classes with too little, in proportion to what
    those lack; rows keep their sums and stay nonnegative.
    """
    surplus, lack = np.maximum(have - want, 0), np.maximum(want - have, 0)
    if not (surplus.sum() > 0 and lack.sum() > 0):
        return u
    alpha = _mirrored(u, target)
    given = alpha * np.divide(surplus, have, out=np.zeros_like(have), where=have > 0)
    return _mirrored(alpha - given + np.outer(given.sum(axis=1), lack / lack.sum()), target)


def _mirrored(u: Array, target: Array) -> Array:
    """e_y − u of each row: α of u, and u of α."""
    other = -u
    other[np.arange(len(u)), target] += 1.0
    return other
