"""Products with the leading blocks of a kernel matrix in double precision, for methods that need the same values often.

Rows are in an order of their own: position p is row order[p], and a leading block has the first n positions. Values are
kept while the whole matrix has room; otherwise each product computes what it needs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pegasos.kernels.gram import Provider
from pegasos.rows.views import Array

#: Kernel values computed at a time.
VALUES_PER_CALL = 1 << 22

#: Called with values, and the numbers of their rows and columns, before they are used.
Check = Callable[[Array, Array, Array], None]


class LeadingBlocks:
    """K + ``extra``, in the order of the positions.

    Parameters
    ----------
    rows
        The kernel rows.
    order
        The row of each position.
    megabytes
        Room for values.
    extra
        What is added to every value: the square of a constant feature.
    check
        Refuses values that are no numbers.
    """

    def __init__(self, rows: Provider, order: Array, megabytes: float, extra: float, check: Check) -> None:
        self.rows, self.order, self.extra, self.check = rows, order, extra, check
        m = len(order)
        kept = 8 * m * m <= megabytes * 2**20
        self._whole = np.empty((m, m)) if kept else None
        #: The leading columns that are known of each row.
        self._known = np.zeros(m, dtype=np.int64)
        self.evaluations = 0

    def times(self, v: Array) -> Array:
        """The leading block of as many rows as v is long, times v: in float64, summed in an order of v's zeros."""
        n, support = len(v), np.flatnonzero(v)
        if not len(support):
            return np.zeros(n)
        if self._whole is None:
            self.evaluations += n * len(support)
            product = np.asarray(self.rows.exact(self.order[support], v[support], self.order[:n]))
            return product + self.extra * v.sum() if self.extra else product
        if 2 * len(support) >= n:  # rows that lie together are read faster than they are gathered
            self._fill(np.arange(n), n)
            return np.asarray(self._whole[:n, :n] @ v)
        self._fill(support, n)
        return np.asarray(v[support] @ self._whole[support, :n])

    def square(self, at: Array, n: int) -> Array:
        """K among some positions below n, a copy."""
        if self._whole is None:
            self.evaluations += len(at) ** 2
            return self._computed(at, at)
        self._fill(at, n)
        return self._whole[at[:, None], at]

    def _fill(self, at: Array, n: int) -> None:
        """Compute what is not known of the first n columns of some rows."""
        assert self._whole is not None
        missing = at[self._known[at] < n]
        for known in np.unique(self._known[missing]):
            some, cols = missing[self._known[missing] == known], np.arange(known, n)
            size = max(1, VALUES_PER_CALL // len(cols))
            for first in range(0, len(some), size):
                piece = some[first : first + size]
                self._whole[piece, known:n] = self._computed(piece, cols)
            self.evaluations += len(some) * len(cols)
        self._known[missing] = n

    def _computed(self, at: Array, cols: Array) -> Array:
        K = self.rows.matrix(self.order[at], self.order[cols])
        self.check(K, self.order[at], self.order[cols])
        return K + self.extra if self.extra else K
