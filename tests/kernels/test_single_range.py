"""Rows in single precision whose squares it cannot hold: kernel machines treat them as the same rows in double."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_wine, make_classification

from pegasos import SVC, SVR, SparseSVC
from pegasos.kernels.functions import Kernel
from pegasos.kernels.gram import MAX_DOUBLE_ROWS, NativeRows

SCALES = (1e-25, 1e-20, 1e-12, 1.0, 1e12, 1e18, 1e20, 1e25)
WINE, GRADE = load_wine(return_X_y=True)
WINE = np.abs((WINE - WINE.mean(axis=0)) / WINE.std(axis=0)).astype(np.float32)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "chi2"])
def test_single_precision_rows_are_scored_as_in_double(kernel, scale, layout):
    X = WINE * np.float32(scale)
    gamma = 0.05 / scale ** (2 if kernel == "rbf" else 1)
    model = SVC(kernel=kernel, gamma=gamma).fit(layout(X), GRADE)
    found = model.decision_function(layout(X))
    wide = SVC(kernel=kernel, gamma=gamma).fit(X.astype(np.float64), GRADE)
    assert_allclose(found, wide.decision_function(X.astype(np.float64)), atol=1e-3)
    assert_array_equal(model.predict(layout(X)), wide.predict(X.astype(np.float64)))
    assert_allclose(found, model.decision_function(layout(X.astype(np.float64))), atol=1e-4)


@pytest.mark.parametrize("scale", SCALES)
def test_regression_at_any_scale(scale):
    X, y = WINE * np.float32(scale), WINE[:, 0] * WINE[:, 1]
    scores = [SVR(C=10).fit(rows, y).score(rows, y) for rows in (X, X.astype(np.float64))]
    assert scores[0] == pytest.approx(scores[1], abs=1e-3)
    weights = np.ones(len(y))
    weights[::2] = 2  # γ by "scale" is a weighted variance then
    assert SVR(C=10).fit(X, y, weights).score(X, y) == pytest.approx(scores[1], abs=0.05)


#: Kernels of rows times a factor, γ such that the values stay; a linear one has no γ.
POWERS = {"linear": 0, "poly": 2, "sigmoid": 2, "rbf": 2, "laplacian": 1, "chi2": 1}


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kernel", POWERS)
def test_values_while_fitting(kernel, scale):
    """Of so many rows that single precision is used, where its range allows that."""
    X = (np.random.default_rng(0).random((MAX_DOUBLE_ROWS + 1, 4)) * scale).astype(np.float32)
    kind = Kernel(kernel, 0.5 / scale ** POWERS[kernel], coef0=0.1, degree=2)
    rows, index = NativeRows(X, kind, 1.0, 1), np.arange(40)
    exact = np.empty((40, 40))
    kind.core(X.astype(np.float64)).block(index, index, exact, 1)
    assert_allclose(rows.block(index, index)[:, :40], exact, rtol=1e-5)
    assert rows.single or scale != 1.0


@pytest.mark.parametrize(("kernel", "scale"), [("rbf", 1e-20), ("rbf", 1e20), ("linear", 1e20)])
def test_fits_of_many_rows(kernel, scale):
    X, y = make_classification(MAX_DOUBLE_ROWS + 100, 6, class_sep=2.0, random_state=0)
    X = (X * scale).astype(np.float32)
    model = SVC(kernel=kernel, gamma=0.1 / scale**2, C=0.01 / scale**2 if kernel == "linear" else 1.0)
    narrow = model.fit(X, y).predict(X)
    assert model.certificate_.converged
    assert_array_equal(narrow, model.fit(X.astype(np.float64), y).predict(X))
    assert np.mean(narrow == y) > 0.85


def test_a_sparse_model_at_any_scale():
    for scale in (1e-20, 1e20):
        X = WINE * np.float32(scale)
        model = SparseSVC(max_support=30, gamma=0.05 / scale**2).fit(X, GRADE == 1)
        assert model.score(X, GRADE == 1) > 0.9
