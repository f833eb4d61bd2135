"""Rows taken out of a matrix of which nothing else is looked at: it is safe whatever the matrix holds."""

from __future__ import annotations

import numpy as np

from pegasos.rows.dataset import mapped_csr
from pegasos.rows.views import in_memory, is_sparse, unbroken
from pegasos.util.arrays import CSR, Array, Matrix, first_true


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
    # SciPy copies rows fast, and trusts their pointers: it gets these, every other pair of which is a row.
    pointers = np.column_stack([begin, end]).ravel().astype(np.promote_types(X.indices.dtype, X.indptr.dtype))
    pairs = mapped_csr(X.data, X.indices, pointers, (len(pointers) - 1, X.shape[1]))
    with unbroken("X", X.data, X.indices):
        found: CSR = pairs[np.arange(0, len(pointers), 2)]
    return found
