"""Labels and targets as the problems take them, checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d

from pegasos.rows.views import Array


def class_labels(X: Any, y: Any) -> Array:
    """Checked class labels."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    given, y = y, _one_column(y)
    check_consistent_length(X, y)
    if y.dtype.kind == "O":
        check_objects(y, "y")
    elif y.dtype.kind == "U" and isinstance(given, list | tuple):  # NumPy has made words of what was none
        check_objects(given, "y")
    quick = y.dtype.kind in "iub" or (y.dtype.kind == "f" and np.isfinite(y).all() and bool(np.all(y == np.rint(y))))
    if not quick:
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            row = int(np.flatnonzero(~np.isfinite(y))[0])
            raise ValueError(f"Input y contains {'NaN' if np.isnan(y[row]) else 'infinity'} at row {row}")
        check_classification_targets(y)
    return np.asarray(y)


def _one_column(y: Any) -> Array:
    """scikit-learn's checks of the shape, which take longer than a small fit, only for what is no plain array yet."""
    plain = type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "iubf"
    return y if plain else np.asarray(column_or_1d(y, warn=True))


def check_objects(labels: Any, name: str) -> None:
    """Refuse labels that are missing, or that cannot be put in order: text among numbers."""
    first = None
    for row, label in enumerate(labels):
        if label is None or type(label).__name__ in ("NAType", "NaTType") or _is_nan(label):
            raise ValueError(f"Input {name} contains NaN at row {row}: a label is missing. Drop it, or give it a name.")
        text = isinstance(label, str | bytes)
        if first is None:
            first = text, row
        elif text != first[0]:
            raise ValueError(
                f"{name} mixes text and other labels: {labels[first[1]]!r} at row {first[1]}, {label!r} at row {row}. "
                "Make them of one type."
            )


def _is_nan(label: Any) -> bool:
    return isinstance(label, float | np.floating) and bool(np.isnan(label))


def class_codes(labels: Array, classes: Array) -> Array:
    """The place of each label among sorted classes, which were named beforehand; int32."""
    codes = np.searchsorted(classes, labels)
    codes[codes == len(classes)] = 0
    if (wrong := classes[codes] != labels).any():
        row = int(np.flatnonzero(wrong)[0])
        raise ValueError(f"y[{row}] = {labels.tolist()[row]!r} is none of the classes {classes.tolist()}")
    return codes.astype(np.int32)


def real_targets(X: Any, y: Any) -> Array:
    """Checked real targets, float64."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    y = _one_column(y)
    check_consistent_length(X, y)
    try:
        target: Array = np.array(y, dtype=np.float64)  # a copy: what a callback does to it must not matter
    except (TypeError, ValueError) as error:
        raise ValueError(f"y must be numbers for regression: {error}") from None
    if not np.isfinite(target).all():
        row = int(np.flatnonzero(~np.isfinite(target))[0])
        raise ValueError(f"Input y contains {'NaN' if np.isnan(target[row]) else 'infinity'} at row {row}")
    return target


def class_factors(class_weight: Any, classes: Array, labels: Array) -> Array | None:
    """The weight of each class, or None for all ones."""
    if class_weight is None:
        return None
    if isinstance(class_weight, dict) and (unknown := set(class_weight) - set(classes.tolist())):
        named = sorted(map(repr, unknown))
        raise ValueError(f"class_weight names {', '.join(named)}, not among the classes {classes.tolist()}")
    factors = np.asarray(compute_class_weight(class_weight, classes=classes, y=labels), dtype=np.float64)
    if len(wrong := np.flatnonzero(~(np.isfinite(factors) & (factors >= 0)))):
        label = classes.tolist()[wrong[0]]
        raise ValueError(f"class_weight of class {label!r} is {factors[wrong[0]]}, but should be a number >= 0")
    return factors
