"""Rows of a kernel matrix that are kept while there is room, and what providers with such a cache share."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pegasos.kernels.rounding import ValueErrors
from pegasos.rows.views import Array

#: Rows that are computed, or added up, together; a cache always has room for so many.
BATCH_ROWS = 128


class RowCache:
    """``capacity`` slots of m numbers each; those unused for longest are used again first."""

    def __init__(self, m: int, dtype: npt.DTypeLike, megabytes: float) -> None:
        width = m * np.dtype(dtype).itemsize
        self.capacity = int(min(m, max(BATCH_ROWS, megabytes * 2**20 // max(width, 1))))
        self.store = np.empty((self.capacity, m), dtype=dtype)
        self.slot = np.full(m, -1, dtype=np.int64)
        self.row = np.full(self.capacity, -1, dtype=np.int64)
        self.used = np.zeros(self.capacity, dtype=np.int64)
        self.clock = 0

    def place(self, rows: Array) -> tuple[Array, Array]:
        """Slots of at most ``capacity`` distinct rows, and which of them have to be filled."""
        self.clock += 1
        slots = self.slot[rows]
        missing = slots < 0
        self.used[slots[~missing]] = self.clock
        if count := int(missing.sum()):
            free = np.argpartition(self.used, count - 1)[:count] if count < self.capacity else np.arange(count)
            before = self.row[free]
            self.slot[before[before >= 0]] = -1
            self.row[free], self.slot[rows[missing]], self.used[free] = rows[missing], free, self.clock
            slots[missing] = free
        return slots, missing

    def forget(self) -> None:
        """Drop all rows: filling some has failed."""
        self.slot[:], self.row[:], self.used[:] = -1, -1, 0


class CachedRows:
    """What providers with a cache share; they compute rows into it."""

    single = False
    #: Whether values take longer to compute than to look up.
    costly = True

    def __init__(self, m: int, dtype: npt.DTypeLike, megabytes: float, threads: int) -> None:
        self.m, self.dtype, self.megabytes, self.threads = m, np.dtype(dtype), megabytes, threads
        self.cache = RowCache(m, dtype, megabytes)
        self.evaluations = 0

    def add(self, rows: Array, coef: Array, F: Array) -> None:
        """F += Σ coef_r K[r, :] for distinct rows."""
        # Threads are started for each batch, so large batches are better, but one must not fill the whole cache.
        size = int(np.clip(self.cache.capacity // 2, BATCH_ROWS, 4 * BATCH_ROWS))
        for first in range(0, len(rows), size):
            part = rows[first : first + size]
            self._batch(part, np.ascontiguousarray(coef[first : first + size], dtype=np.float64), F)

    def square(self, rows: Array) -> Array:
        """K of these rows among themselves; what the cache has is not computed again if that takes longer."""
        slots = self.cache.slot[rows]
        held = slots >= 0
        if not self.costly or not held.any():
            return self.block(rows, rows)
        out = np.zeros((len(rows), padded(len(rows))), dtype=self.dtype)
        out[held, : len(rows)] = self.cache.store[np.ix_(slots[held], rows)]
        if not held.all():
            out[~held] = self.block(rows[~held], rows)
        return out

    def block(self, rows: Array, cols: Array) -> Array:
        """K of these rows and columns, padded with zeros to a multiple of eight columns."""
        raise NotImplementedError

    def rows(self, indices: Array) -> Array:
        """Whole rows of the kernel matrix, a copy."""
        out = np.empty((len(indices), self.m), dtype=self.dtype)
        nothing = np.zeros(self.m)
        distinct, back = np.unique(indices, return_inverse=True)
        for first in range(0, len(distinct), BATCH_ROWS):
            part = distinct[first : first + BATCH_ROWS]
            self._batch(part, np.zeros(len(part)), nothing)
            here = np.flatnonzero((back >= first) & (back < first + len(part)))
            out[here] = self.cache.store[self.cache.slot[indices[here]]]
        return out

    def _batch(self, rows: Array, coef: Array, F: Array) -> None:
        slots, missing = self.cache.place(rows)
        self.evaluations += int(missing.sum()) * self.m
        try:
            self._fill_add(rows[missing], slots[missing], slots, coef, F)
        except BaseException:
            self.cache.forget()
            raise

    def _fill_add(self, missing: Array, missing_slots: Array, slots: Array, coef: Array, F: Array) -> None:
        raise NotImplementedError

    def widen(self) -> None:
        """Go over to double precision."""
        raise NotImplementedError

    def matrix(self, rows: Array, cols: Array | None = None) -> Array:
        """K of these rows and columns, or of the rows among themselves, in float64."""
        raise NotImplementedError

    def value_errors(self) -> tuple[ValueErrors | None, ValueErrors]:
        """Bounds of the errors of values in single precision, if there are such, and in double."""
        raise NotImplementedError


def padded(n: int) -> int:
    """The next multiple of eight."""
    return -(-n // 8) * 8
