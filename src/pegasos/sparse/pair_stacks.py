"""The small pairs of many classes, compressed together: their kernel values in stacks of pairs with as many rows.

Python for each of half a million pairs would take longer than all else; here it is done once for a class and a size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

from pegasos.kernels.gram import WholeRows
from pegasos.problems.pair_parts import PairParts
from pegasos.rows.views import Array

#: Rows of a pair up to which it is put into a stack.
MAX_STACKED_ROWS = 128

#: Kernel values of a stack, and of all stacks that wait for more pairs.
STACK_VALUES, MAX_WAITING_VALUES = 1 << 17, 1 << 20


def stacked(parts: PairParts) -> Array:
    """For each pair whether it is small enough for a stack."""
    sizes = parts.sizes
    return np.concatenate([sizes[i] + sizes[i + 1 :] <= MAX_STACKED_ROWS for i in range(parts.classes - 1)])


@dataclass(frozen=True)
class Stack:
    """Pairs of classes ``first`` and ``second`` with n rows each.

    ``index`` are the numbers of their rows, pairs × n, increasing; ``K`` the kernel values of those, pairs × n × n.
    """

    first: Array
    second: Array
    index: Array
    K: Array

    def pairs(self, classes: int) -> Array:
        """The numbers of the pairs."""
        return np.asarray(self.first * (2 * classes - self.first - 1) // 2 + self.second - self.first - 1)

    def lines(self, codes: Array) -> Array:
        """Where in a table (``kernels/pairs.py``) rows of these classes, a line of them for each pair, stand."""
        return np.where(codes == self.first[:, None], self.second[:, None] - 1, self.first[:, None])


def stacks(parts: PairParts, rows: WholeRows) -> Iterator[Stack]:
    """All small pairs; ``rows`` provides kernel values."""
    waiting: dict[int, list[Stack]] = {}
    values: dict[int, int] = {}
    for piece in _pieces(parts, rows):
        n = piece.index.shape[1]
        waiting.setdefault(n, []).append(piece)
        values[n] = values.get(n, 0) + piece.K.size
        if values[n] < STACK_VALUES and sum(values.values()) >= MAX_WAITING_VALUES:
            n = max(values, key=lambda size: values[size])
        if values[n] >= STACK_VALUES or sum(values.values()) >= MAX_WAITING_VALUES:
            del values[n]
            yield _joined(waiting.pop(n))
    for pieces in waiting.values():
        yield _joined(pieces)


def _joined(pieces: list[Stack]) -> Stack:
    return Stack(*(np.concatenate([getattr(piece, f.name) for piece in pieces]) for f in fields(Stack)))


def _pieces(parts: PairParts, rows: WholeRows) -> Iterator[Stack]:
    """Pairs of one class with others that have the same size."""
    sizes, starts = parts.sizes, parts.starts
    place = np.zeros(len(sizes), dtype=np.int64)  # of each class among those of its size
    for size in np.unique(sizes):
        place[sizes == size] = np.arange(np.count_nonzero(sizes == size))
    own: dict[int, Array] = {}

    def within(size: int) -> Array:
        """The kernel values of the rows of each class of this size among themselves."""
        if size not in own:
            each = map(parts.rows_of, np.flatnonzero(sizes == size).tolist())
            own[size] = np.stack([_block(rows, inside, inside) for inside in each])
        return own[size]

    for i in range(parts.classes - 1):
        n = int(sizes[i])
        small = np.arange(i + 1, parts.classes)[n + sizes[i + 1 :] <= MAX_STACKED_ROWS]
        for size in np.unique(sizes[small]).tolist():
            same, most = small[sizes[small] == size], max(1, STACK_VALUES // (n + size) ** 2)
            for others in np.split(same, range(most, len(same), most)):
                there = parts.order[starts[others][:, None] + np.arange(size)]
                across = _block(rows, parts.rows_of(i), there.ravel()).reshape(n, len(others), size)
                K = np.empty((len(others), n + size, n + size))
                K[:, :n, :n] = within(n)[place[i]]
                K[:, :n, n:] = across.transpose(1, 0, 2)
                K[:, n:, :n] = across.transpose(1, 2, 0)
                K[:, n:, n:] = within(size)[place[others]]
                index = np.concatenate([np.broadcast_to(parts.rows_of(i), (len(others), n)), there], axis=1)
                at = np.argsort(index, axis=1)
                K = np.take_along_axis(np.take_along_axis(K, at[:, :, None], axis=1), at[:, None, :], axis=2)
                yield Stack(np.full(len(others), i), others, np.take_along_axis(index, at, axis=1), K)


def _block(rows: WholeRows, some: Array, others: Array) -> Array:
    """Kernel values without padding, in double precision."""
    return np.asarray(rows.block(some, others)[:, : len(others)], dtype=np.float64)
