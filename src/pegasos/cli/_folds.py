"""K-fold cross-validation."""

from __future__ import annotations

import warnings

import numpy as np

from pegasos.cli._exit import Failure
from pegasos.cli._metrics import tally_for
from pegasos.cli._plan import Plan
from pegasos.cli._progress import Progress
from pegasos.cli._rows import Rows
from pegasos.report.record import CrossValidation
from pegasos.util.arrays import Array
from pegasos.util.memory import TooManyColumns


def cross_validate(plan: Plan, rows: Rows, folds: int, progress: Progress) -> CrossValidation:
    """The score of each fold: accuracy, or R² for regression. Every fold has its share of each class.

    Raises Failure if there are not enough rows.
    """
    m = rows.X.shape[0]
    if folds > m:
        raise Failure(f"{rows.source}: {m} rows cannot be cut into {folds} folds; use a smaller -v")
    fold = _assign(rows.y, folds, plan)
    metric = "r2" if plan.regression else "accuracy"
    scores = []
    for k in range(folds):
        X, y, weight = rows.take(np.flatnonzero(fold != k))
        progress.stage(f"cross-validation: fold {k + 1} of {folds}")
        model = plan.estimator()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a gap that is not quite closed matters little to a score
            try:
                model.fit(X, y, weight)
            except TooManyColumns as error:
                raise rows.too_wide(error.columns, error.cost) from None
            except ValueError as error:
                raise Failure(f"{rows.source}: fold {k + 1} of {folds}: {error}") from None
        X, y, _ = rows.take(np.flatnonzero(fold == k))
        tally = tally_for(model)
        tally.add(y, model.predict(X))
        found = tally.evaluation("").metrics
        if metric not in found:
            raise Failure(f"{rows.source}: fold {k + 1} of {folds} has targets that do not vary; use a smaller -v")
        scores.append(found[metric])
    return CrossValidation(metric, tuple(scores))


def _assign(y: Array, folds: int, plan: Plan) -> Array:
    """The fold of each row: shuffled, and dealt out class by class."""
    order = np.random.default_rng(plan.seed).permutation(len(y))
    if not plan.regression:
        order = order[np.argsort(np.unique(y[order], return_inverse=True)[1], kind="stable")]
    fold = np.empty(len(y), dtype=np.intp)
    fold[order] = np.arange(len(y)) % folds
    return fold
