"""Small data, and a problem of two parts, that the tests of kernel machines share."""

import numpy as np
from scipy import sparse

from pegasos.kernels.functions import Kernel
from pegasos.kernels.gram import PartRows
from pegasos.losses import EpsilonInsensitive, Hinge
from pegasos.problems.kernel import KernelProblem
from pegasos.problems.part import Part


def two_classes(m=60, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d))
    return X, np.where(X[:, 0] ** 2 + X[:, 1] + 0.5 * rng.normal(size=m) > 0.5, 1, -1)


def three_classes(m=90, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d))
    return X, np.digitize(X[:, 0] + 0.4 * rng.normal(size=m), [-0.4, 0.5])


def curve(m=60, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, size=(m, 1))
    return x, np.sin(2 * x[:, 0]) + 0.1 * rng.normal(size=m)


def objective(model, X, y, C):
    """½‖w‖² + CΣξ of a fitted binary classifier, scikit-learn's or ours, from its own attributes."""
    dual = model.dual_coef_.toarray() if sparse.issparse(model.dual_coef_) else model.dual_coef_
    scores = model.decision_function(X)
    signs = np.where(y == model.classes_[1], 1.0, -1.0)
    norm = float(dual[0] @ (scores[model.support_] - model.intercept_[0]))
    return 0.5 * norm + C * np.maximum(0, 1 - signs * scores).sum()


def problem(m=300, regression=False):
    X, y = two_classes(m)
    loss = EpsilonInsensitive(0.1) if regression else Hinge()
    target = X[:, 0] ** 2 if regression else y.astype(float)
    kernel = Kernel("rbf", 0.5)
    halves = [np.arange(0, m, 2), np.arange(1, m, 2)]
    parts = tuple(Part(index, target[index], np.ones(len(index)), loss, 1.0) for index in halves)
    rows = PartRows(X, kernel, [part.index for part in parts], 200.0, 1)
    return KernelProblem(X, kernel, parts, 1 / m, float(m), rows)
