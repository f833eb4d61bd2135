"""Points whose image is nearest in direction to a vector of the feature space, for the rbf kernel.

For ψ = Σ r_i φ(v_i) the z that maximises ⟨ψ, φ(z)⟩² is a fixed point (Schölkopf et al. 1999) of

    z ← Σ r_i K(v_i, z) v_i / Σ r_i K(v_i, z).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from pegasos._data import Array
from pegasos._kernel_layout import compact

#: Steps of a search at most; the relative gain that ends it.
STEPS, GAIN = 50, 1e-4


@dataclass(frozen=True)
class Rows:
    """Rows in double precision and their squared norms."""

    V: Any
    norms: Array
    transposed: Any

    @classmethod
    def of(cls, V: Any) -> Rows:
        """Laid out by how full they are, whatever they came as: the same bits for dense and sparse."""
        V = compact(V).astype(np.float64)
        square = V.multiply(V).sum(axis=1) if sparse.issparse(V) else np.einsum("ij,ij->i", V, V)
        return cls(V, np.asarray(square, dtype=np.float64).ravel(), V.T)

    def kernel(self, gamma: float, z: Array) -> Array:
        """exp(−γ‖v_i − z‖²)."""
        return np.asarray(np.exp(-gamma * np.maximum(self.norms - 2 * (self.V @ z) + float(z @ z), 0.0)))

    def row(self, i: int) -> Array:
        """Row i as a vector."""
        return dense_row(self.V, i)


class Vector:
    """ψ = Σ r_i φ(v_i), of rows and of points of their own, for exp(−γ‖a − x‖²)."""

    def __init__(self, gamma: float, terms: list[tuple[Rows, Array]]) -> None:
        self.gamma, self.terms = gamma, terms

    def _weights(self, z: Array) -> list[Array]:
        return [r * rows.kernel(self.gamma, z) for rows, r in self.terms]

    def at(self, z: Array) -> Array:
        """⟨ψ, φ(z)⟩, the share of each of the terms."""
        return np.array([part.sum() for part in self._weights(z)])

    def preimage(self, z: Array, steps: int = STEPS, gain: float = GAIN) -> tuple[Array, Array]:
        """A local maximum of ⟨ψ, φ(z)⟩² found from ``z``, and :meth:`at` there.

        Where weights of both signs make a step go astray, it is shortened until it gains; where none does, or the sum
        of the weights is zero, the search ends where it is.
        """
        weights = self._weights(z)
        shares = np.array([part.sum() for part in weights])
        for _ in range(steps):
            value = float(shares.sum())
            if value == 0.0:
                break
            pull = np.sum([rows.transposed @ part for (rows, _), part in zip(self.terms, weights, strict=True)], axis=0)
            with np.errstate(over="ignore", invalid="ignore"):
                aim = pull / value
            if not np.isfinite(aim).all():
                break
            length = 1.0
            while length > 1e-3:
                trial = z + length * (aim - z)
                weights = self._weights(trial)
                reached = np.array([part.sum() for part in weights])
                if abs(float(reached.sum())) > abs(value):
                    break
                length *= 0.25
            else:
                break
            z, shares = trial, reached
            if abs(float(reached.sum())) < (1.0 + gain) * abs(value):
                break
        return z, shares


def dense_row(X: Any, i: int) -> Array:
    """Row i as a vector."""
    if not sparse.issparse(X):
        return np.asarray(X[i], dtype=np.float64)
    row, part = np.zeros(X.shape[1]), slice(X.indptr[i], X.indptr[i + 1])
    np.add.at(row, X.indices[part], X.data[part])
    return row


def as_rows(Z: Array, X: Any) -> Any:
    """Points as a matrix, laid out and typed as X."""
    rows = np.atleast_2d(Z).astype(X.dtype)
    return sparse.csr_matrix(rows) if sparse.issparse(X) else rows
