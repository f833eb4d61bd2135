"""Labels and targets as the problems take them, checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d

from pegasos.rows.views import numbered
from pegasos.util.arrays import Array, first_not_finite, first_true


def class_labels(X: object, y: object, first: int | Array = 0) -> Array:
    """Checked class labels; ``first``: the number of the first row, or of each."""
    given, y = y, one_column(X, y)
    if y.dtype.kind == "O":
        check_objects(y, "y", first)
    elif y.dtype.kind == "U" and isinstance(given, list | tuple):  # NumPy has made words of what was none
        check_objects(given, "y", first)
    if y.dtype.kind == "f":
        _check_finite(y, first)
    if y.dtype.kind not in "iub" and not (y.dtype.kind == "f" and np.all(y == np.rint(y))):
        check_classification_targets(y)
    return y


def one_column(X: object, y: object) -> Array:
    """Targets, as many as rows of X.

    scikit-learn's checks of the shape, which take longer than a small fit, are only for what is no plain array yet.
    """
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    plain = isinstance(y, np.ndarray) and type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "iubf"
    column = np.asarray(y if plain else column_or_1d(y, warn=True))
    check_consistent_length(X, column)
    return column


def _check_finite(y: Array, first: int | Array) -> None:
    if (row := first_not_finite(y)) is not None:
        what = "NaN" if np.isnan(y[row]) else "infinity"
        raise ValueError(f"Input y contains {what} at row {numbered(first, row)}")


def check_objects(labels: Sequence[object] | Array, name: str, first: int | Array = 0) -> None:
    """Refuse labels that are missing, or that cannot be put in order: text among numbers."""
    seen = None
    for row, label in enumerate(labels):
        number = numbered(first, row)
        if label is None or type(label).__name__ in ("NAType", "NaTType") or _is_nan(label):
            raise ValueError(
                f"Input {name} contains NaN at row {number}: a label is missing. Drop it, or give it a name."
            )
        text = isinstance(label, str | bytes)
        if seen is None:
            seen = text, label, number
        elif text != seen[0]:
            raise ValueError(
                f"{name} mixes text and other labels: {seen[1]!r} at row {seen[2]}, {label!r} at row {number}. "
                "Make them of one type."
            )


def _is_nan(label: object) -> bool:
    return isinstance(label, float | np.floating) and bool(np.isnan(label))


def class_codes(labels: Array, classes: Array) -> Array:
    """The place of each label among sorted classes, which were named beforehand; int32."""
    codes = np.searchsorted(classes, labels)
    codes[codes == len(classes)] = 0
    if (row := first_true(classes[codes] != labels)) is not None:
        raise ValueError(f"y[{row}] = {labels.tolist()[row]!r} is none of the classes {classes.tolist()}")
    return codes.astype(np.int32)


def real_targets(X: object, y: object, first: int | Array = 0) -> Array:
    """Checked real targets, float64; ``first``: the number of the first row, or of each."""
    y = one_column(X, y)
    try:
        target: Array = np.array(y, dtype=np.float64)  # a copy: what a callback does to it must not matter
    except (TypeError, ValueError) as error:
        raise ValueError(f"y must be numbers for regression: {error}") from None
    _check_finite(target, first)
    return target


def class_factors(class_weight: Any, classes: Array, labels: Array) -> Array | None:
    """The weight of each class, or None for all ones."""
    if class_weight is None:
        return None
    if isinstance(class_weight, dict) and (unknown := set(class_weight) - set(classes.tolist())):
        named = sorted(map(repr, unknown))
        raise ValueError(f"class_weight names {', '.join(named)}, not among the classes {classes.tolist()}")
    factors = np.asarray(compute_class_weight(class_weight, classes=classes, y=labels), dtype=np.float64)
    if (wrong := first_true(~(np.isfinite(factors) & (factors >= 0)))) is not None:
        label = classes.tolist()[wrong]
        raise ValueError(f"class_weight of class {label!r} is {factors[wrong]}, but should be a number >= 0")
    return factors
