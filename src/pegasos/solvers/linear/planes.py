"""Cutting planes of a mean loss R, as vectors of weights (Joachims 2006; Teo et al. 2010).

The model that they are, and its minimum, are those of ``solvers/bundle.py``. The planes of a mean loss have the slopes
of all rows; mixed by α they are a dual point.
"""

from __future__ import annotations

import numpy as np

from pegasos.losses import RowLoss
from pegasos.rows.views import Array
from pegasos.solvers.bundle import Bundle, S


def balanced_slopes(core: RowLoss, score: Array, y: Array, c: Array, start: float) -> tuple[float, Array]:
    """The best bias for these scores, looked for from ``start``, and minus-slopes u there with Σ c_i u_i = 0."""
    lo, hi, flat = core.best_offset(score, y, c, start)
    middle = 0.5 * (lo + hi)
    if flat:
        return middle, core.slope(score + middle, y)
    left, right = core.slope(score + lo, y), core.slope(score + hi, y)
    up, down = float(c @ left), -float(c @ right)
    # Unbounded slopes can be so steep that rounding leaves both sums useless; then any mixture is as good.
    share = min(max(down / (up + down), 0.0), 1.0) if up + down > 0 else 0.5
    return middle, share * left + (1 - share) * right


class Planes(Bundle[S]):
    """Planes a_j with heights e_j; ``contents`` are the slopes of the rows."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.planes = np.zeros((0, width))

    def add(self, a: Array, e: float, slopes: S) -> None:
        """A new plane."""
        self.append(self.planes @ a, float(a @ a), e, slopes)
        self.planes = np.vstack([self.planes, a])

    def widen(self, more: Array) -> None:
        """Further coordinates of all planes."""
        self.planes = np.concatenate([self.planes, more], axis=1)
        self.gram = self.planes @ self.planes.T

    def limit(self, most: int) -> Array | None:
        if (keep := super().limit(most)) is not None:
            self.planes = self.planes[keep]
        return keep

    def minimum(self, lam: float, precision: float) -> tuple[Array, float]:
        """w of the model's minimum, and a lower bound of its value there that is closer than ``precision``."""
        self.mix(lam, precision)
        mixed = self.alpha @ self.planes
        return -mixed / lam, float(self.alpha @ self.heights) - 0.5 / lam * float(mixed @ mixed)
