"""Points whose image is nearest in direction to a vector of the feature space, for the rbf kernel.

For ψ = Σ r_i φ(v_i) the z that maximises ⟨ψ, φ(z)⟩² is a fixed point (Schölkopf et al. 1999) of

    z ← Σ r_i K(v_i, z) v_i / Σ r_i K(v_i, z).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from pegasos._data import Array
from pegasos._kernel_layout import compact

#: Steps of a search at most; the relative gain that ends it.
STEPS, GAIN = 50, 1e-4


class Vector:
    """ψ = Σ r_i φ(v_i), of rows and of points of their own, for exp(−γ‖a − x‖²)."""

    def __init__(self, gamma: float, terms: list[tuple[Any, Array]]) -> None:
        self.gamma, self.terms = gamma, [(V, r, _norms(V)) for V, r in ((compact(V), r) for V, r in terms if len(r))]

    def _weights(self, z: Array) -> list[Array]:
        square = float(z @ z)
        return [
            r * np.exp(-self.gamma * np.maximum(norms - 2 * np.asarray(V @ z, dtype=np.float64) + square, 0.0))
            for V, r, norms in self.terms
        ]

    def at(self, z: Array) -> float:
        """⟨ψ, φ(z)⟩."""
        return float(sum(weights.sum() for weights in self._weights(z)))

    def preimage(self, z: Array) -> tuple[Array, float]:
        """A local maximum of ⟨ψ, φ(z)⟩² found from ``z``, and ⟨ψ, φ(z)⟩ there.

        Where weights of both signs make a step go astray, it is halved until it gains.
        """
        weights = self._weights(z)
        value = float(sum(part.sum() for part in weights))
        for _ in range(STEPS):
            if value == 0.0:
                break
            pulls = [
                np.asarray(V.T @ part, dtype=np.float64) for (V, _, _), part in zip(self.terms, weights, strict=True)
            ]
            aim, length = np.sum(pulls, axis=0) / value, 1.0
            if not np.isfinite(aim).all():
                break
            while length > 1e-3:
                trial = z + length * (aim - z)
                weights = self._weights(trial)
                reached = float(sum(part.sum() for part in weights))
                if abs(reached) > abs(value):
                    break
                length *= 0.25
            else:
                break
            gain, z, value = abs(reached) / abs(value) - 1.0, trial, reached
            if gain < GAIN:
                break
        return z, value


def _norms(V: Any) -> Array:
    square = V.multiply(V).sum(axis=1) if sparse.issparse(V) else np.einsum("ij,ij->i", V, V)
    return np.asarray(square, dtype=np.float64).ravel()


def dense_row(X: Any, i: int) -> Array:
    """Row i as a vector."""
    return np.asarray(X[[i]].toarray()[0] if sparse.issparse(X) else X[i], dtype=np.float64)


def as_rows(z: Array, X: Any) -> Any:
    """A point as a matrix of one row, laid out and typed as X."""
    row = z[None].astype(X.dtype)
    return sparse.csr_matrix(row) if sparse.issparse(X) else row
