"""Writing a dataset's folder piece by piece: all of it, or nothing."""

from __future__ import annotations

import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

from pegasos.io.data.dataset import is_dataset_folder, write_meta
from pegasos.io.data.npy import NpyWriter
from pegasos.rows.views import is_sparse
from pegasos.util import atomic
from pegasos.util.arrays import CSR, Array, DType, Matrix, first_not_finite, first_true

#: More distinct text targets than this are not classes.
MOST_LABELS = 1 << 16


@dataclass(frozen=True)
class Block:
    """Consecutive rows of a source: CSR or a 2-D array; targets (numbers or text) and weights where it has them."""

    X: Matrix
    y: Array | None = None
    weight: Array | None = None


@contextmanager
def new_folder(folder: Path, overwrite: bool) -> Iterator[Path]:
    """A fresh folder beside ``folder`` that takes its place at the end, or is removed if anything fails.

    What a killed process has left beside ``folder`` is removed, too: of a folder that was being replaced the old
    content is kept until there is a new one.
    """
    folder = Path(os.path.abspath(folder))
    if not folder.parent.is_dir():
        raise FileNotFoundError(f"{folder.parent}: no such folder to write {folder.name!r} in")
    _refuse_existing(folder, overwrite)
    _sweep(folder, "new")
    fresh, handle = _held_folder(folder)
    try:
        yield fresh
        _sync_folder(fresh)
        _refuse_existing(folder, overwrite)
        old = fresh.with_suffix(".old")
        if folder.exists():
            folder.rename(old)
        try:
            fresh.rename(folder)
        except BaseException:
            if old.exists():
                old.rename(folder)
            raise
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    finally:
        if handle is not None:
            os.close(handle)
    shutil.rmtree(old, ignore_errors=True)
    _sweep(folder, "old")
    _sync_folder(folder.parent)


def _held_folder(folder: Path) -> tuple[Path, int | None]:
    """A new folder beside ``folder``, and the handle that keeps others from sweeping it away, where there are locks."""
    while True:
        fresh = folder.with_name(f".{folder.name}.{uuid.uuid4().hex[:12]}.new")
        fresh.mkdir()
        if os.name == "nt":  # folders cannot be opened there
            return fresh, None
        with suppress(FileNotFoundError):
            handle = os.open(fresh, os.O_RDONLY)
            atomic.hold(handle)
            if fresh.exists():
                return fresh, handle
            os.close(handle)
        # It was taken for a dead process's before it was locked: another one.


def _sweep(folder: Path, what: str) -> None:
    """Remove what killed processes left beside ``folder``: folders of exactly such names that no process has locked."""
    name = re.compile(rf"\.{re.escape(folder.name)}\.[0-9a-f]{{12}}\.{what}")
    with suppress(OSError):
        for place in [entry for entry in folder.parent.iterdir() if name.fullmatch(entry.name)]:
            if place.is_dir() and not place.is_symlink():
                with suppress(OSError), atomic.abandoned(place):
                    shutil.rmtree(place, ignore_errors=True)


def _refuse_existing(folder: Path, overwrite: bool) -> None:
    if not os.path.lexists(folder):
        return
    if not overwrite:
        raise FileExistsError(f"{folder}: exists; choose another name or pass overwrite=True")
    if not folder.is_dir() or folder.is_symlink() or not is_dataset_folder(folder):
        raise FileExistsError(f"{folder}: is not a dataset, so it is not replaced; choose another name or remove it")


def _sync_folder(folder: Path) -> None:
    if os.name != "nt":  # folders cannot be opened there
        atomic.sync_folder(folder)


class DatasetWriter:
    """Blocks to files. The first block decides the layout, the value type (unless given) and the kind of targets."""

    def __init__(
        self,
        folder: Path,
        source: str,
        dtype: DType | None = None,
        columns: int | None = None,
        names: list[str] | None = None,
    ) -> None:
        self.folder, self.source, self.dtype, self.columns, self.names = folder, source, dtype, columns, names
        self.rows = self.width = 0
        self.files: dict[str, NpyWriter] = {}
        self.labels: dict[str, int] | None = None
        self.optional: set[str] | None = None

    def append(self, block: Block) -> None:
        """Check a block and write it behind the others."""
        X = block.X
        if X.shape[0] == 0:
            return
        if self.columns is not None and X.shape[1] > self.columns:
            raise ValueError(f"{self.source}: a row has {X.shape[1]} columns, more than n_features={self.columns}")
        if not self.files:
            kind = self.dtype or np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
            self._create(X, kind)
        if is_sparse(X):
            self._append_csr(X)
        else:
            values = self._cast(np.asarray(X), lambda k: divmod(k, X.shape[1]))
            self.files["X"].append(values)
        self.width = max(self.width, X.shape[1])
        self._append_optional(block)
        self.rows += X.shape[0]

    def _create(self, X: Matrix, kind: DType) -> None:
        if not is_sparse(X):
            self._file("X", kind, (X.shape[1],))
            return
        self._file("values", kind)
        self._file("indices", np.int32)
        self._file("indptr", np.int64).append(np.zeros(1, dtype=np.int64))

    def _append_csr(self, X: CSR) -> None:
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        values, indices, indptr = X.data, X.indices, np.asarray(X.indptr, dtype=np.int64)
        if len(indices):
            if indices.min() < 0 or indices.max() >= X.shape[1]:
                raise ValueError(f"{self.source}: a column index near row {self.rows} is outside 0 … {X.shape[1] - 1}")
            if indices.max() >= 2**31 and self.files["indices"].dtype.itemsize < 8:
                self.files["indices"] = self.files["indices"].recast(np.int64)
        start = self.files["values"].length
        self.files["values"].append(
            self._cast(values, lambda k: (int(np.searchsorted(indptr, k, side="right")) - 1, int(indices[k])))
        )
        self.files["indices"].append(indices)
        self.files["indptr"].append(indptr[1:] + start)

    def _cast(self, values: Array, place: Callable[[int], tuple[int, int]]) -> Array:
        """The values in the file's type; refuses those that are not finite in it, naming row and column."""
        kind = self.files["X" if "X" in self.files else "values"].dtype
        with np.errstate(over="ignore"):
            cast = values.astype(kind, copy=False)
        if (flat := first_not_finite(cast)) is not None:
            row, column = place(flat)
            value = values.ravel()[flat]
            what = (
                f"{value!r} does not fit into {kind.name}; pass dtype='float64'"
                if np.isfinite(value)
                else "NaN; impute or drop it first"
                if np.isnan(value)
                else "infinity; impute or drop it first"
            )
            name = "" if self.names is None else f" ({self.names[column]})"
            raise ValueError(f"{self.source}: row {self.rows + row}, column {column}{name}: {what}")
        return cast

    def _append_optional(self, block: Block) -> None:
        present = {name for name, array in (("y", block.y), ("sample_weight", block.weight)) if array is not None}
        if self.optional is None:
            self.optional = present
        assert present == self.optional, "a source either has targets or not"
        for name, array in (("y", block.y), ("sample_weight", block.weight)):
            if array is not None and len(array) != block.X.shape[0]:
                raise ValueError(f"{self.source}: {len(array)} entries of {name} for {block.X.shape[0]} rows")
        if block.y is not None:
            self._append_targets(np.asarray(block.y))
        if block.weight is not None:
            weight = np.asarray(block.weight, dtype=np.float64)
            if (row := first_true(~(np.isfinite(weight) & (weight >= 0)))) is not None:
                raise ValueError(f"{self.source}: row {self.rows + row}: the weight {weight[row]} is not a number >= 0")
            self._file("sample_weight", np.float64).append(weight)

    def _file(self, name: str, dtype: DTypeLike, tail: tuple[int, ...] = ()) -> NpyWriter:
        if name not in self.files:
            self.files[name] = NpyWriter(self.folder / f"{name}.npy", dtype, tail)
        return self.files[name]

    def _append_targets(self, y: Array) -> None:
        if y.dtype.kind in "OUS":
            self._append_labels(y)
            return
        if y.dtype.kind not in "biuf":
            raise ValueError(f"{self.source}: targets of type {y.dtype} are neither numbers nor text")
        if (row := first_not_finite(y)) is not None:
            raise ValueError(f"{self.source}: row {self.rows + row}: the target is {y[row]}; drop the row first")
        if y.dtype.kind == "u" and y.max(initial=0) >= 2**63:
            raise ValueError(f"{self.source}: row {self.rows + int(y.argmax())}: the target {y.max()} is too large")
        self._file("y", np.float64 if y.dtype.kind == "f" else np.int64).append(y)

    def _append_labels(self, y: Array) -> None:
        if y.dtype.kind == "S":
            y = np.char.decode(y, "utf-8", "replace")
        labels = self.labels = {} if self.labels is None else self.labels
        codes = np.empty(len(y), dtype=np.int32)
        for k, label in enumerate(y.tolist()):
            if not isinstance(label, str):
                raise ValueError(f"{self.source}: row {self.rows + k}: the target {label!r} is not text, as others are")
            codes[k] = labels.setdefault(label, len(labels))
        if len(labels) > MOST_LABELS:
            raise ValueError(
                f"{self.source}: more than {MOST_LABELS} different text targets by row {self.rows + len(y)}; "
                "is this the target column?"
            )
        self._file("y", np.int32).append(codes)

    def finish(self) -> None:
        """Fix the index type, fill in the headers and write the JSON."""
        if self.rows == 0:
            raise ValueError(f"{self.source}: holds no rows")
        columns = self.width if self.columns is None else self.columns
        if columns == 0:
            raise ValueError(f"{self.source}: no row has an entry; pass n_features, the number of columns")
        layout = "dense" if "X" in self.files else "csr"
        if layout == "csr":  # one type for both, as the core reads them
            wide = self.files["indices"].dtype.itemsize == 8 or self.files["values"].length >= 2**31
            for name in ("indices", "indptr"):
                if self.files[name].dtype.itemsize != (8 if wide else 4):
                    self.files[name] = self.files[name].recast(np.int64 if wide else np.int32)
        for file in self.files.values():
            file.finish()
        arrays = {name: (file.dtype, file.shape) for name, file in self.files.items()}
        labels = None if self.labels is None else list(self.labels)
        write_meta(self.folder, layout, (self.rows, columns), arrays, labels, self.names)

    def close(self) -> None:
        """Let go of the files, finished or not."""
        for file in self.files.values():
            file.file.close()
