"""Data frames, of pandas, polars or others: what is wrong with one is said by the name of the column."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data as _validate_data

from pegasos.util.arrays import Array, Matrix, first_not_finite, is_frame


def validate_data(estimator: object, X: Any, **options: object) -> Matrix:
    """scikit-learn's function, but text and missing values of a frame are refused with the column's name."""
    if not is_frame(X):
        checked: Matrix = _validate_data(estimator, X, **options)
        return checked
    try:
        found: Matrix = _validate_data(estimator, X, **options)
    except (TypeError, ValueError):
        for j, name in enumerate(X.columns):
            _refuse(_column(X, j, name), name)
        raise
    if isinstance(found, np.ndarray) and not np.isfinite(found).all():
        row, col = np.argwhere(~np.isfinite(found))[0].tolist()
        raise _not_finite(found[row, col], row, list(X.columns)[col])
    return found


def _column(X: Any, j: int, name: object) -> Iterable[object]:
    column: Iterable[object] = X.iloc[:, j] if hasattr(X, "iloc") else X[name]  # names of pandas may come twice
    return column


def _refuse(column: Iterable[object], name: object) -> None:
    """Raise if a column is no finite numbers."""
    try:
        values: Array = np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.array([_number(value, row, name) for row, value in enumerate(column)])
    if (row := first_not_finite(values)) is not None:
        raise _not_finite(values[row], row, name)


def _number(value: Any, row: int, name: object) -> float:
    if value is None or type(value).__name__ == "NAType":
        return np.nan
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"column {name!r} of X is no numbers: row {row} has {value!r:.60}. Encode it first, for example with "
            "sklearn.preprocessing.OneHotEncoder, or drop it."
        ) from None


def _not_finite(value: float, row: int, name: object) -> ValueError:
    what = "NaN" if np.isnan(value) else "infinity"
    return ValueError(f"Input X contains {what} at row {row}, column {name!r}. Impute or drop it first.")
