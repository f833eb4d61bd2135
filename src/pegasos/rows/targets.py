"""Targets and weights of rows: those that a user gives, or those that a dataset brings."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length

from pegasos.rows.dataset import Dataset
from pegasos.rows.labels import one_column
from pegasos.rows.views import in_memory
from pegasos.util.arrays import Array


def unpack(X: Any, y: Any, sample_weight: Any, rows: Array | None = None) -> tuple[Any, Any]:
    """Targets and weights for ``X``: a dataset brings its own. ``rows``: the targets of these rows alone."""
    if not isinstance(X, Dataset):
        return y if rows is None else targets_of(X, y, rows), sample_weight
    if y is not None:
        raise ValueError("a Dataset brings its targets; leave y out, or pass dataset.X and other targets")
    X.check_files()
    if X.targets is None:
        raise ValueError(f"requires y to be passed, but the target y is None: {X!r} was written without targets")
    if X.sample_weight is not None:
        if sample_weight is not None:
            raise ValueError("the Dataset has weights of its own; leave sample_weight out, or pass dataset.X")
        sample_weight = in_memory(X.sample_weight, "sample_weight")
    all_labels = rows is None and X.classes is not None  # which are kept
    return X.y if all_labels else X._targets_of(rows), sample_weight


def targets_of(X: Any, y: Any, rows: Array) -> Any:
    """The targets of some rows of ``X``; those of other rows are not looked at. A list stays one."""
    if isinstance(y, list | tuple):
        check_consistent_length(X, y)
        return [y[row] for row in rows.tolist()]
    return np.asarray(one_column(X, y))[rows]
