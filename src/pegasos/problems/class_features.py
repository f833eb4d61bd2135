"""Features φ(x, k) of rows and classes, and what is asked of them: scores, differences, weighted sums.

Two forms. :class:`Outer`: φ(x, k) = a_k ⊗ x for attributes a_k of the classes, which is never written out; without
attributes a_k is a unit vector, and φ(x, k) has x in the block of class k. :class:`Table`: a row for every row and
class, dense or sparse.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from scipy import sparse

from pegasos.rows.views import examples, is_sparse
from pegasos.util.arrays import Array, Matrix, first_not_finite


class ClassFeatures(Protocol):
    """The features of some rows with every class. ``coef``: a number for each of the rows and classes."""

    @property
    def n_rows(self) -> int: ...
    @property
    def n_classes(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def arrays(self) -> tuple[Array, ...]: ...
    def scores(self, w: Array, rows: Array) -> Array: ...
    def differences(self, rows: Array, one: Array, other: Array) -> Matrix: ...
    def total(self, rows: Array, coef: Array) -> Array: ...


class Outer:
    """See the module's docstring. Weights are attributes × columns, or classes × columns."""

    def __init__(self, X: Matrix, n_classes: int, attributes: Array | None = None) -> None:
        self.X, self.n_classes, self.attributes = examples(X, private=True).array, n_classes, attributes
        self.n_rows, self.n = int(self.X.shape[0]), int(self.X.shape[1])
        self.size = (n_classes if attributes is None else attributes.shape[1]) * self.n

    @property
    def arrays(self) -> tuple[Array, ...]:
        """What the features are made of."""
        X = (self.X.data, self.X.indices, self.X.indptr) if is_sparse(self.X) else (self.X,)
        return X if self.attributes is None else (*X, self.attributes)

    def scores(self, w: Array, rows: Array) -> Array:
        """⟨w, φ(x, k)⟩: (rows × classes)."""
        Z = np.asarray(self.X[rows] @ w.reshape(-1, self.n).T)
        return Z if self.attributes is None else Z @ self.attributes.T

    def differences(self, rows: Array, one: Array, other: Array) -> Matrix:
        """φ(x, one) − φ(x, other) of each row: a copy of the row for each attribute in which the classes differ."""
        if self.attributes is None:
            same = one == other
            at, block = np.repeat(np.arange(len(rows)), 2), np.column_stack([one, other]).ravel()
            factor = np.tile([1.0, -1.0], len(rows))
            keep = ~np.repeat(same, 2)
            at, block, factor = at[keep], block[keep], factor[keep]
        else:
            change = self.attributes[one] - self.attributes[other]
            at, block = np.nonzero(change)
            factor = change[at, block]
        copies = self.X[rows[at]]
        if is_sparse(copies):
            counts = np.diff(copies.indptr)
            columns, entries = copies.indices.astype(np.int64), copies.data.astype(np.float64)
        else:
            counts = np.full(len(at), self.n)
            columns, entries = np.tile(np.arange(self.n), len(at)), np.ravel(copies).astype(np.float64)
        columns = columns + np.repeat(block * self.n, counts)
        begin = np.concatenate([[0], np.cumsum(np.bincount(at, weights=counts, minlength=len(rows)))]).astype(np.int64)
        shape = (len(rows), self.size)
        found: Matrix = sparse.csr_array((entries * np.repeat(factor, counts), columns, begin), shape=shape)
        return found

    def total(self, rows: Array, coef: Array) -> Array:
        """Σ coef φ(x, k) over rows and classes."""
        blocks = coef if self.attributes is None else coef @ self.attributes
        return np.ascontiguousarray((self.X[rows].T @ blocks).T).ravel()


class Table:
    """``phi`` has the features of row i and class k in its row i·by_row + k·by_class."""

    def __init__(self, phi: Matrix, n_rows: int, n_classes: int, *, by_row: int, by_class: int) -> None:
        self.phi, self.n_rows, self.n_classes = phi, n_rows, n_classes
        self.by_row, self.by_class, self.size = by_row, by_class, int(phi.shape[1])

    @property
    def arrays(self) -> tuple[Array, ...]:
        """What the features are made of."""
        return (self.phi.data, self.phi.indices, self.phi.indptr) if is_sparse(self.phi) else (self.phi,)

    def _places(self, rows: Array) -> Array:
        return (rows[:, None] * self.by_row + np.arange(self.n_classes) * self.by_class).ravel()

    def scores(self, w: Array, rows: Array) -> Array:
        """⟨w, φ(x, k)⟩: (rows × classes)."""
        return np.asarray(self.phi[self._places(rows)] @ w).reshape(len(rows), self.n_classes)

    def differences(self, rows: Array, one: Array, other: Array) -> Matrix:
        """φ(x, one) − φ(x, other) of each row."""
        first = rows * self.by_row
        found: Matrix = self.phi[first + one * self.by_class] - self.phi[first + other * self.by_class]
        return found

    def total(self, rows: Array, coef: Array) -> Array:
        """Σ coef φ(x, k) over rows and classes."""
        return np.asarray(self.phi[self._places(rows)].T @ coef.ravel())


def class_table(phi: Any, n_classes: int) -> Table:
    """The features that a user's function has returned: (rows × classes × features), or a matrix for each class."""
    if isinstance(phi, list | tuple):
        return _of_matrices(list(phi), n_classes)
    try:
        table = np.asarray(phi, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"phi(X, classes) returned what is no array of numbers: {error}") from None
    if table.ndim != 3 or table.shape[1] != n_classes or 0 in table.shape:
        raise ValueError(
            f"phi(X, classes) returned shape {table.shape}, not (rows, {n_classes}, features), for {n_classes} classes"
        )
    m, _, d = table.shape
    flat = np.ascontiguousarray(table).reshape(m * n_classes, d)
    if (at := first_not_finite(flat)) is not None:
        place, column = divmod(at, d)
        row, k = divmod(place, n_classes)
        raise ValueError(f"phi(X, classes) is {flat[place, column]} at row {row}, class {k}, feature {column}")
    return Table(flat, m, n_classes, by_row=n_classes, by_class=1)


def _of_matrices(matrices: list[Any], n_classes: int) -> Table:
    if len(matrices) != n_classes:
        raise ValueError(f"phi(X, classes) returned {len(matrices)} matrices for {n_classes} classes")
    some = [sparse.csr_array(M, dtype=np.float64) if sparse.issparse(M) else np.asarray(M, float) for M in matrices]
    shape = some[0].shape
    for k, M in enumerate(some):
        if M.ndim != 2 or M.shape != shape or 0 in shape:
            raise ValueError(
                f"phi(X, classes): the matrix of class {k} has shape {M.shape}, that of class 0 {shape}; they are to "
                "be rows × features"
            )
        entries = M.data if sparse.issparse(M) else M
        if first_not_finite(np.ravel(entries)) is not None:
            raise ValueError(f"phi(X, classes): the matrix of class {k} has entries that are no finite numbers")
    whole = sparse.vstack(some, format="csr") if any(map(sparse.issparse, some)) else np.concatenate(some)
    return Table(whole, shape[0], n_classes, by_row=1, by_class=shape[0])
