"""Writing svmlight text that reads back to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from pegasos import _core
from pegasos.io.files import Target, writing
from pegasos.rows.views import canonical, csr_arrays, is_sparse
from pegasos.util.arrays import CSR, Array, first_not_finite
from pegasos.util.threads import thread_count

_MOST_ENTRIES = 1 << 20  # that are written at a time


def write_svmlight(
    X: Any,
    y: ArrayLike,
    target: Target,
    *,
    zero_based: bool = False,
    query_id: ArrayLike | None = None,
    comment: str | None = None,
    n_jobs: int | None = None,
) -> None:
    """Write rows and labels as svmlight text that :func:`read_svmlight` reads back to the bit.

    Numbers are written as short as they can be and still mean the same float32 or float64: read float32 back with
    ``dtype=np.float32``. The number of columns is not written; give it to the reader as ``n_features``.

    Parameters
    ----------
    X : sparse matrix or array-like of shape (n_samples, n_features)
        Finite numbers. Of a sparse matrix every stored entry is written, zeros too (columns named twice are summed
        first); of a dense one every entry but zeros.
    y : array-like of shape (n_samples,)
        Labels: finite numbers that float64 can hold.
    target : path, binary file or "-"
        Where to write; "-" is standard output. A path ending in ``.gz``, ``.bz2``, ``.xz`` or ``.zst`` is compressed.
        A file is replaced when all is written, and left as it was by an error.
    zero_based : bool, default=False
        Whether to count indices from 0 instead of 1.
    query_id : array-like of shape (n_samples,), default=None
        Whole numbers to write as ``qid``.
    comment : str, default=None
        Text to write at the top, each line behind a ``#``.
    n_jobs : int, default=None
        Threads; None is 1, -1 all processors this process may use. The bytes do not depend on it.

    Examples
    --------
    >>> import io
    >>> from pegasos.io import write_svmlight
    >>> file = io.BytesIO()
    >>> write_svmlight([[0.5, 0, 0.1], [0, 1e-20, 0]], [1, -1], file, comment="two rows")
    >>> print(file.getvalue().decode())
    # two rows
    1 1:0.5 3:0.1
    -1 2:1e-20
    """
    matrix, _, _ = canonical(_csr(X))
    assert is_sparse(matrix)
    data, indices, indptr = csr_arrays(matrix)
    rows = len(indptr) - 1
    label, query = _labels(y, rows), None if query_id is None else _queries(query_id, rows)
    head = "".join(f"# {line}\n" for line in comment.splitlines()) if comment else ""
    if "\0" in head:
        raise ValueError("comment holds a NUL character, which no reader takes for text")
    threads = thread_count(n_jobs)
    with writing(target) as file:
        file.write(head.encode())
        first = 0
        while first < rows:
            last = int(np.searchsorted(indptr, indptr[first] + np.int64(_MOST_ENTRIES), side="right")) - 1
            last = min(max(first + 1, last), first + _MOST_ENTRIES, rows)
            file.write(_core.svmlight_write(data, indices, indptr, label, query, zero_based, first, last, threads))
            first = last


def _csr(X: Any) -> CSR:
    """``X`` as CSR of float32 or float64, no bit lost."""
    X = X if sparse.issparse(X) else np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, got {X.ndim}")
    if isinstance(X, np.ndarray):
        X = _floats(X, "X")
    rows: CSR = sparse.csr_matrix(X)
    values = _floats(rows.data, "X")
    if values is not rows.data:
        rows = rows.copy()
        rows.data = values
    return rows


def _floats(values: Array, name: str) -> Array:
    """float32 and float64 as they are, whatever float64 can hold as float64."""
    if values.dtype in (np.float32, np.float64):
        return values
    if values.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers, got dtype {values.dtype}")
    floats = values.astype(np.float64)
    with np.errstate(invalid="ignore"):
        same = (floats.astype(values.dtype) == values) | (values != values)
    if not same.all():
        raise ValueError(f"{name} holds {values[~same][0]}, which float64 cannot hold")
    return floats


def _column(values: ArrayLike, name: str, rows: int) -> Array:
    array = np.asarray(values)
    if array.shape != (rows,):
        raise ValueError(f"{name} has shape {array.shape}, but X has {rows} rows")
    return array


def _labels(y: ArrayLike, rows: int) -> Array:
    label = np.ascontiguousarray(_floats(_column(y, "y", rows), "y"), dtype=np.float64)
    if (row := first_not_finite(label)) is not None:
        raise ValueError(f"y is not finite at row {row}")
    return label


def _queries(query_id: ArrayLike, rows: int) -> Array:
    array = _column(query_id, "query_id", rows)
    if array.dtype.kind not in "iu" or (array.dtype == np.uint64 and (array > np.uint64(2**63 - 1)).any()):
        raise ValueError(f"query_id must hold whole numbers that fit int64, got dtype {array.dtype}")
    return np.ascontiguousarray(array, dtype=np.int64)
