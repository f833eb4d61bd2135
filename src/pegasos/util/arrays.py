"""Types of arrays and matrices, and questions about them that many ask."""

from __future__ import annotations

from typing import Any, Protocol, Self, TypeAlias

import numpy as np
import numpy.typing as npt

#: A type of entries, and an array of any shape and type.
DType: TypeAlias = np.dtype[Any]
Array: TypeAlias = np.ndarray[Any, DType]


class CSR(Protocol):
    """What is used of SciPy's CSR matrices, which have no types."""

    data: Array
    indices: Array
    indptr: Array
    has_canonical_format: bool

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def dtype(self) -> DType: ...
    @property
    def nnz(self) -> int: ...
    def __getitem__(self, rows: Any, /) -> Any: ...
    def astype(self, dtype: npt.DTypeLike, *, copy: bool = True) -> Self: ...
    def copy(self) -> Self: ...
    def toarray(self) -> Array: ...
    def tocsr(self) -> CSR: ...
    def sum_duplicates(self) -> None: ...
    def multiply(self, other: CSR, /) -> CSR: ...
    def sum(self, axis: int) -> Array: ...
    def __abs__(self) -> CSR: ...
    def max(self) -> float: ...
    def eliminate_zeros(self) -> None: ...
    def sort_indices(self) -> None: ...


#: Rows: a 2-D array or a CSR matrix.
Matrix: TypeAlias = Array | CSR


def first_true(mask: Array) -> int | None:
    """The position of the first entry that is true; None if there is none."""
    return int(mask.argmax()) if mask.any() else None


def first_not_finite(values: Array) -> int | None:
    """The position of the first NaN or infinity; None if there is none."""
    finite = np.isfinite(values)
    return None if finite.all() else int(finite.argmin())


def is_frame(X: object) -> bool:
    """Whether an object is a data frame: rows and named columns, no array."""
    return not isinstance(X, np.ndarray) and hasattr(X, "columns") and hasattr(X, "shape")
