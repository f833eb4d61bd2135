"""Input arrays to validated, borrowed rows. Nothing is copied that the core can read where it lies.

Native, used in place: C-ordered float32 or float64 arrays (row slices and read-only memory maps included) and CSR
matrices of float32 or float64 with int32 or int64 indices. Everything else is converted once.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from pegasos import _core
from pegasos.util.arrays import CSR, Matrix, first_not_finite, first_true
from pegasos.util.arrays import Array as Array

if TYPE_CHECKING:
    from typing_extensions import TypeIs

#: Columns from which BLAS is faster than the core for the scores of several outputs.
MIN_BLAS_COLUMNS = 1024


@dataclass(frozen=True)
class Examples:
    """Checked rows: the array they live in, the core's view of it, ‖x_i‖², and whether they are a dataset on disk."""

    array: Matrix
    rows: _core.Rows
    squared_norms: Array
    on_disk: bool = False

    @property
    def m(self) -> int:
        """Rows."""
        return self.rows.rows

    @property
    def n(self) -> int:
        """Columns."""
        return self.rows.cols

    @property
    def nnz(self) -> int:
        """Stored entries."""
        return self.rows.nnz

    @property
    def is_sparse(self) -> bool:
        """Whether the rows are CSR."""
        return is_sparse(self.array)

    @property
    def arrays(self) -> tuple[Array, ...]:
        """What the rows are stored in."""
        return stored_arrays(self.array)

    def verify(self, threads: int = 1) -> None:
        """Refuse rows that have changed since they were checked: a pass at the speed of memory.

        The passes of certificates do it by the way.
        """
        self.rows.verify(threads)


def is_sparse(X: object) -> TypeIs[CSR]:
    """Whether rows are sparse; if they have been validated, they then are CSR."""
    return bool(sparse.issparse(X))


def stored_arrays(X: Matrix) -> tuple[Array, ...]:
    """The arrays of a dense or CSR matrix."""
    return (X.data, X.indices, X.indptr) if is_sparse(X) else (X,)


def examples(
    X: Matrix,
    *,
    threads: int = 1,
    name: str = "X",
    first: int | Array = 0,
    on_disk: bool = False,
    private: bool = False,
) -> Examples:
    """Check ``X`` (2-D array or CSR of floats) and borrow its rows; ``first``: the number of its first row, or of each.

    ``private``: copy sparse rows before, for what goes on to use them with SciPy, which trusts indices.
    Raises ValueError naming the row and column of the first NaN or infinity, of an index outside the matrix, or of a
    broken CSR structure. Rows that name a column twice are summed, in a copy.
    """
    if private and is_sparse(X):
        X = _copied(X, name)
    X, rows, norms = canonical(X, threads=threads, name=name, first=first)
    if (row := first_not_finite(norms)) is not None:
        number = numbered(first, row)
        raise ValueError(f"{name} row {number} is so large that its squared norm overflows; scale the features")
    return Examples(X, rows, norms, on_disk)


def numbered(first: int | Array, row: int) -> int:
    """What the user calls row ``row`` of rows whose first has the number ``first``, or which have these numbers."""
    return int(first[row]) if isinstance(first, np.ndarray) else first + row


def canonical(
    X: Matrix, *, threads: int = 1, name: str = "X", first: int | Array = 0
) -> tuple[Matrix, _core.Rows, Array]:
    """``X`` with its columns in order and none named twice (a copy, if need be), its rows, and ‖x_i‖².

    Refuses what :func:`examples` refuses, save that ‖x_i‖² may overflow.
    """
    rows = view(X)
    found = rows.inspect(threads)
    _refuse(X, found, name, first)
    if found.repeated and is_sparse(X):
        X = _copied(X, name)
        _refuse(X, view(X).inspect(threads), name, first)  # SciPy trusts row pointers, and this copy is ours alone
        X.sum_duplicates()
        rows = view(X)
        found = rows.inspect(threads)
        _refuse(X, found, name, first)  # a sum of finite entries may overflow
    return X, rows, found.squared_norms


def scores(X: Matrix, W: Array, b: Array, *, threads: int = 1, first: int = 0) -> Array:
    """X Wᵀ + b of rows that are checked by the way; refuses what :func:`examples` refuses."""
    good = True
    if _suits_blas(X, W):
        with np.errstate(all="ignore"):
            Z: Array = np.asarray(X @ W.T + b)
    else:
        Z, good = view(X).scores_unchecked(W, b, threads)
    # Whatever is not finite in a row leaves its scores not finite, too; so can numbers that are only large.
    if not good or not np.isfinite(Z).all():
        _refuse(X, view(X).inspect(threads), "X", first)
    return Z


def _suits_blas(X: Matrix, W: Array) -> TypeGuard[Array]:
    """Whether a product of matrices is faster: columns that lie together, or long rows for several outputs."""
    if is_sparse(X):
        return False
    by_columns = X.shape[1] > 1 and X.strides[1] != X.itemsize
    return by_columns or (len(W) > 1 and X.shape[1] >= MIN_BLAS_COLUMNS and X.dtype == W.dtype)


def view(X: Matrix) -> _core.Rows:
    """The core's view of a float array or CSR matrix, unchecked."""
    if is_sparse(X):
        arrays = csr_arrays(X)
        return _core.Rows.csr(*arrays, X.shape[1], any(map(is_mapped, arrays)))
    if X.shape[1] > 1 and X.strides[1] != X.itemsize:
        X = np.ascontiguousarray(X)
    return _core.Rows.dense(X, is_mapped(X))


def is_mapped(array: object) -> bool:
    """Whether an array lies in a mapped file."""
    while isinstance(array, np.ndarray):
        array = array.base
    if isinstance(array, memoryview):
        array = array.obj
    return isinstance(array, mmap.mmap)


@contextmanager
def unbroken(name: str, *arrays: Array) -> Iterator[None]:
    """While inside, arrays that may lie in mapped files can be read; ValueError if a file is cut short meanwhile."""
    guards = [_core.MappedGuard(array) for array in arrays if is_mapped(array)]
    yield
    if any(guard.torn for guard in guards):
        raise ValueError(f"the file that {name} is mapped from was cut short while it was read")


def in_memory(array: Array, name: str, chosen: Array | None = None) -> Array:
    """A private copy of an array that may lie in a mapped file, or of the entries or rows ``chosen`` from it."""
    with unbroken(name, array):
        return np.array(array) if chosen is None else np.asarray(array)[chosen]


def _copied(X: CSR, name: str) -> CSR:
    """A CSR matrix of copied arrays, which need not fit together yet."""
    kind: Any = type(X)
    copy: CSR = kind(X.shape, dtype=X.dtype)
    copy.data, copy.indices, copy.indptr = (in_memory(array, name) for array in (X.data, X.indices, X.indptr))
    return copy


def csr_arrays(X: CSR) -> tuple[Array, Array, Array]:
    """Values, column indices and row pointers of a CSR matrix as the core takes them: contiguous, of one index type."""
    indices, indptr = X.indices, X.indptr
    if indices.dtype != indptr.dtype:  # SciPy allows it, if rarely; the wider one serves both
        wide = np.promote_types(indices.dtype, indptr.dtype)
        indices, indptr = indices.astype(wide, copy=False), indptr.astype(wide, copy=False)
    if len(indptr) != X.shape[0] + 1:
        raise ValueError(f"indptr has {len(indptr)} entries for {X.shape[0]} rows")
    return np.ascontiguousarray(X.data), np.ascontiguousarray(indices), np.ascontiguousarray(indptr)


def _refuse(X: Matrix, found: _core.Inspection, name: str, first: int | Array) -> None:
    if (row := found.bad_pointer_row) >= 0:
        raise ValueError(f"{name} is not a valid CSR matrix: indptr is wrong at row {numbered(first, row)}")
    if (row := found.bad_index_row) >= 0:
        raise ValueError(
            f"{name} is not a valid CSR matrix: row {numbered(first, row)} has column index {found.bad_index}, "
            f"outside 0 … {X.shape[1] - 1}"
        )
    if (row := found.bad_value_row) >= 0:
        col, number = found.bad_value_col, numbered(first, row)
        what = "NaN" if np.isnan(X[row, col]) else "infinity"
        raise ValueError(f"Input {name} contains {what} at row {number}, column {col}. Impute or drop it first.")


def check_weights(W: Array, b: Array) -> None:
    """Refuse what a solver made of numbers too large or too small for it."""
    if not (np.isfinite(W).all() and np.isfinite(b).all()):
        raise ValueError("the weights left the range of floating-point numbers; scale the features and targets first")


def encode_labels(y: Array) -> tuple[Array, Array]:
    """Sorted classes and the class index (int32) of every label; fast for two numeric classes."""
    if y.dtype.kind in "iufb" and len(y):
        low, high = y.min(), y.max()
        upper = y == high
        if low != high and bool(np.all(upper | (y == low))):
            return np.array([low, high], dtype=y.dtype), upper.astype(np.int32)
    classes, codes = np.unique(y, return_inverse=True)
    return classes, codes.astype(np.int32)


def row_weights(sample_weight: ArrayLike | None, factors: Array | None, m: int) -> Array | None:
    """The weight of each row, float64, or None for all ones; ``factors`` (class weights) multiply."""
    if sample_weight is None:
        weight = None
    elif np.isscalar(sample_weight):
        weight = np.full(m, float(sample_weight))  # type: ignore[arg-type]
    else:
        weight = np.array(sample_weight, dtype=np.float64)  # a copy: what a callback does to it must not matter
        if weight.shape != (m,):
            raise ValueError(f"sample_weight has shape {weight.shape}, but X has {m} rows")
    if factors is not None:
        weight = factors if weight is None else weight * factors
    if weight is None:
        return None
    if (row := first_not_finite(weight)) is not None:
        raise ValueError(f"sample_weight is not finite at row {row}")
    if (row := first_true(weight < 0)) is not None:
        raise ValueError(f"sample_weight is negative at row {row}: {weight[row]}")
    if not weight.any():
        raise ValueError("sample_weight is zero for every row")
    return None if (weight == 1).all() else weight
