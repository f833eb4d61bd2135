"""What the text formats of LIBLINEAR and LIBSVM share: a header of keyword lines, whole-number labels, and sign."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np
from sklearn.utils.validation import check_is_fitted

from pegasos.estimators.linear import LinearSVC, LinearSVR
from pegasos.rows.views import Array

Path = str | os.PathLike[str]
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
WHOLE = re.compile(r"[+-]?\d{1,10}")


class Lines:
    """The lines of a text model, each with its number for the messages."""

    def __init__(self, path: Path) -> None:
        self.name = os.fspath(path)
        self.number = 0
        with open(path, "rb") as file:
            self._lines = file.read().split(b"\n")
        while self._lines and not self._lines[-1].strip():
            self._lines.pop()

    def __iter__(self) -> Iterator[list[str]]:
        """The words of the lines not read yet."""
        while self.number < len(self._lines):
            line, self._lines[self.number] = self._lines[self.number], b""
            self.number += 1
            try:
                yield line.decode("ascii").split()
            except UnicodeDecodeError as error:
                self.refuse(f"byte {line[error.start]:#04x} at column {error.start + 1} is no ASCII text")

    def refuse(self, why: str) -> NoReturn:
        """Raise ValueError with the file's name and the current line's number."""
        raise ValueError(f"{self.name}, line {self.number}: {why}")

    def header(self, keys: dict[str, Callable[[Lines, str, list[str]], Any]], end: str) -> dict[str, Any]:
        """The keyword lines up to the one that says ``end``: each word's values, read by its entry in ``keys``."""
        found: dict[str, Any] = {}
        for words in self:
            if not words:
                continue
            key, *values = words
            if key == end and not values:
                return found
            if key not in keys:
                self.refuse(f"{key!r:.60} is none of {', '.join(keys)}, {end}")
            if key in found:
                self.refuse(f"{key} comes twice")
            found[key] = keys[key](self, key, values)
        self.refuse(f"the file ends before the line {end!r}: truncated, or no model")

    def real(self, word: str, what: str) -> float:
        """A finite number."""
        value = float(word) if NUMBER.fullmatch(word) else math.nan
        if not math.isfinite(value):
            self.refuse(f"{what} {word!r:.60} is no finite number")
        return value

    def reals(self, words: list[str], what: str) -> list[float]:
        """Finite numbers, quickly; the first that is none is looked for only if there is one."""
        try:
            values = list(map(float, words))
        except ValueError:
            values = [math.nan]
        if all(map(math.isfinite, values)) and "_" not in "".join(words):  # float accepts 1_000
            return values
        return [self.real(word, what) for word in words]

    def whole(self, word: str, what: str, low: int, high: int = 2**31 - 1) -> int:
        """A whole number from ``low`` to ``high``."""
        if not WHOLE.fullmatch(word) or not low <= int(word) <= high:
            self.refuse(f"{what} {word!r:.60} is no whole number from {low} to {high}")
        return int(word)


def one_word(lines: Lines, key: str, values: list[str]) -> str:
    """The value of a keyword that has one."""
    if len(values) != 1:
        lines.refuse(f"{key} should be followed by one value, not {len(values)}")
    return values[0]


def one_real(lines: Lines, key: str, values: list[str]) -> float:
    """The value of a keyword that has one number."""
    return lines.real(one_word(lines, key, values), key)


def count(lines: Lines, key: str, values: list[str]) -> int:
    """The value of a keyword that counts something."""
    return lines.whole(one_word(lines, key, values), key, 0)


def reals(lines: Lines, key: str, values: list[str]) -> list[float]:
    """The values of a keyword that has several numbers."""
    return lines.reals(values, key)


def wholes(lines: Lines, key: str, values: list[str]) -> list[int]:
    """The values of a keyword that has several whole numbers."""
    return [lines.whole(word, key, -(2**31)) for word in values]


def need(lines: Lines, found: dict[str, Any], *keys: str) -> None:
    """Refuse a header that lacks one of ``keys``."""
    if missing := [key for key in keys if key not in found]:
        lines.refuse(f"the header above lacks {', '.join(missing)}")


#: A number as text that reads back to the same bits.
REAL = "%.17g"


def fitted_linear(estimator: Any, form: str) -> tuple[Array, Array]:
    """The weights (outputs × features) and biases of a fitted linear estimator, checked."""
    if not isinstance(estimator, LinearSVC | LinearSVR):
        raise ValueError(f"a {form} is made of a LinearSVC or LinearSVR, not of {type(estimator).__name__}")
    check_is_fitted(estimator)
    W, b = np.atleast_2d(estimator.coef_), np.atleast_1d(estimator.intercept_)
    if not (np.isfinite(W).all() and np.isfinite(b).all()):
        raise ValueError("coef_ or intercept_ has values that are not finite")
    return W, b


def whole_labels(classes: Array, form: str) -> list[int]:
    """Class labels as the whole numbers these formats have."""
    if classes.dtype.kind in "iufb":
        values = classes.tolist()
        if all(float(v).is_integer() and abs(v) < 2**31 for v in values):
            return [int(v) for v in values]
    raise ValueError(
        f"a {form} has whole numbers below 2**31 as labels, not {classes.tolist()!r:.100}; fit with encoded labels "
        "(sklearn.preprocessing.LabelEncoder), or use pegasos.save"
    )


def fitted_classifier(lines: Lines, labels: list[int], W: Array, b: Array, **parameters: Any) -> LinearSVC:
    """A LinearSVC of a foreign model: one row of weights for ``labels[0]`` against ``labels[1]``, or one for each."""
    if len(set(labels)) < len(labels):
        lines.refuse(f"a label comes twice: {labels!r:.100}")
    order = np.argsort(labels)
    if len(W) == 1:  # there the first label has the positive scores, here the larger label
        sign = 1.0 if order[0] == 1 else -1.0
        W, b = sign * W, sign * b
    else:
        W, b = W[order], b[order]
    model = LinearSVC(**parameters)
    model.classes_ = np.array(labels, dtype=np.int64)[order]
    _finish(lines, model, np.ascontiguousarray(W), b)
    return model


def fitted_regressor(lines: Lines, W: Array, b: Array, **parameters: Any) -> LinearSVR:
    """A LinearSVR of a foreign model."""
    model = LinearSVR(**parameters)
    _finish(lines, model, W[0], b)
    return model


def _finish(lines: Lines, model: LinearSVC | LinearSVR, coef: Array, intercept: Array) -> None:
    """Set the weights, checked as those of model files are."""
    with np.errstate(over="ignore", invalid="ignore"):
        squares = float(np.vdot(coef, coef)) + float(np.vdot(intercept, intercept))
    if not np.isfinite(squares):
        lines.refuse("the weights above are so large that their squares overflow")
    if coef.shape[-1] < 1:
        lines.refuse("the model above has no features")
    model.coef_, model.intercept_ = coef + 0.0, intercept + 0.0  # no negative zeros
    model.n_features_in_ = coef.shape[-1]
