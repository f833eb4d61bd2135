"""Points whose image is nearest in direction to a vector of the feature space, for the rbf kernel.

For ψ = Σ r_i φ(v_i) the z that maximises ⟨ψ, φ(z)⟩² is a fixed point (Schölkopf et al. 1999) of

    z ← Σ r_i K(v_i, z) v_i / Σ r_i K(v_i, z).

One pass over the v_i serves many z, as many as the core has lanes for at nearly the cost of one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from pegasos import _core
from pegasos.kernels.functions import Kernel
from pegasos.kernels.layout import compact
from pegasos.rows.views import Array, is_sparse
from pegasos.util.arrays import Matrix

#: Steps that a search tries at most; the relative gain that ends it.
MAX_SEARCH_STEPS, MIN_SEARCH_GAIN = 50, 1e-4

#: A step that gains nothing is multiplied by this factor, as long as its share of the full step is above the least.
STEP_FACTOR, MIN_STEP = 0.25, 1e-3


@dataclass(frozen=True)
class Rows:
    """Rows as the core reads them."""

    V: Matrix
    kernel: Kernel
    core: _core.KernelRows

    @classmethod
    def of(cls, V: Matrix, gamma: float) -> Rows:
        """Laid out by how full they are, whatever they came as: the same bits for dense and sparse."""
        V, kernel = compact(V), Kernel("rbf", gamma)
        return cls(V, kernel, kernel.core(V))

    def dense(self, index: Array) -> Array:
        """Some rows as a dense array."""
        part = self.V[index]
        return np.asarray(part.toarray() if is_sparse(part) else part, dtype=np.float64)

    def values(self, Z: Array) -> Array:
        """K(z_j, v_i) in single precision: a row for each point, a column for each row."""
        points = self.kernel.core(np.ascontiguousarray(Z, dtype=self.V.dtype))
        single = self.V.dtype == np.float32
        return np.asarray(points.scores(None, np.eye(len(Z)), self.core, None, 1, single), dtype=np.float32)


class Vector:
    """ψ = Σ r_i φ(v_i), of one set of rows or of several; kernel values in single precision if ``single``."""

    def __init__(self, terms: list[tuple[Rows, Array]], *, single: bool = False, threads: int = 1) -> None:
        self.terms = [(rows, np.ascontiguousarray(r, dtype=np.float64)) for rows, r in terms]
        self.single, self.threads = single, threads

    def at(self, Z: Array) -> tuple[Array, Array]:
        """⟨ψ, φ(z)⟩ and Σ r_i K(v_i, z) v_i for each of the points."""
        value, pull = np.zeros(len(Z)), np.zeros(Z.shape)
        points = self.terms[0][0].kernel.core(np.ascontiguousarray(Z))
        for rows, r in self.terms:
            own, towards = rows.core.pull(r, points, self.threads, self.single)
            value += own
            pull += towards
        return value, pull

    def preimages(self, Z: Array, steps: int = MAX_SEARCH_STEPS, gain: float = MIN_SEARCH_GAIN) -> tuple[Array, Array]:
        """Local maxima of ⟨ψ, φ(z)⟩² found from each of the points, and :meth:`at` there, the values.

        Where weights have both signs a step can lose; it is shortened until it gains; where none does, or the sum
        of the weights is zero, the search ends where it is.
        """
        Z = Z.astype(np.float32 if self.single else np.float64)
        value, pull = self.at(Z)
        going, length = np.arange(len(Z)), np.ones(len(Z), dtype=Z.dtype)
        for _ in range(steps):
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                aim = pull[going] / value[going, None]
            sound = np.isfinite(aim).all(axis=1) & (length[going] > MIN_STEP)
            going, aim = going[sound], aim[sound].astype(Z.dtype)
            if not len(going):
                break
            trial = Z[going] + length[going, None] * (aim - Z[going])
            reached, towards = self.at(trial)
            before = np.abs(value[going])
            better = np.abs(reached) > before
            place = going[better]
            Z[place], value[place], pull[place] = trial[better], reached[better], towards[better]
            length[going] = np.where(better, 1.0, STEP_FACTOR * length[going])
            going = going[~better | (np.abs(reached) >= (1.0 + gain) * before)]
        return Z.astype(np.float64), value


def gaussian(A: Matrix, B: Array, gamma: float) -> Array:
    """exp(−γ‖a_i − b_j‖²), in the type of A, which may be sparse."""
    square = A.multiply(A).sum(axis=1) if is_sparse(A) else np.einsum("ij,ij->i", A, A)
    K: Array = A @ np.ascontiguousarray(B.T)
    K *= 2
    K -= np.asarray(square, dtype=K.dtype).reshape(-1, 1)
    K -= np.einsum("ij,ij->i", B, B)
    np.minimum(K, 0, out=K)
    K *= K.dtype.type(gamma)
    return np.exp(K, out=K)


def as_rows(Z: Array, X: Matrix) -> Matrix:
    """Points as a matrix, laid out and typed as X."""
    rows = np.atleast_2d(Z).astype(X.dtype)
    return sparse.csr_matrix(rows) if is_sparse(X) else rows
