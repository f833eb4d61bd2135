"""Kernel values of pairs of classes in double precision, laid out as the core wants them, pair after pair.

The values of one class with many others are computed together; for half a million pairs of a few rows each, Python's
work is done once for a class, not for a pair.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from pegasos import _core
from pegasos.kernels.cache import padded
from pegasos.kernels.functions import Kernel
from pegasos.kernels.gram import NativeRows, PartRows
from pegasos.problems.pair_parts import PairParts
from pegasos.problems.part import check_values
from pegasos.rows.views import Array

#: Rows of a pair up to which it is put together from kernel values that are computed for many pairs.
MAX_JOINT_ROWS = 256

#: Kernel values of one class and many others that are computed at a time.
STRIP_VALUES = 1 << 17


class DoubleValues:
    """Kernel values of the rows of a problem in double precision, refused where they are not finite."""

    def __init__(self, kernel: Kernel, rows: PartRows) -> None:
        self.kernel, self.rows = kernel, rows.of_all()
        if self.rows.single:
            self.rows.widen()

    def block(self, rows: Array, cols: Array, out: Array) -> Array:
        """K of these rows and columns, in ``out``, padded to a multiple of eight columns."""
        values = self.rows.block(rows, cols, out)
        if self._overflows:
            check_values(values[:, : len(cols)], rows, cols)
        return values

    @cached_property
    def _overflows(self) -> bool:
        """Whether there can be values that are not finite."""
        if not isinstance(self.rows, NativeRows):
            return True
        return not self.kernel.bounded(float(self.rows.double.norms().max(initial=0.0)))


class PairVisits:
    """Takes the core from pair to pair; see ``whole_smo.hpp`` for what it does there."""

    def __init__(self, parts: PairParts, values: DoubleValues) -> None:
        self.parts, self.values = parts, values
        # The values of each class's rows among themselves are needed for all of its pairs.
        self._offsets = np.concatenate(
            [[0], np.cumsum([n * padded(n) if n < MAX_JOINT_ROWS else 0 for n in parts.sizes])]
        )
        self._own = np.empty(self._offsets[-1])
        self._has_own = np.zeros(parts.classes, dtype=bool)
        self._strip: tuple[int, int, int, Array] | None = None
        self._room = np.empty(0)

    def visit(self, core: _core.WholeSMO, alpha: Array, k: int, budget: int) -> tuple[int, int]:
        """Pair k, and some that follow, with dual variables in the table ``alpha``; the last pair, and how it ended."""
        parts = self.parts
        i, j = parts.pair(k)
        table = parts.starts, parts.sorted_weight, alpha
        if parts.sizes[i] + parts.sizes[j] > MAX_JOINT_ROWS:
            return k, core.visit_pair(*table, i, j, self.matrix(i, j))
        first, last, strip = self._strip_for(i, j)
        own = self._own_values(i)
        for other in np.flatnonzero(~self._has_own[first:last]):
            self._own_values(first + int(other))
        offsets = self._offsets[first:last]
        after, how = core.visit_pairs(*table, i, first, last, own, strip, self._own, offsets, budget)
        return k + after - 1 - j, how

    def matrix(self, i: int, j: int) -> Array:
        """Of the rows of two classes, one after the other; the memory is used again by the next call."""
        rows = np.concatenate([self.parts.rows_of(i), self.parts.rows_of(j)])
        shape = len(rows), padded(len(rows))
        if self._room.size < shape[0] * shape[1]:
            self._room = np.empty(shape[0] * shape[1])
        return self.values.block(rows, rows, self._room[: shape[0] * shape[1]].reshape(shape))

    def _own_values(self, i: int) -> Array:
        """The kernel values of a class's rows among themselves, computed once."""
        rows = self.parts.rows_of(i)
        values = self._own[self._offsets[i] : self._offsets[i + 1]].reshape(len(rows), -1)
        if not self._has_own[i]:
            self.values.block(rows, rows, values)
            self._has_own[i] = True
        return values

    def _strip_for(self, i: int, j: int) -> tuple[int, int, Array]:
        """The kernel values of class i with class j and some that follow; the last such strip is kept."""
        if self._strip is None or self._strip[0] != i or not self._strip[1] <= j < self._strip[2]:
            parts = self.parts
            n, sizes = int(parts.sizes[i]), parts.sizes[j:]
            room = (np.cumsum(sizes) <= max(STRIP_VALUES // n, sizes[0])) & (sizes + n <= MAX_JOINT_ROWS)
            last = j + (len(room) if room.all() else int(np.argmin(room)))
            rows, cols = parts.rows_of(i), parts.order[parts.starts[j] : parts.starts[last]]
            values = self.values.block(rows, cols, np.empty((len(rows), padded(len(cols)))))
            self._strip = i, j, last, values
        return self._strip[1:]
