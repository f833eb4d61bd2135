"""Two vectors of one class as one: what support vectors are condensed by, for the rbf kernel (Nguyen & Ho 2006).

Of the points z = t x_i + (1 − t) x_j between two vectors, with s = α_i/(α_i + α_j) and κ = K(x_i, x_j), the one whose
image comes nearest to α_iφ(x_i) + α_jφ(x_j), times a number, is where

    s κ^{(1−t)²} + (1 − s) κ^{t²}

is largest; its coefficient is α_z = α_i K(x_i, z) + α_j K(x_j, z), which makes the difference as small as it can be.
"""

from __future__ import annotations

import numpy as np

from pegasos.rows.views import Array

#: Points tried between two vectors, and how often the best of them is looked at more closely.
GRID, CLOSER = 65, 8


def between(share: float, kappa: float) -> float:
    """The best t."""
    low, high = 0.0, 1.0
    for _ in range(CLOSER):
        t = np.linspace(low, high, GRID)
        with np.errstate(divide="ignore"):
            log = np.log(kappa)
        value = share * np.exp((1 - t) ** 2 * log) + (1 - share) * np.exp(t**2 * log)
        best, step = int(np.argmax(value)), (high - low) / (GRID - 1)
        low, high = max(0.0, t[best] - step), min(1.0, t[best] + step)
    return float(t[best])


class Condensed:
    """Vectors with labels ±1, coefficients above zero and weights, combined pair by pair."""

    def __init__(self, Z: Array, y: Array, alpha: Array, weight: Array, gamma: float) -> None:
        self.Z, self.y, self.gamma = Z.copy(), y.copy(), gamma
        self.alpha, self.weight = alpha.copy(), weight.copy()
        self.lost = 0.0
        self.alive, self.into = np.ones(len(Z), dtype=bool), np.arange(len(Z))
        square = np.einsum("ij,ij->i", Z, Z)
        self.distance = np.maximum(0.0, square[:, None] + square - 2 * Z @ Z.T)
        self.distance[y[:, None] != y] = np.inf
        np.fill_diagonal(self.distance, np.inf)
        self.nearest = self.distance.argmin(axis=1)

    @property
    def size(self) -> int:
        """Vectors left."""
        return int(self.alive.sum())

    def to(self, size: int) -> None:
        """Combine the two nearest vectors of one class until there are so many, or one of each class."""
        while self.size > size:
            own = self.distance[np.arange(len(self.Z)), self.nearest]
            i = int(np.argmin(own))
            if own[i] == np.inf:
                return
            self._combine(i, int(self.nearest[i]))

    def _combine(self, i: int, j: int) -> None:
        """Make i and j one, which takes the place of i."""
        a, b, kappa = self.alpha[i], self.alpha[j], float(np.exp(-self.gamma * self.distance[i, j]))
        t = between(a / (a + b), kappa) if kappa > 0 else float(a >= b)
        to_i, to_j = (np.exp(-self.gamma * part**2 * self.distance[i, j]) for part in (1 - t, t))
        merged = a * to_i + b * to_j
        self.lost += np.sqrt(max(0.0, a * a + b * b + 2 * a * b * kappa - merged**2))
        self.Z[i] = t * self.Z[i] + (1 - t) * self.Z[j]
        self.alpha[i], self.weight[i] = merged, self.weight[i] + self.weight[j]
        self.alive[j], self.into[self.into == j] = False, i
        self.distance[j] = self.distance[:, j] = np.inf
        others = np.flatnonzero(self.alive & (self.y == self.y[i]))
        others = others[others != i]
        self.distance[i, others] = self.distance[others, i] = np.square(self.Z[others] - self.Z[i]).sum(axis=1)
        changed = np.append(others[np.isin(self.nearest[others], (i, j))], i)
        self.nearest[changed] = self.distance[changed].argmin(axis=1)
        self.nearest[j] = j
        closer = self.distance[others, i] < self.distance[others, self.nearest[others]]
        self.nearest[others[closer]] = i
