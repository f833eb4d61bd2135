"""Rows taken out of a matrix of which nothing else is looked at: it is safe whatever the matrix holds."""

from __future__ import annotations

import numpy as np

from pegasos.rows.dataset import mapped_csr
from pegasos.rows.views import in_memory, is_sparse
from pegasos.util.arrays import Array, Matrix, first_true


def taken(X: Matrix, rows: Array) -> Matrix:
    """A copy of some rows of a float array or CSR matrix that has not been checked, and is not checked here.

    ``rows``: their numbers, in any order and any number of times. Row pointers are used only once they are known to
    stay inside the arrays; columns and entries are as they were found.
    """
    if not is_sparse(X):
        return in_memory(X, "X", rows)
    begin, end = (in_memory(X.indptr, "X", rows + k).astype(np.int64) for k in (0, 1))
    stored = min(len(X.data), len(X.indices))
    if (wrong := first_true((begin < 0) | (end < begin) | (end > stored))) is not None:
        raise ValueError(f"X is not a valid CSR matrix: indptr is wrong at row {rows[wrong]}")
    indptr = np.concatenate([[0], np.cumsum(end - begin)])
    at = np.repeat(begin - indptr[:-1], end - begin) + np.arange(indptr[-1])
    indices = in_memory(X.indices, "X", at)
    if indptr[-1] <= np.iinfo(indices.dtype).max:
        indptr = indptr.astype(indices.dtype)
    return mapped_csr(in_memory(X.data, "X", at), indices, indptr, (len(rows), X.shape[1]))
