"""Planes below a convex function R, by their inner products alone, and the minimum of their model.

    R(w) ≥ e_j + ⟨a_j, w⟩,    max_{α ∈ simplex} ⟨α, e⟩ − (1/2λ)‖Σ α_j a_j‖²,    w = −(1/λ) Σ α_j a_j

The second is the minimum of (λ/2)‖w‖² + max_j (e_j + ⟨a_j, w⟩), by duality, and w is where it is: a lower bound of the
minimum of (λ/2)‖w‖² + R(w). Nothing here asks how a plane is written down: a vector of weights (``linear/planes.py``)
or whatever else has inner products (``structured/one_slack.py``).
"""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np

from pegasos import _core
from pegasos.rows.views import Array

#: Most iterations of the small quadratic program.
MAX_QP_STEPS = 20_000

S = TypeVar("S")


class Bundle(Generic[S]):
    """Heights e_j and inner products of planes, what they are made of, and how the model's minimum mixes them.

    ``contents`` are in whatever form their owner keeps them; ``unused`` counts the minima in a row in which a plane had
    no share.
    """

    def __init__(self) -> None:
        self.heights = np.zeros(0)
        self.contents: list[S] = []
        self.gram, self.alpha = np.zeros((0, 0)), np.zeros(0)
        self.unused = np.zeros(0, dtype=int)

    def __len__(self) -> int:
        return len(self.heights)

    def append(self, products: Array, square: float, height: float, content: S) -> None:
        """A new plane: its inner products with the others and with itself, and e."""
        self.gram = np.block([[self.gram, products[:, None]], [products[None, :], np.array([[square]])]])
        self.heights = np.append(self.heights, height)
        self.contents.append(content)
        self.alpha = np.append(self.alpha, float(len(self.alpha) == 0))
        self.unused = np.append(self.unused, 0)

    def limit(self, most: int) -> Array | None:
        """Drop the plane that was unused longest, if there is one more than ``most``; which ones stay, or None."""
        if len(self) <= most:
            return None
        j = int(np.argmax(self.unused))
        keep: Array = np.arange(len(self)) != j
        self.heights = self.heights[keep]
        del self.contents[j]
        self.gram, self.unused = np.ascontiguousarray(self.gram[keep][:, keep]), self.unused[keep]
        self.alpha = self.alpha[keep] / max(self.alpha[keep].sum(), 1e-300)
        return keep

    def mix(self, lam: float, precision: float) -> None:
        """Find the α of the model's minimum, so that its value is closer than ``precision``."""
        H = np.ascontiguousarray(self.gram / lam)
        self.alpha = _core.simplex_qp(H, self.heights, self.alpha, precision, MAX_QP_STEPS)
        self.alpha /= self.alpha.sum()
        self.unused = np.where(self.alpha > 0, 0, self.unused + 1)
