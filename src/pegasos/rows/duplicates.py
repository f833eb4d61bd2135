"""Equal rows as one row of greater weight, and folds that keep equal rows together."""

from __future__ import annotations

from hashlib import blake2b
from itertools import pairwise

import numpy as np
from scipy import sparse

from pegasos.util.arrays import Array, Matrix


def distinct_rows(X: Matrix) -> Array:
    """A number for each row, the same for equal rows; by its content alone, whatever the layout and the order."""
    rows = sparse.csr_matrix(X, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    data, indices = rows.data.astype(np.float64), rows.indices.astype(np.int64)
    out = np.empty(X.shape[0], dtype=np.int64)
    for row, (first, end) in enumerate(pairwise(rows.indptr)):
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


class Merged:
    """Rows of which equal ones of a class are one, with the sum of their weights; those of weight 0 are left out.

    A problem with weights, and the same with rows repeated in their place, are then one problem to the bit. Rows that
    are all different and have no weights stay as they are. A class without any weight keeps its first row.

    Attributes
    ----------
    first : ndarray
        The distinct rows, by the first of each in X.
    identity : ndarray
        A number for each distinct row, by its content.
    weight : ndarray
        Their weights.
    group : ndarray
        For each row of X the place of its distinct row, or of any, if its weight is 0.
    """

    def __init__(self, X: Matrix, codes: Array, given: Array | None, *, apart: bool) -> None:
        """``apart``: each row is one of its own, as those of a kernel matrix are."""
        m = X.shape[0]
        self._given = np.ones(m) if given is None else given
        weighty = self._given > 0
        classes, firsts = np.unique(codes, return_index=True)
        weighty[firsts[~np.isin(classes, codes[weighty])]] = True
        used = np.flatnonzero(weighty)
        identity = np.arange(m) if apart else distinct_rows(X)
        self.group = np.zeros(m, dtype=np.int64)
        _, first, place = np.unique(
            np.stack([codes[used], identity[used]]), axis=1, return_index=True, return_inverse=True
        )
        self.first, self.group[used] = used[first], place.ravel()
        if given is None and len(self.first) == m:
            self.first = self.group = np.arange(m)
        self.identity = identity[self.first]
        self.weight = self.weights_of(np.arange(m))
        self._apart, self._whole = apart, len(self.first) == m and bool(np.all(self.first == np.arange(m)))

    def weights_of(self, rows: Array) -> Array:
        """The weights of the distinct rows, of these rows of X only."""
        return np.bincount(self.group[rows], weights=self._given[rows], minlength=len(self.first)).astype(np.float64)

    def take(self, X: Matrix) -> Matrix:
        """The distinct rows of X."""
        if self._whole:
            return X
        found: Matrix = X[np.ix_(self.first, self.first)] if self._apart else X[self.first]
        return np.ascontiguousarray(found) if self._apart else found
