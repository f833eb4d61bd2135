"""ONNX models of kernel machines, run by onnxruntime, against the estimators themselves."""

import numpy as np
import onnxruntime
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_iris

from pegasos import SVC, SVR, SparseSVC
from pegasos.io import to_onnx
from pegasos.kernels.functions import NATIVE

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])
#: Rows between the fitted ones too, exact in single precision, so that both sides see the same.
ROWS = np.abs(np.random.default_rng(0).normal(size=(200, 4)) * 3).astype(np.float32).astype(np.float64)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def run(model, rows, dtype):
    graph = to_onnx(model, dtype=dtype)
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": rows.astype(dtype)}), strict=True))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kernel", NATIVE)
def test_classifiers(kernel, classes, layout, dtype):
    y = NAMES[Y] if classes == 3 else Y == 1
    model = SVC(kernel=kernel, degree=3, coef0=0.1).fit(layout(X), y)
    for shape, ties in (("ovr", False), ("ovr", True), ("ovo", False)):
        model.set_params(decision_function_shape=shape, break_ties=ties)
        found, expected = run(model, ROWS, dtype), model.decision_function(ROWS)
        assert_array_equal(found["label"], model.predict(ROWS))
        assert (found["scores"].shape, found["scores"].dtype) == (expected.shape, dtype)
        tolerance = 1e-5 if dtype == np.float32 else 1e-9
        assert_allclose(found["scores"], expected, rtol=tolerance, atol=tolerance)


def test_one_against_the_rest():
    model = SVC(multi_class="ovr").fit(X, NAMES[Y])
    found = run(model, ROWS, np.float64)
    assert_array_equal(found["label"], model.predict(ROWS))
    assert_allclose(found["scores"], model.decision_function(ROWS), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kernel", NATIVE)
def test_regressors(kernel):
    model = SVR(kernel=kernel, C=10.0).fit(X, X[:, 0] * X[:, 1])
    assert_allclose(run(model, ROWS, np.float64)["prediction"], model.predict(ROWS), rtol=1e-8, atol=1e-8)
    assert_allclose(run(model, ROWS, np.float32)["prediction"], model.predict(ROWS), rtol=1e-5, atol=1e-4)


def test_far_from_the_origin_single_precision_inputs_do_not_spoil_distances():
    far = X + 4096  # exact in float32
    far = far.astype(np.float32).astype(np.float64)
    model = SVC(gamma=0.5).fit(far, Y)
    assert_array_equal(run(model, far, np.float32)["label"], model.predict(far))


def test_no_support_vectors():
    model = SVR(epsilon=100.0).fit(X, X[:, 0])
    assert_allclose(run(model, ROWS, np.float64)["prediction"], model.predict(ROWS))


def test_refusals():
    with pytest.raises(ValueError, match="kernel='precomputed' takes rows of kernel values"):
        to_onnx(SVC(kernel="precomputed").fit(X @ X.T, Y))
    with pytest.raises(ValueError, match=r"kernel=<function .* is code"):
        to_onnx(SVC(kernel=lambda a, b: a @ b.T).fit(X, Y))
    broken = SVR().fit(X, X[:, 0])
    broken.intercept_[0] = np.nan
    with pytest.raises(ValueError, match="not finite"):
        to_onnx(broken)
    wide = SVR().fit(sparse.csr_matrix(np.eye(3)), [0.0, 1.0, 2.0])
    wide.support_vectors_ = sparse.csr_matrix((3, 2**28))
    wide.n_features_in_ = 2**28
    with pytest.raises(ValueError, match="exceed the 2 GiB"):
        to_onnx(wide)


def test_few_points_that_are_no_rows():
    y = Y == 1
    model = SparseSVC(C=10, gamma=1.0, max_support=12).fit(X, y)
    assert not np.array_equal(model.support_vectors_, X[model.support_])
    found = run(model, ROWS, np.float64)
    assert_array_equal(found["label"], model.predict(ROWS))
    assert_allclose(found["scores"], model.decision_function(ROWS), rtol=1e-9, atol=1e-9)
