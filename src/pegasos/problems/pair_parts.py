"""The pairs of several classes as parts of a problem; a part is made when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import overload

import numpy as np

from pegasos.kernels.pairs import class_starts, pair_count
from pegasos.losses import Loss
from pegasos.problems.part import Part
from pegasos.rows.views import Array

#: Pairs in a stretch, about: some arrays exist for the pairs of one stretch only, to save memory.
STRETCH_PAIRS = 1 << 13


class PairParts(Sequence[Part]):
    """A part for each pair of classes, the first of which is positive.

    There can be half a million of them, of a few rows each: all at once would take more memory than everything else.
    """

    def __init__(self, codes: Array, classes: int, weight: Array, loss: Loss, C: float) -> None:
        self.codes, self.classes, self.weight, self.loss, self.C = codes, classes, weight, loss, C
        self.order = np.argsort(codes, kind="stable").astype(np.int64)
        self.starts = class_starts(np.bincount(codes, minlength=classes))

    @cached_property
    def sorted_weight(self) -> Array:
        """The weights of the rows, class by class."""
        return np.ascontiguousarray(self.weight[self.order])

    @cached_property
    def sizes(self) -> Array:
        """How many rows each class has."""
        return np.diff(self.starts)

    def rows_of(self, i: int) -> Array:
        """The numbers of a class's rows."""
        return self.order[self.starts[i] : self.starts[i + 1]]

    def pair(self, p: int) -> tuple[int, int]:
        """The two classes of part p."""
        first = min(int(self.begins.searchsorted(p, side="right")) - 1, self.classes - 2)
        return first, p - int(self.begins[first]) + first + 1

    @cached_property
    def begins(self) -> Array:
        """The number of each class's first pair with a later one."""
        i = np.arange(self.classes)
        return np.asarray(i * (2 * self.classes - i - 1) // 2)

    def stretches(self) -> Iterator[tuple[int, int]]:
        """The numbers of all parts in stretches, each of all the pairs of some first classes."""
        begin = 0
        while begin < len(self):
            end = int(self.begins[self.begins.searchsorted(min(begin + STRETCH_PAIRS, len(self)))])
            yield begin, end
            begin = end

    def rows(self, p: int) -> Array:
        """The numbers of the rows of part p, in increasing order."""
        i, j = self.pair(p)
        return np.sort(np.concatenate([self.rows_of(i), self.rows_of(j)]))

    def of_pair(self, table: Array, p: int) -> tuple[Array, Array]:
        """Views of what a table, laid out as ``kernels/pairs.py`` says, has for the two classes of part p."""
        i, j = self.pair(p)
        of_i, of_j = (slice(self.starts[c], self.starts[c + 1]) for c in (i, j))
        return table[j - 1, of_i], table[i, of_j]

    def in_order(self, table: Array) -> Array:
        """The numbers of a table, those of one part after the other."""
        places = (np.argsort(np.concatenate([self.rows_of(c) for c in self.pair(p)])) for p in range(len(self)))
        return np.concatenate([np.concatenate(self.of_pair(table, p))[at] for p, at in enumerate(places)])

    def __len__(self) -> int:
        return pair_count(self.classes)

    @overload
    def __getitem__(self, p: int) -> Part: ...
    @overload
    def __getitem__(self, p: slice) -> list[Part]: ...
    def __getitem__(self, p: int | slice) -> Part | list[Part]:
        if isinstance(p, slice):
            return [self[q] for q in range(*p.indices(len(self)))]
        if not 0 <= p < len(self):
            raise IndexError(p)
        index = self.rows(p)
        y = np.where(self.codes[index] == self.pair(p)[0], 1.0, -1.0)
        return Part(index, y, self.weight[index], self.loss, self.C)


class PairIndices(Sequence[Array]):
    """The rows of each part."""

    def __init__(self, parts: PairParts) -> None:
        self.parts = parts

    def __len__(self) -> int:
        return len(self.parts)

    @overload
    def __getitem__(self, p: int) -> Array: ...
    @overload
    def __getitem__(self, p: slice) -> list[Array]: ...
    def __getitem__(self, p: int | slice) -> Array | list[Array]:
        if isinstance(p, slice):
            return [self[q] for q in range(*p.indices(len(self)))]
        return self.parts.rows(p)
