"""Dual points of structured problems: planes that the oracle has found, and how they are mixed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
from scipy import sparse

from pegasos.problems.oracle import Plane, rising
from pegasos.util.arrays import CSR, Array
from pegasos.util.fields import MAX_FINITE, saved

#: The row of a plane that is the mean of planes of all rows, one for each, weighted as the rows are.
ALL_ROWS = -1

#: Whole numbers up to this are exact in float64.
MAX_EXACT = 2**53


class Planes(NamedTuple):
    """Planes, the row of each, and its share α.

    The shares of a row's planes, together with those of planes of ``ALL_ROWS``, sum to at most 1; what is missing
    belongs to the true labelling, whose plane is ψ = 0, Δ = 0.
    """

    row: Array
    psi: CSR
    loss: Array
    alpha: Array

    @classmethod
    def of(cls, rows: Sequence[int], planes: Iterable[Plane], alpha: Sequence[float] | Array, size: int) -> Self:
        """From planes one by one."""
        begin, columns, entries, loss = stacked(planes)
        psi = sparse.csr_array((entries, columns, begin), shape=(len(loss), size))
        return cls(np.asarray(rows, dtype=np.int64), psi, loss, np.asarray(alpha, dtype=np.float64))

    def plane(self, k: int) -> Plane:
        """The k-th."""
        here = slice(self.psi.indptr[k], self.psi.indptr[k + 1])
        return Plane(self.psi.indices[here].astype(np.int64), self.psi.data[here], float(self.loss[k]))

    def feasible(self, n_rows: int) -> Array:
        """The shares, none negative, scaled so that those of no row sum to more than 1."""
        alpha = np.where(np.isfinite(self.alpha) & (self.alpha > 0), self.alpha, 0.0)
        of_all = self.row == ALL_ROWS
        alpha[of_all] /= max(1.0, float(alpha[of_all].sum()))
        room = max(0.0, 1.0 - float(alpha[of_all].sum()))
        sums = np.bincount(self.row[~of_all], weights=alpha[~of_all], minlength=n_rows)
        factor = np.divide(room, sums, out=np.ones(n_rows), where=sums > room)
        alpha[~of_all] *= factor[self.row[~of_all]]
        return alpha


def stacked(planes: Iterable[Plane]) -> tuple[Array, Array, Array, Array]:
    """Row pointers, columns, entries and losses of planes."""
    planes = list(planes)
    begin = np.concatenate([[0], np.cumsum([len(plane.columns) for plane in planes], dtype=np.int64)])
    columns = np.concatenate([np.zeros(0, dtype=np.int64), *(plane.columns for plane in planes)])
    entries = np.concatenate([np.zeros(0), *(plane.values for plane in planes)])
    return begin, columns, entries, np.array([plane.loss for plane in planes], dtype=np.float64)


def plane_arrays(planes: Iterable[Plane]) -> dict[str, Array]:
    """Planes as named arrays of float64, for a saved state."""
    names = ("begin", "columns", "entries", "loss")
    return {name: array.astype(np.float64) for name, array in zip(names, stacked(planes), strict=True)}


def planes_of(arrays: dict[str, Array], size: int) -> list[Plane]:
    """The planes that ``plane_arrays`` wrote; ValueError if they cannot be any of so many weights."""
    loss = saved(arrays, "loss", (None,), low=0, high=MAX_FINITE)
    begin = saved(arrays, "begin", (len(loss) + 1,), low=0, high=MAX_EXACT, whole=True).astype(np.int64)
    columns = saved(arrays, "columns", (None,), low=0, high=size - 1, whole=True).astype(np.int64)
    entries = saved(arrays, "entries", (len(columns),), low=-MAX_FINITE, high=MAX_FINITE)
    if begin[0] != 0 or begin[-1] != len(columns) or bool(np.any(np.diff(begin) < 0)):
        raise ValueError("state: the planes do not fit together")
    if not rising(columns, begin):
        raise ValueError("state: a plane's columns are not in order")
    spans = [slice(*ends) for ends in pairwise(begin.tolist())]
    return [Plane(columns[span], entries[span], d) for span, d in zip(spans, loss.tolist(), strict=True)]
