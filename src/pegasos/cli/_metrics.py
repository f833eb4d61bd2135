"""How good predictions are, counted block by block so that the rows need not be in memory at once."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from pegasos.cli._labels import label_text
from pegasos.report.record import Confusion, Evaluation
from pegasos.util.arrays import Array

if TYPE_CHECKING:
    from pegasos.cli._models import AnyModel

Label: TypeAlias = int | float | str


class ClassTally:
    """Counts of true and predicted labels."""

    def __init__(self, classes: Array) -> None:
        self._counts: Counter[tuple[Label, Label]] = Counter()
        self._labels = set(np.asarray(classes).tolist())

    def add(self, y: Array, predicted: Array) -> None:
        """Count a block."""
        labels, codes = np.unique(np.concatenate([y, predicted]), return_inverse=True)
        k, m = len(labels), len(y)
        table = np.bincount(codes[:m] * k + codes[m:], minlength=k * k).reshape(k, k)
        names = labels.tolist()
        for i, j in zip(*np.nonzero(table), strict=True):
            self._counts[names[i], names[j]] += int(table[i, j])

    def evaluation(self, source: str) -> Evaluation:
        """What the counts say. Labels that are neither true nor predicted do not count into the means over classes."""
        labels = sorted(self._labels | {label for pair in self._counts for label in pair})
        counts = np.array([[self._counts[i, j] for j in labels] for i in labels], dtype=np.int64)
        hits, true, said = np.diagonal(counts), counts.sum(axis=1), counts.sum(axis=0)
        rows = int(counts.sum())
        metrics = {}
        if rows:
            metrics["accuracy"] = float(hits.sum() / rows)
            metrics["balanced_accuracy"] = float(np.mean(hits[true > 0] / true[true > 0]))
            seen = true + said > 0
            metrics["f1_macro"] = float(np.mean(2 * hits[seen] / (true + said)[seen]))
        table = tuple(tuple(row) for row in counts.tolist())
        return Evaluation(source, rows, metrics, Confusion(tuple(map(label_text, labels)), table))


class ErrorTally:
    """Sums of the errors of a regression; the variance of the targets is merged block by block (Chan et al.)."""

    def __init__(self) -> None:
        self._rows, self._mean, self._spread = 0, 0.0, 0.0
        self._absolute, self._squared = 0.0, 0.0

    def add(self, y: Array, predicted: Array) -> None:
        """Add a block."""
        if not len(y):
            return
        errors = np.asarray(predicted, dtype=np.float64) - y
        self._absolute += float(np.abs(errors).sum())
        self._squared += float(errors @ errors)
        rows, mean = len(y), float(np.mean(y))
        shift, total = mean - self._mean, self._rows + rows
        self._spread += float(np.sum((y - mean) ** 2)) + shift * shift * self._rows * rows / total
        self._mean += shift * rows / total
        self._rows = total

    def evaluation(self, source: str) -> Evaluation:
        """R² (left out where the targets do not vary), mean absolute and root mean squared error."""
        metrics = {}
        if self._rows:
            if self._spread > 0:
                metrics["r2"] = 1.0 - self._squared / self._spread
            metrics["mean_absolute_error"] = self._absolute / self._rows
            metrics["root_mean_squared_error"] = float(np.sqrt(self._squared / self._rows))
        return Evaluation(source, self._rows, metrics, None)


def tally_for(model: AnyModel) -> ClassTally | ErrorTally:
    """The tally that suits an estimator."""
    return ClassTally(model.classes_) if hasattr(model, "classes_") else ErrorTally()
