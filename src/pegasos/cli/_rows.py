"""Rows from files and folders, whole for training or block by block for predicting."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pegasos import io
from pegasos.cli._exit import Failure
from pegasos.cli._labels import label_text
from pegasos.io.data.convert import format_of
from pegasos.io.data.svmlight import line_of_row
from pegasos.rows.views import is_sparse
from pegasos.util.arrays import CSR, Array, Matrix, first_true
from pegasos.util.memory import TooManyColumns, row_of_last_column

if TYPE_CHECKING:
    from pegasos.cli._models import AnyModel

_BLOCK_ROWS = 1 << 16  # of rows in memory


@dataclass(frozen=True)
class Rows:
    """Labelled rows. ``X`` is a CSR matrix, or a Dataset that brings its targets along."""

    source: str
    X: CSR | io.Dataset
    y: Array
    names: list[str] | None = None
    path: str = "-"
    first_index: int = 1

    @property
    def matrix(self) -> Matrix:
        """The rows themselves, in memory or mapped."""
        return self.X.X if isinstance(self.X, io.Dataset) else self.X

    def fit(self, model: AnyModel) -> None:
        """Fit a model to the rows."""
        try:
            model.fit(self.X, None if isinstance(self.X, io.Dataset) else self.y)
        except TooManyColumns as error:
            raise self.too_wide(error.columns, error.cost) from None

    def too_wide(self, columns: int, cost: str) -> Failure:
        """What to say of more columns than can be: where they come from, what they cost, what helps."""
        row = row_of_last_column(self.matrix)
        if row is None:
            return Failure(f"{self.source}: has {columns} columns, and {cost}. Use fewer")
        in_text = self.path != "-" and not isinstance(self.X, io.Dataset)
        line = line_of_row(self.path, row) if in_text else None
        where = f"row {row + 1}" if line is None else f"line {line}"
        return Failure(
            f"{self.source}, {where}: index {columns - 1 + self.first_index} makes {columns} columns, and {cost}. "
            "Correct the index if it is a mistake, or number the features without gaps"
        )

    def check_support(self) -> None:
        """Refuse sparse rows so wide that no model file holds them as support vectors, before they are trained on."""
        from pegasos.io.models.support import MAX_SPARSE_COLUMNS  # takes all of scikit-learn along

        if is_sparse(self.matrix) and (columns := self.matrix.shape[1]) > MAX_SPARSE_COLUMNS:
            cost = f"the support vectors of a model file have {MAX_SPARSE_COLUMNS} at most"
            raise self.too_wide(columns, cost)

    def take(self, chosen: Array) -> tuple[Matrix, Array, Array | None]:
        """Some of the rows with their targets and weights, in memory."""
        weight = self.X.sample_weight if isinstance(self.X, io.Dataset) else None
        return self.matrix[chosen], self.y[chosen], None if weight is None else np.asarray(weight[chosen])

    def blocks(self) -> Iterator[tuple[Matrix, Array]]:
        """All rows, piece by piece: scores of many classes would otherwise take more memory than the rows."""
        if isinstance(self.X, io.Dataset):
            for first, X in self.X.blocks():
                yield X, self.y[first : first + X.shape[0]]
            return
        for first in range(0, self.X.shape[0], _BLOCK_ROWS):
            chosen = slice(first, first + _BLOCK_ROWS)
            yield self.X[chosen], self.y[chosen]


def read(path: str, *, regression: bool, n_features: int | None, zero_based: bool, threads: int | None) -> Rows:
    """All rows of a file or folder, their targets checked to be what is asked for.

    Raises Failure, ValueError or OSError naming the file.
    """
    X: CSR | io.Dataset
    names = None
    if _is_folder(path):
        X = data = io.open_dataset(path)
        if data.y is None:
            raise Failure(f"{path}: was converted without targets; convert it again, with --target")
        y, names = data.y, None if data.feature_names is None else list(data.feature_names)
    else:
        X, y = io.read_svmlight(path, n_features=n_features, zero_based=zero_based, n_jobs=threads)
    source, first = name_of(path), 0 if zero_based else 1
    if not X.shape[0]:
        raise Failure(f"{source}: there are no rows")
    if not X.shape[1]:
        raise Failure(f"{source}: no row has a feature; set --n-features to train on rows that are all zero")
    return Rows(source, X, _targets(y, source, regression=regression), names, path, first)


@dataclass(frozen=True)
class Blocks:
    """Rows and targets, piece by piece; ``names`` are those of the columns, where known."""

    source: str
    names: tuple[str, ...] | None
    pieces: Iterable[tuple[Matrix, Array | None]]


def blocks(path: str, *, zero_based: bool, threads: int | None, memory: int) -> Blocks:
    """Rows and targets of a file or folder, in blocks that take ``memory`` bytes at most while they are read."""
    if not _is_folder(path):
        found = io.iter_svmlight(path, zero_based=zero_based, n_jobs=threads, memory=memory)
        return Blocks(name_of(path), None, ((X, y) for X, y in found))
    data = io.open_dataset(path)
    y = data.y
    pieces = ((X, None if y is None else y[first : first + X.shape[0]]) for first, X in data.blocks())
    return Blocks(path, data.feature_names, pieces)


def _is_folder(path: str) -> bool:
    """Whether the rows are in a folder; files that only ``convert`` reads are refused."""
    if path == "-":
        return False
    if Path(path).is_dir():
        return True
    if format_of(path) != "svmlight":
        raise Failure(f"{path}: convert it first: pegasos convert {path} FOLDER; then give FOLDER in its place")
    return False


def name_of(path: str) -> str:
    """What to call a source."""
    return "standard input" if path == "-" else path


def check_alike(test: Rows, rows: Rows) -> None:
    """Refuse test rows whose targets are of another kind than those to train on, before an hour goes into training."""
    kinds = ["numbers" if y.dtype.kind in "iufb" else "text" for y in (test.y, rows.y)]
    if kinds[0] != kinds[1]:
        raise Failure(f"{test.source}: the targets are {kinds[0]}, but those of {rows.source} are {kinds[1]}")


def _targets(y: Array, source: str, *, regression: bool) -> Array:
    if regression:
        if y.dtype.kind not in "iuf":
            raise Failure(f"{source}: the targets are text, which --regression cannot predict; leave it out")
        return y
    if y.dtype.kind != "f":
        return y
    with np.errstate(invalid="ignore"):
        odd = ~((y == np.rint(y)) & (np.abs(y) < 2.0**53))
    if (row := first_true(odd)) is not None:
        raise Failure(
            f"{source}: the label {label_text(y[row])} of row {row + 1} is no whole number; "
            "add --regression to predict numbers"
        )
    return y.astype(np.int64)
