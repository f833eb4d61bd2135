"""Which rows are equal, and folds that keep equal rows together."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
from scipy import sparse

from pegasos._data import Array


def distinct_rows(X: Any) -> Array:
    """A number for each row, the same for equal rows; by its content alone, whatever the layout and the order."""
    X = sparse.csr_matrix(X) if not sparse.issparse(X) else X.tocsr()
    X = X.copy()
    X.sum_duplicates()
    X.eliminate_zeros()
    data, indices = X.data.astype(np.float64), X.indices.astype(np.int64)
    out = np.empty(X.shape[0], dtype=np.int64)
    for row, (first, end) in enumerate(zip(X.indptr[:-1], X.indptr[1:], strict=True)):
        name = blake2b(data[first:end].tobytes() + indices[first:end].tobytes(), digest_size=8)
        out[row] = int.from_bytes(name.digest(), "little", signed=True)
    return out


def folds(identity: Array, codes: Array, k: int) -> Array:
    """A fold, 0 … k − 1, for each row: the distinct rows of each class are dealt in turn."""
    fold = np.zeros(len(identity), dtype=np.int64)
    for code in np.unique(codes):
        mine = codes == code
        _, place = np.unique(identity[mine], return_inverse=True)
        fold[mine] = place % k
    return fold
