"""Rows on disk: what :func:`pegasos.io.open_dataset` gives and every estimator takes in place of ``X`` and ``y``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from scipy import sparse

from pegasos.rows.views import in_memory, is_sparse, numbered, stored_arrays
from pegasos.util.arrays import CSR, Array, DType, Matrix, first_true

#: Entries of the pieces in which rows on disk are scored.
BLOCK_ENTRIES = 1 << 22


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Rows, targets and weights that stay on disk, as read-only memory maps.

    Made by :func:`pegasos.io.open_dataset`. Pages are read when touched and may be dropped by the system at any time,
    so the rows can be larger than the memory. The files must stay as they are while the dataset is in use: a fit or
    prediction whose rows have changed meanwhile raises ValueError, and files that are others than when they were opened
    are refused. (Other code that reads the arrays from a file which was cut short ends with a bus error, as any memory
    map does.)

    Parameters
    ----------
    X : csr_matrix or ndarray of shape (rows, columns)
        float32 or float64.
    targets : ndarray of shape (rows,), default=None
        The stored targets: numbers, or the positions of the labels in ``classes``.
    sample_weight : ndarray of shape (rows,), default=None
        Weights of the rows.
    classes : tuple of str, default=None
        The labels, where the targets are text.
    feature_names : tuple of str, default=None
        The columns' names, where known.
    folder : Path, default=None
        Where the rows lie.
    stamps : dict of str to tuple, default=None
        The files' identities, sizes and times when they were opened, to know them by.

    Examples
    --------
    >>> import tempfile
    >>> from pegasos import LinearSVC, io
    >>> place = tempfile.TemporaryDirectory()
    >>> data = io.write_dataset([[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"], place.name + "/small")
    >>> data
    Dataset(4 rows x 1 columns, dense float64, 2 classes, folder='...small')
    >>> str(LinearSVC().fit(data).predict([[3.0]])[0])
    'yes'
    >>> del data
    >>> place.cleanup()
    """

    X: Matrix
    targets: Array | None = None
    sample_weight: Array | None = None
    classes: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None
    folder: Path | None = None
    stamps: dict[str, tuple[int, ...]] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return int(self.X.shape[0]), int(self.X.shape[1])

    @property
    def dtype(self) -> DType:
        """The type of the entries: float32 or float64."""
        return self.X.dtype

    @property
    def nnz(self) -> int:
        """Stored entries."""
        return int(self.X.nnz if is_sparse(self.X) else self.X.size)

    @property
    def nbytes(self) -> int:
        """Bytes on disk that hold the rows."""
        return sum(array.nbytes for array in stored_arrays(self.X))

    @cached_property
    def y(self) -> Array | None:
        """The targets: a memory map of numbers, or an array of labels; None where there are none."""
        return self.targets if self.classes is None or self.targets is None else self._targets_of(None)

    def _targets_of(self, rows: Array | None) -> Array:
        """A copy of the targets, or labels, of some rows; None: of all."""
        assert self.targets is not None
        found = in_memory(self.targets, "y", rows)
        if self.classes is None:
            return found
        if (row := first_true((found < 0) | (found >= len(self.classes)))) is not None:
            number = numbered(0 if rows is None else rows, row)
            raise ValueError(
                f"{self.folder}: y.npy has {found[row]} at row {number}, but 'classes' has {len(self.classes)} labels; "
                "convert the source again"
            )
        labels: Array = np.asarray(self.classes)[found]
        return labels

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        layout = f"csr {self.dtype}, {self.nnz} entries" if is_sparse(self.X) else f"dense {self.dtype}"
        about = [f"{self.shape[0]} rows x {self.shape[1]} columns", layout]
        if self.targets is None:
            about.append("no targets")
        elif self.classes is not None:
            about.append(f"{len(self.classes)} classes")
        if self.sample_weight is not None:
            about.append("weighted")
        where = f", folder={str(self.folder)!r}" if self.folder is not None else ""
        return f"Dataset({', '.join(about)}{where})"

    def blocks(self, entries: int = BLOCK_ENTRIES) -> Iterator[tuple[int, Matrix]]:
        """Consecutive rows, about ``entries`` stored entries at a time, each with the number of its first row.

        Parameters
        ----------
        entries : int, default=4194304
            Entries of a block.

        Yields
        ------
        first : int
            The number of the block's first row.
        rows : csr_matrix or ndarray
            The rows, still memory-mapped.
        """
        self.check_files()
        m = len(self)
        step = max(1, int(entries * (m / max(self.nnz, 1))))
        for first in range(0, m, step):
            last = min(m, first + step)
            yield first, self._csr_rows(self.X, first, last) if is_sparse(self.X) else self.X[first:last]

    def check_files(self) -> None:
        """Refuse files that are no longer those that were opened.

        Raises
        ------
        ValueError
            Names the file that is missing, was replaced or was changed.
        """
        for name, stamp in (self.stamps or {}).items():
            assert self.folder is not None
            path = self.folder / name
            if not path.exists() or file_stamp(path) != stamp:
                raise ValueError(f"{path}: is not what it was when the dataset was opened; open the folder again")

    def _csr_rows(self, X: CSR, first: int, last: int) -> CSR:
        indptr = in_memory(X.indptr[first : last + 1], "X")
        begin, end = int(indptr[0]), int(indptr[-1])
        if not 0 <= begin <= end <= len(X.data):
            raise ValueError(f"{self.folder}: indptr.npy is wrong between rows {first} and {last - 1}")
        return mapped_csr(X.data[begin:end], X.indices[begin:end], indptr - indptr[0], (last - first, X.shape[1]))


def file_stamp(path: Path) -> tuple[int, ...]:
    """What changes when a file is replaced, resized or written to."""
    about = path.stat()
    return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns


def mapped_csr(values: Array, indices: Array, indptr: Array, shape: tuple[int, int]) -> CSR:
    """A CSR matrix of these very arrays: SciPy's constructor would copy indices it thinks too wide, and read them."""
    X: CSR = sparse.csr_matrix(shape, dtype=values.dtype)
    X.data, X.indices, X.indptr = values, indices, indptr
    return X
