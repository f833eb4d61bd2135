"""Real data: the optimum of scikit-learn within the certified gap, and the accuracy that is known of each set."""

import warnings

import numpy as np
import oracles as o
import pytest
import sklearn.svm
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import MaxAbsScaler

from pegasos import SVC, LinearSVC, LinearSVR, sparsify
from pegasos.datasets import available, load

#: Test accuracy in per cent of a linear support vector machine, and a C that reaches it.
KNOWN = {"a9a": (85.0, 1.0), "ijcnn1": (91.8, 1.0), "rcv1": (93.7, 1.0), "reuters": (97.4, 1.0), "w7a": (98.7, 1.0)}


def get(name, split="train", rows=None):
    if name not in available():
        pytest.skip(f"the data set {name} is not in the folder named by PEGASOS_DATA")
    X, y = load(name, split)
    return X[:rows], y[:rows]


def objective(model, X, y, C, loss):
    return o.primal(X, y, model.coef_[0], np.ravel(model.intercept_)[0], loss=loss, lam=1 / (C * len(y))) * C * len(y)


@pytest.mark.parametrize("name", KNOWN)
def test_accuracy(name):
    percent, C = KNOWN[name]
    model = LinearSVC(C=C).fit(*get(name))
    assert model.certificate_.converged
    assert 100 * model.score(*get(name, "test")) == pytest.approx(percent, abs=1.0)


@pytest.mark.parametrize(
    ("name", "rows", "C"),
    [("a9a", 4000, 0.1), ("ijcnn1", 3000, 1.0), pytest.param("rcv1", 3000, 1.0, marks=pytest.mark.slow)],
)
def test_hinge_optimum(name, rows, C):
    X, y = get(name, rows=rows)
    X = X.astype(np.float64)
    ours = LinearSVC(C=C, tol=1e-4).fit(X, y)
    theirs = sklearn.svm.SVC(kernel="linear", C=C, tol=1e-6, cache_size=1000).fit(X, y)

    w = theirs.coef_.toarray()[0] if hasattr(theirs.coef_, "toarray") else theirs.coef_[0]
    value = o.primal(X, y, w, theirs.intercept_[0], loss="hinge", lam=1 / (C * rows))
    c = ours.certificate_
    assert c.converged
    assert c.dual <= value * (1 + 1e-9)
    assert value - c.gap - 1e-6 * value <= c.primal <= value + c.gap


@pytest.mark.parametrize(
    ("name", "loss"), [("a9a", "log"), ("a9a", "squared_hinge"), ("rcv1", "log"), ("rcv1", "squared_hinge")]
)
def test_smooth_optima(name, loss):
    X, y = get(name, rows=5000)
    X = X.astype(np.float64)
    ours = LinearSVC(loss=loss, fit_intercept=False, tol=1e-5).fit(X, y)
    if loss == "log":
        theirs = LogisticRegression(fit_intercept=False, solver="newton-cg", tol=1e-6, max_iter=1000).fit(X, y)
    else:
        theirs = sklearn.svm.LinearSVC(fit_intercept=False, tol=1e-6, max_iter=10**5).fit(X, y)
    assert ours.certificate_.converged
    assert objective(ours, X, y, 1.0, loss) == pytest.approx(objective(theirs, X, y, 1.0, loss), rel=2e-5)


def test_twenty_newsgroups():
    X, y = get("20news")
    few = np.flatnonzero(y <= 5)
    model = LinearSVC().fit(X[few], y[few])
    assert model.certificate_.converged
    A, b = get("20news", "test")
    theirs = sklearn.svm.LinearSVC().fit(X[few], y[few])
    some = np.flatnonzero(b <= 5)
    assert model.score(A[some], b[some]) == pytest.approx(theirs.score(A[some], b[some]), abs=0.015)


@pytest.mark.parametrize(("name", "percent"), [("20news", 85.4), ("sector", 94.1), ("letter", 69.9)])
def test_accuracy_of_many_classes(name, percent):
    model = LinearSVC(loss="squared_hinge", n_jobs=-1).fit(*get(name))
    assert model.certificate_.converged
    assert 100 * model.score(*get(name, "test")) == pytest.approx(percent, abs=1.5)


def test_regression_converges_scaled_or_not():
    X, y = get("cadata")
    assert LinearSVR().fit(X, y).certificate_.converged
    scaler = MaxAbsScaler().fit(X)
    model = LinearSVR().fit(scaler.transform(X), y / 1e5)
    assert model.certificate_.converged
    A, b = get("cadata", "test")
    assert model.score(scaler.transform(A), b / 1e5) > 0.5


def test_the_warning_is_of_use_on_unscaled_data():
    X, y = get("cadata")
    with pytest.warns(ConvergenceWarning, match="very different scales"):
        LinearSVR(solver="sdca", max_iter=2).fit(X, y)


def test_warm_path_of_C():
    X, y = get("rcv1", rows=5000)
    model, epochs = LinearSVC(solver="sdca", warm_start=True), {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for C in (0.1, 0.3, 1.0):
            warm = model.set_params(C=C).fit(X, y).certificate_
            cold = LinearSVC(solver="sdca", C=C).fit(X, y).certificate_
            epochs[C] = warm.epochs, cold.epochs
            assert warm.primal == pytest.approx(cold.primal, rel=2e-3)
    assert sum(w for w, _ in epochs.values()) <= sum(c for _, c in epochs.values())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "gamma", "C", "share", "most"),
    [("a9a", 0.05, 1, 0.02, 1.01), ("w7a", 0.1, 10, 0.1, 1.1), ("ijcnn1", 1.0, 10, 0.1, 1.1)],
)
def test_few_support_vectors(name, gamma, C, share, most):
    """Compressed with the defaults, the test error stays within this factor of the reference's."""
    (X, y), (X_new, y_new) = get(name), get(name, "test")
    model = SVC(C=C, gamma=gamma, n_jobs=2).fit(X, y)
    n = int(share * len(model.support_))
    small = sparsify(model, X, y, max_support=n).at(n)
    assert len(small.support_) <= n
    assert 1 - small.score(X_new, y_new) <= most * (1 - model.score(X_new, y_new))
