"""Cutting planes of a convex function R, and the minimum of their model (Joachims 2006; Teo et al. 2010).

    R(w) ≥ e_j + ⟨a_j, w⟩,    max_{α ∈ simplex} ⟨α, e⟩ − (1/2λ)‖Σ α_j a_j‖²,    w = −(1/λ) Σ α_j a_j

The second is the minimum of (λ/2)‖w‖² + max_j (e_j + ⟨a_j, w⟩), by duality, and w is where it is: a lower bound of the
minimum of (λ/2)‖w‖² + R(w). The planes of a mean loss have the slopes of all rows; mixed by α they are a dual point.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np

from pegasos import _core
from pegasos.rows.views import Array

#: Most iterations of the small quadratic program.
MAX_QP_STEPS = 20_000

S = TypeVar("S")


def balanced_slopes(core: _core.Loss, score: Array, y: Array, c: Array, start: float) -> tuple[float, Array]:
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


class Planes(Generic[S]):
    """Planes a_j with heights e_j, what they are made of, and how the model's minimum mixes them.

    ``slopes`` are those of the rows, in whatever form their owner keeps them; ``unused`` counts the minima in a row in
    which a plane had no share.
    """

    def __init__(self, width: int) -> None:
        self.planes, self.heights = np.zeros((0, width)), np.zeros(0)
        self.slopes: list[S] = []
        self.gram, self.alpha = np.zeros((0, 0)), np.zeros(0)
        self.unused = np.zeros(0, dtype=int)

    def __len__(self) -> int:
        return len(self.heights)

    def add(self, a: Array, e: float, slopes: S) -> None:
        """A new plane."""
        row = self.planes @ a
        self.gram = np.block([[self.gram, row[:, None]], [row[None, :], np.array([[a @ a]])]])
        self.planes, self.heights = np.vstack([self.planes, a]), np.append(self.heights, e)
        self.slopes.append(slopes)
        self.alpha = np.append(self.alpha, float(len(self.alpha) == 0))
        self.unused = np.append(self.unused, 0)

    def widen(self, more: Array) -> None:
        """Further coordinates of all planes."""
        self.planes = np.concatenate([self.planes, more], axis=1)
        self.gram = self.planes @ self.planes.T

    def limit(self, most: int) -> None:
        """Drop the plane that was unused longest, if there is one more than ``most``."""
        if len(self) <= most:
            return
        j = int(np.argmax(self.unused))
        keep = np.arange(len(self)) != j
        self.planes, self.heights = self.planes[keep], self.heights[keep]
        del self.slopes[j]
        self.gram, self.unused = np.ascontiguousarray(self.gram[keep][:, keep]), self.unused[keep]
        self.alpha = self.alpha[keep] / max(self.alpha[keep].sum(), 1e-300)

    def minimum(self, lam: float, precision: float) -> tuple[Array, float]:
        """w of the model's minimum, and a lower bound of its value there that is closer than ``precision``."""
        H = np.ascontiguousarray(self.gram / lam)
        self.alpha = _core.simplex_qp(H, self.heights, self.alpha, precision, MAX_QP_STEPS)
        self.alpha /= self.alpha.sum()
        self.unused = np.where(self.alpha > 0, 0, self.unused + 1)
        mixed = self.alpha @ self.planes
        return -mixed / lam, float(self.alpha @ self.heights) - 0.5 / lam * float(mixed @ mixed)
