"""Rows as the kernels of the core read them fastest: dense, or CSR with the most frequent columns first."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from pegasos import _core
from pegasos.kernels.functions import Kernel
from pegasos.rows.views import Array, is_sparse, view
from pegasos.util.arrays import CSR, Matrix

#: A matrix with fewer entries other than zero than this share is faster as CSR than dense.
SPARSE_BELOW = 0.4

#: The largest error of γ‖a − x‖² before rows are moved to the origin.
MAX_DISTANCE_ERROR = 1e-11


def lean(X: Matrix, threads: int = 1) -> Matrix:
    """X for kernels among its own rows: dense if it is mostly filled, else CSR without empty columns.

    No kernel of the core depends on the order of the columns.
    """
    X = _narrow(X)
    counts = _counts(X, threads)
    if not _worth(X, counts[0]):
        return X.toarray() if is_sparse(X) else X
    filled = int(np.count_nonzero(counts[1]))
    return _renumbered(X, counts[0], _ranks(counts[1]), max(filled, 1), threads)


def centre(X: Matrix, kernel: Kernel, unit: float = 1e-16, allowed: float = MAX_DISTANCE_ERROR) -> Array | None:
    """A point near dense rows that are so far from the origin that their Gaussian distances would be lost to rounding.

    γ‖a − x‖² = γ(‖a‖² + ‖x‖² − 2⟨a, x⟩) has an error of about ``unit`` times the norms; subtracting this point from all
    rows changes no distance. None where it is not needed.
    """
    if kernel.name != "rbf" or is_sparse(X) or not X.shape[0]:
        return None
    largest = float(np.einsum("ij,ij->i", X, X, dtype=np.float64).max())
    return None if unit * kernel.gamma * largest <= allowed else np.asarray(X.mean(axis=0, dtype=np.float64))


def compact(X: Matrix, threads: int = 1) -> Matrix:
    """X for kernels with other rows, its columns where they are: CSR as it came, or a dense array if that is faster."""
    of_row, of_column = _counts(X, threads)
    if not _worth(X, of_row):
        return X.toarray() if is_sparse(X) else X
    if is_sparse(X):
        return X
    return _renumbered(X, of_row, np.arange(len(of_column), dtype=np.int32), len(of_column), threads)


def _narrow(X: Matrix) -> Matrix:
    """X with fewer columns than entries: hashed features can claim any number of them."""
    if not is_sparse(X) or X.shape[1] <= max(X.nnz, 1):
        return X
    used, indices = np.unique(X.indices, return_inverse=True)
    shape = X.shape[0], max(len(used), 1)
    found: CSR = sparse.csr_matrix((X.data, indices.astype(X.indices.dtype), X.indptr), shape)
    return found


def _counts(X: Matrix, threads: int) -> tuple[Array, Array]:
    """Entries other than zero of every row and every column."""
    of_row, of_column = (np.zeros(n, dtype=np.int64) for n in X.shape)
    _core.nonzeros(view(X), of_row, of_column, threads)
    return of_row, of_column


def _worth(X: Matrix, of_row: Array) -> bool:
    """Whether CSR is the faster layout."""
    return bool(int(of_row.sum()) < SPARSE_BELOW * X.shape[0] * X.shape[1])


def _ranks(of_column: Array) -> Array:
    """The place of every column in the order of frequency."""
    rank = np.empty(len(of_column), dtype=np.int32)
    rank[np.argsort(-of_column, kind="stable")] = np.arange(len(of_column), dtype=np.int32)
    return rank


def _renumbered(X: Matrix, of_row: Array, rank: Array, cols: int, threads: int) -> Matrix:
    """CSR with column k renumbered ``rank[k]``, in increasing order and without zeros."""
    indptr = np.concatenate([[0], np.cumsum(of_row)])
    indices, data = np.empty(indptr[-1], dtype=np.int32), np.empty(indptr[-1], dtype=X.dtype)
    _core.renumber(view(X), rank, indptr, indices, data, threads)
    wide = np.int64 if indptr[-1] >= 2**31 else np.int32
    arrays = data, indices.astype(wide, copy=False), indptr.astype(wide)
    found: CSR = sparse.csr_matrix(arrays, (X.shape[0], cols))
    found.has_canonical_format = True
    return found
