"""How far to go along a direction of descent."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pegasos.rows.views import Array

#: The share of the decrease that the slope promises which a step must reach (Armijo's rule), and the shortest step.
MIN_DECREASE_SHARE, MIN_STEP = 1e-4, 1e-8


def backtracked(value: Callable[[Array], Array], now: Array, slope: Array) -> tuple[Array, Array]:
    """The first of 1, ½, ¼, … with value(t) ≤ now + 1e-4 t slope, of several functions at once, and the values there.

    Where there is none, t is 0.
    """
    t = np.ones_like(now)
    while True:
        then = value(t)
        above = ~(then <= now + MIN_DECREASE_SHARE * t * slope) & (t > 0)
        if not above.any():
            return t, then
        t = np.where(above, np.where(t > 2 * MIN_STEP, t / 2, 0.0), t)
