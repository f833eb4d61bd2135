"""Slow, obvious versions of kernel methods without a bias."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import numpy as np
from numpy.typing import NDArray
from oracles import slack_level

Array = NDArray[np.float64]


def two_in_box(g: Array, K: Array, lo: Array, hi: Array) -> Array:
    """The δ of two variables that maximises g·δ − ½ δᵀKδ within lo ≤ δ ≤ hi: the best of all faces of the box."""
    best, value = np.zeros(2), 0.0
    for fixed in product((None, lo, hi), repeat=2):
        free = [t for t in (0, 1) if fixed[t] is None]
        delta = np.array([0.0 if bound is None else bound[t] for t, bound in enumerate(fixed)])
        if free:
            delta[free] = np.linalg.lstsq(K[np.ix_(free, free)], (g - K @ delta)[free], rcond=None)[0]
        inside = (delta >= lo - 1e-12).all() and (delta <= hi + 1e-12).all()
        if inside and (now := float(g @ delta - 0.5 * delta @ K @ delta)) > value:
            best, value = np.clip(delta, lo, hi), now
    return best


def smo_step(K: Array, g: Array, a: Array, lo: Array, hi: Array) -> Array:
    """α after a step of two variables: the one that violates most, and the one that gains most beside it.

    What a variable gains is judged for itself, without its bounds, after the first has moved as far as is best for it
    alone; together with the first, if that is stopped by no bound.
    """
    rises, falls = a < hi, a > lo
    violation = np.maximum(np.where(rises, g, -np.inf), np.where(falls, -g, -np.inf))
    i = int(np.argmax(violation))
    alone = np.clip(g[i] / K[i, i], lo[i] - a[i], hi[i] - a[i])
    left = g - K[i] * alone
    bend = K.diagonal() - (K[i] ** 2 / K[i, i] if alone == g[i] / K[i, i] else 0)
    gain = np.where((left > 0) & rises | (left < 0) & falls, left**2 / np.maximum(bend, 1e-12), -np.inf)
    gain[i] = -np.inf
    a = a.copy()
    if (j := int(np.argmax(gain))) == i or gain[j] == -np.inf:
        a[i] += alone
        return a
    pair = [i, j]
    a[pair] += two_in_box(g[pair], K[np.ix_(pair, pair)], lo[pair] - a[pair], hi[pair] - a[pair])
    return a


def lasvm(K: Array, y: Array, C: Array, order: Iterable[int], tau: float) -> tuple[Array, list[int]]:
    """LASVM's online passes one variable at a time: signed α between 0 and C_i y_i, and the set S."""
    lo, hi = np.minimum(0, C * y), np.maximum(0, C * y)
    alpha, S = np.zeros(len(y)), []

    def gradient(s: int) -> float:
        return float(y[s] - alpha @ K[s])

    def violation(s: int) -> float:
        g = gradient(s)
        return max(g if alpha[s] < hi[s] else -np.inf, -g if alpha[s] > lo[s] else -np.inf)

    def step(s: int) -> bool:
        if violation(s) <= tau:
            return False
        alpha[s] = np.clip(alpha[s] + gradient(s) / K[s, s], lo[s], hi[s])
        return True

    for k in order:
        if k not in S:  # PROCESS
            S.append(k)
            step(k)
        if step(max(S, key=violation)):  # REPROCESS
            S[:] = [s for s in S if alpha[s] != 0 or violation(s) > 0]
    return alpha, S


def batch_perceptron(K: Array, y: Array, *, nu: float, draws: Iterable[float]) -> Array:
    """α ≥ 0 after a step for each number between 0 and 1 (Cotter et al. 2012); rows of weight one."""
    alpha, Q, one = np.zeros(len(y)), np.outer(y, y) * K, np.ones(len(y))
    for t, draw in enumerate(draws, start=1):
        margins = Q @ alpha
        order = np.argsort(margins, kind="stable")
        below = order[margins[order] < slack_level(margins, one, len(y) * nu)]
        alpha[below[int(draw * len(below))]] += 1 / np.sqrt(t * K.diagonal().max())
        alpha /= max(1.0, float(np.sqrt(alpha @ Q @ alpha)))
    return alpha
