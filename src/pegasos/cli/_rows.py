"""Rows from files and folders, whole for training or block by block for predicting."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pegasos import io
from pegasos._data import Array
from pegasos.cli._exit import Failure
from pegasos.cli._labels import label_text


@dataclass(frozen=True)
class Rows:
    """Labelled rows. ``X`` is a CSR matrix, or a Dataset that brings its targets along."""

    source: str
    X: Any
    y: Array
    names: list[str] | None = None

    @property
    def on_disk(self) -> bool:
        """Whether the rows are a dataset's folder."""
        return isinstance(self.X, io.Dataset)

    def fit(self, model: Any) -> None:
        """Fit a model to the rows."""
        if self.on_disk:
            model.fit(self.X)
        else:
            model.fit(self.X, self.y)

    def take(self, chosen: Array) -> tuple[Any, Array, Array | None]:
        """Some of the rows with their targets and weights, in memory."""
        if not self.on_disk:
            return self.X[chosen], self.y[chosen], None
        weight = self.X.sample_weight
        return self.X.X[chosen], self.y[chosen], None if weight is None else np.asarray(weight[chosen])

    def blocks(self) -> Iterator[tuple[Any, Array]]:
        """All rows, piece by piece: scores of many classes would otherwise take more memory than the rows."""
        if self.on_disk:
            for first, X in self.X.blocks():
                yield X, self.y[first : first + X.shape[0]]
            return
        for first in range(0, self.X.shape[0], _BLOCK_ROWS):
            chosen = slice(first, first + _BLOCK_ROWS)
            yield self.X[chosen], self.y[chosen]


_BLOCK_ROWS = 1 << 16


def read(path: str, *, regression: bool, n_features: int | None, zero_based: bool, threads: int | None) -> Rows:
    """All rows of a file or folder, their targets checked to be what is asked for.

    Raises Failure, ValueError or OSError naming the file.
    """
    names = None
    if _is_folder(path):
        X = io.open_dataset(path)
        if X.y is None:
            raise Failure(f"{path}: was converted without targets; name them with pegasos convert … --target")
        y = X.y
        names = list(X.feature_names) if X.feature_names is not None else None
    else:
        X, y = io.read_svmlight(path, n_features=n_features, zero_based=zero_based, n_jobs=threads)
    source = name_of(path)
    if not X.shape[0]:
        raise Failure(f"{source}: there are no rows")
    if not X.shape[1]:
        raise Failure(f"{source}: no row has a feature; set --n-features to train on rows that are all zero")
    return Rows(source, X, _targets(y, source, regression=regression), names)


def blocks(path: str, *, zero_based: bool, threads: int | None) -> Iterator[tuple[Any, Array | None]]:
    """Rows and targets of a file or folder, in blocks that take 256 MB at most while they are read."""
    if _is_folder(path):
        data = io.open_dataset(path)
        for first, X in data.blocks():
            yield X, None if data.y is None else data.y[first : first + X.shape[0]]
    else:
        yield from io.iter_svmlight(path, zero_based=zero_based, n_jobs=threads)


class Fitter:
    """Makes rows as wide as a model. Features it does not know are ignored, as in LIBLINEAR, and said so once."""

    def __init__(self, columns: int, source: str) -> None:
        self._columns, self._source, self._said = columns, source, False

    def __call__(self, X: Any) -> Any:
        """The rows, as wide as the model."""
        columns, sparse = self._columns, hasattr(X, "indices")
        if X.shape[1] == columns:
            return X
        if not sparse:
            raise Failure(f"{self._source}: has {X.shape[1]} columns, but the model was trained on {columns}")
        if X.shape[1] < columns:
            return type(X)((X.data, X.indices, X.indptr), shape=(X.shape[0], columns))
        if not self._said and (X.indices >= columns).any():
            print(f"pegasos: {self._source}: features beyond the model's {columns} are ignored", file=sys.stderr)
            self._said = True
        return X[:, :columns]


_CONVERTIBLE = (".csv", ".tsv", ".parquet", ".pq", ".npz")


def _is_folder(path: str) -> bool:
    """Whether the rows are in a folder; files that only ``convert`` reads are refused."""
    if path == "-":
        return False
    if Path(path).suffix.lower() in _CONVERTIBLE:
        raise Failure(f"{path}: convert it first: pegasos convert {path} FOLDER; then give FOLDER in its place")
    return Path(path).is_dir()


def name_of(path: str) -> str:
    """What to call a source."""
    return "standard input" if path == "-" else path


def _targets(y: Array, source: str, *, regression: bool) -> Array:
    if regression:
        if y.dtype.kind not in "iuf":
            raise Failure(f"{source}: the targets are text, which --regression cannot predict; leave it out")
        return y
    if y.dtype.kind != "f":
        return y
    with np.errstate(invalid="ignore"):
        odd = ~((y == np.rint(y)) & (np.abs(y) < 2.0**53))
    if odd.any():
        row = int(np.flatnonzero(odd)[0])
        raise Failure(
            f"{source}: the label {label_text(y[row])} of row {row + 1} is no whole number; "
            "add --regression to predict numbers"
        )
    whole: Array = y.astype(np.int64)
    return whole
