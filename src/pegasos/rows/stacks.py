"""Rows of numbers for each token, in one matrix for each sequence or in one for all, to the entries that are not 0."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import sparse

from pegasos import _core
from pegasos.util.arrays import Array, first_not_finite, is_frame

#: Numbers of columns are int32.
MAX_COLUMNS = 2**31 - 2


def is_rows(A: Any, *, any_shape: bool = False) -> bool:
    """Whether an object is rows of numbers: a sparse matrix, a data frame, or a 2-d array (or one of any shape)."""
    if isinstance(A, np.ndarray):
        return A.dtype.kind in "biufc" and (any_shape or A.ndim == 2)
    return bool(sparse.issparse(A)) or is_frame(A)


def is_nothing(A: Any) -> bool:
    """Whether an object is a sequence of no tokens, of whatever kind."""
    return (isinstance(A, list | tuple) and not A) or (isinstance(A, np.ndarray) and A.shape == (0,))


def from_zero(ends: Array) -> Array:
    """0, and then the ends: where stretches begin, and where the last one ends."""
    return np.concatenate([np.zeros(1, dtype=np.int64), ends.astype(np.int64, copy=False)])


def place(begins: Array, token: int) -> str:
    """Where a token is, in words; sequence i has the tokens ``begins[i]`` … ``begins[i + 1] - 1``."""
    k = int(np.searchsorted(begins, token, side="right")) - 1
    return f"sequence {k}, position {token - int(begins[k])}"


class Columns:
    """The columns that all matrices should have: those of an earlier fit, or else those of the first matrix.

    Names are those of data frames; the columns of arrays are called "0", "1", …
    """

    def __init__(self, fitted: _core.Vocabulary | None = None) -> None:
        self._fitted = fitted
        self._names: list[str] = []
        self.width = None if fitted is None else len(fitted)

    def names(self) -> list[str]:
        """The names of all columns."""
        if self._fitted is not None and not self._names:
            self._names = self._fitted.names()
        return self._names

    def add(self, A: Any, what: str) -> None:
        """Note the columns of the first matrix; refuse one that has others."""
        width, names = int(A.shape[1]), [str(name) for name in A.columns] if is_frame(A) else None
        source = "those before have" if self._fitted is None else "there were in fit:"
        if self.width is None:
            if not 0 < width <= MAX_COLUMNS:
                raise ValueError(f"{what} has {width} columns, but should have 1 … {MAX_COLUMNS}")
            self.width, self._names = width, names or [str(j) for j in range(width)]
        elif width != self.width:
            raise ValueError(f"{what} has {width} columns, not as many as {source} {self.width}")
        elif names is not None:
            for j, (name, wanted) in enumerate(zip(names, self.names(), strict=True)):
                if wanted not in (name, str(j)):
                    raise ValueError(f"column {j} of {what} is {name!r}, not as {source} {wanted!r}")

    def name(self, j: int) -> str:
        """A column in words."""
        name = self.names()[j]
        return f"column {j}" if name == str(j) else f"column {name!r}"


def stacked(
    matrices: Iterable[Any], begins: Array | None, columns: Columns
) -> tuple[Array, Array, Array, Array | None]:
    """The rows of all matrices: where sequences begin, where rows begin, columns (int32) and values of the entries.

    Values are None if all are 1; there is a matrix for each sequence unless it is said where these begin. ValueError
    names the sequence and position of what is not finite, of another width, or not in order.
    """
    data: list[Array] = [np.empty(0)]
    indices: list[Array] = [np.empty(0, dtype=np.int32)]
    counts: list[Array] = [np.empty(0, dtype=np.int64)]
    for k, A in enumerate(matrices):
        mine = _entries(A, f"sequence {k}" if begins is None else "X", columns)
        for parts, part in zip((data, indices, counts), mine, strict=True):
            parts.append(part)
    rows = [len(part) for part in counts[1:]]
    if begins is None:
        begins = from_zero(np.cumsum(rows))
    elif begins[-1] != sum(rows):
        raise ValueError(f"lengths add up to {begins[-1]} tokens, but X has {sum(rows)} rows")
    indptr = from_zero(np.cumsum(np.concatenate(counts)))
    values, ids = np.concatenate(data, dtype=np.float64), np.concatenate(indices).astype(np.int32)
    if (bad := first_not_finite(values)) is not None:
        where = place(begins, int(np.searchsorted(indptr, bad, side="right")) - 1)
        what = "NaN" if np.isnan(values[bad]) else "infinity"
        raise ValueError(f"{where}: {columns.name(int(ids[bad]))} is {what}")
    kept = values != 0
    if not kept.all():
        indptr, ids, values = from_zero(np.cumsum(kept))[indptr], ids[kept], values[kept]
    return begins, indptr, ids, None if (values == 1).all() else values


def _entries(A: Any, what: str, columns: Columns) -> tuple[Array, Array, Array]:
    """Values and columns of the entries of a matrix, and how many each row has."""
    if is_nothing(A):
        return np.empty(0), np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64)
    if not is_rows(A, any_shape=True):
        raise TypeError(f"{what} is of type {type(A).__name__}, but should be an array of numbers like the others")
    if len(A.shape) != 2:
        raise ValueError(f"{what} has shape {A.shape}, but should have two dimensions, a row for each token")
    columns.add(A, what)
    data, indices, counts = _sparse_entries(A, what) if sparse.issparse(A) else _dense_entries(A, what)
    if data.dtype.kind not in "biuf":
        raise TypeError(f"{what} has entries of type {data.dtype.name}, but should have real numbers")
    return data, indices, counts


def _sparse_entries(A: Any, what: str) -> tuple[Array, Array, Array]:
    if A.format in ("csc", "bsr"):
        try:
            A.check_format(full_check=True)  # conversions trust indices
        except ValueError as error:
            raise ValueError(f"{what} is not a valid sparse matrix: {error}") from None
    A = A.tocsr()
    entries, counts = int(A.indptr[-1]), np.diff(A.indptr)
    data, indices = A.data[:entries], A.indices[:entries]
    good = len(counts) == A.shape[0] and A.indptr[0] == 0 and (counts >= 0).all()
    good = good and len(data) == len(indices) == entries
    if not good or (entries and not 0 <= indices.min() <= indices.max() < A.shape[1]):
        raise ValueError(f"{what} is not a valid sparse matrix: its indices or row pointers are wrong")
    return data, indices, counts


def _dense_entries(A: Any, what: str) -> tuple[Array, Array, Array]:
    try:
        A = np.asarray(A, dtype=np.float64 if is_frame(A) else None)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} is not all numbers ({error}); pass text as dicts, X.to_dict('records')") from None
    row, column = A.nonzero()
    return A[row, column], column, np.bincount(row, minlength=len(A))
