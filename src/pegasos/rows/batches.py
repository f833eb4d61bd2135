"""Some rows of a dense or CSR matrix at a time, copied, for methods in Python that score and add up a few rows a step.

Borrowed rows can change after they were checked, and NumPy and SciPy trust indices. So each batch of sparse rows is
gathered into arrays of its own, and looked at there.
"""

from __future__ import annotations

import numpy as np

from pegasos.rows.views import Array, Examples, is_sparse


class Batch:
    """Rows in float64: dense ``values`` (rows × n), or, with ``columns``, entries and the ``row`` of each."""

    def __init__(self, examples: Examples, rows: Array) -> None:
        X, self.n_rows = examples.array, len(rows)
        self.columns: Array | None = None
        if not is_sparse(X):
            self.values = np.asarray(X[rows], dtype=np.float64)
            return
        begin, end = X.indptr[rows].astype(np.int64), X.indptr[rows + 1].astype(np.int64)
        counts = end - begin
        if np.any(begin < 0) or np.any(counts < 0) or np.any(end > len(X.indices)):
            raise ValueError("the row pointers of X changed while it was fitted")
        first = np.repeat(begin - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
        entries = first + np.arange(len(first))
        self.columns, self.values = X.indices[entries].astype(np.int64), X.data[entries].astype(np.float64)
        if np.any((self.columns < 0) | (self.columns >= examples.n)):
            raise ValueError("the column indices of X changed while it was fitted")
        self.row = np.repeat(np.arange(self.n_rows), counts)

    def scores(self, V: Array) -> Array:
        """⟨v_k, x_i⟩: (rows × vectors)."""
        if self.columns is None:
            return np.asarray(self.values @ V.T)
        products = (self.values * v[self.columns] for v in V)
        return np.column_stack([np.bincount(self.row, weights=p, minlength=self.n_rows) for p in products])

    def add_to(self, V: Array, coef: Array) -> None:
        """v_k += Σ_i coef_ik x_i."""
        if self.columns is None:
            V += coef.T @ self.values
            return
        for v, own in zip(V, coef.T, strict=True):
            np.add.at(v, self.columns, self.values * own[self.row])
