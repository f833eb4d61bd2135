"""ONNX models, run in onnxruntime against the estimators they come from."""

import sys

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

from pegasos import LinearSVC, LinearSVR
from pegasos.io import to_onnx
from pegasos.losses import Huber, Log

DIGITS = load_digits(return_X_y=True)
DIGITS = (DIGITS[0] / 16).astype(np.float32), DIGITS[1]
CANCER = load_breast_cancer(return_X_y=True)
CANCER = (CANCER[0] / abs(CANCER[0]).max(axis=0)).astype(np.float32), CANCER[1]
DIABETES = load_diabetes(return_X_y=True)
NAMES = np.array(["zéro", "one", "two", "three", "four", "five", "six", "seven", "eight", ""])


def run(model, X):
    """The outputs of an ONNX model by name."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": X}), strict=True))


def compare(model, X, dtype):
    """Labels, scores and probabilities agree, as well as ``dtype`` can."""
    X = X.astype(dtype)
    found = run(to_onnx(model, dtype=dtype), X)
    scores = model.decision_function(X)
    # Rounding of a sum of products is relative to its largest terms.
    size = abs(X).max() * abs(model.coef_).sum(axis=1).max() + abs(model.intercept_).max()
    close = 8 * np.finfo(dtype).eps * size
    assert found["scores"].dtype == dtype
    assert_allclose(found["scores"], scores, rtol=0, atol=close)
    best = np.sort(scores, axis=1) if scores.ndim == 2 else scores
    clear = best[:, -1] - best[:, -2] > 2 * close if scores.ndim == 2 else abs(scores) > close
    assert clear.mean() > 0.99
    assert_array_equal(found["label"][clear], model.predict(X)[clear])
    assert ("probabilities" in found) == hasattr(model, "predict_proba")
    if "probabilities" in found:
        assert_allclose(
            found["probabilities"], model.predict_proba(X), rtol=1e-5 if dtype == np.float32 else 1e-12, atol=close
        )
        assert_allclose(found["probabilities"].sum(axis=1), 1, rtol=1e-5)
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("data", [CANCER, DIGITS], ids=["two", "ten"])
@pytest.mark.parametrize(
    "model",
    [
        LinearSVC(),
        LinearSVC(loss="squared_hinge", fit_intercept=False),
        LinearSVC(loss=Log(), tol=1e-2),
        LinearSVC(loss="multinomial", C=0.1),
        LinearSVC(multi_class="crammer_singer"),
    ],
    ids=str,
)
def test_classifiers(model, data, dtype):
    found = compare(model.fit(*data), data[0], dtype)
    assert found["label"].dtype == np.int64


@pytest.mark.parametrize(
    "encode",
    [
        lambda y: NAMES[y],
        lambda y: NAMES.astype(object)[y],
        lambda y: y > 4,
        lambda y: y.astype(np.uint8) + 200,
        lambda y: y.astype(np.float32),
    ],
    ids=["texts", "objects", "booleans", "bytes", "floats"],
)
def test_labels(encode):
    compare(LinearSVC(tol=1e-2).fit(DIGITS[0], encode(DIGITS[1])), DIGITS[0], np.float32)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared", Huber(2.0)], ids=str)
def test_regression(loss, dtype):
    X, y = DIABETES
    model = LinearSVR(loss=loss, C=10.0).fit(X, y)
    found = run(to_onnx(model, dtype=dtype), X.astype(dtype))
    assert list(found) == ["prediction"]
    assert_allclose(found["prediction"], model.predict(X), rtol=1e-5 if dtype == np.float32 else 1e-12)


def test_sparse_rows_in_training():
    X, y = DIGITS
    model = LinearSVC(solver="sdca", tol=1e-2).fit(sparse.csr_array(X), y)
    compare(model, X, np.float32)


def test_any_number_of_rows():
    model = to_onnx(LinearSVC(loss="log").fit(*CANCER))
    for rows in (0, 1, 7):
        found = run(model, CANCER[0][:rows])
        assert [found[name].shape for name in ("label", "scores", "probabilities")] == [(rows,), (rows,), (rows, 2)]


def test_no_class_is_possible():
    """Where every one-vs-rest probability rounds to zero, the classes are equally likely, here as there."""
    model = LinearSVC(loss="log").fit([[0.0], [1.0], [2.0]], [0, 1, 2])
    model.coef_, model.intercept_ = np.full((3, 1), -1e4), np.zeros(3)
    found = run(to_onnx(model), np.ones((1, 1), dtype=np.float32))
    assert_allclose(found["probabilities"], model.predict_proba([[1.0]]))
    assert_allclose(found["probabilities"], np.full((1, 3), 1 / 3))


def test_the_model_is_valid_and_portable():
    model = to_onnx(LinearSVC(loss="log").fit(*DIGITS))
    onnx.checker.check_model(model, full_check=True)
    assert {domain.domain for domain in model.opset_import} == {""}
    assert to_onnx(LinearSVC(loss="log").fit(*DIGITS)).SerializeToString() == model.SerializeToString()


def test_refusals(monkeypatch):
    model = LinearSVC().fit(*CANCER)
    with pytest.raises(ValueError, match="dtype"):
        to_onnx(model, dtype=np.float16)
    model.coef_[0, 0] = 1e39
    with pytest.raises(ValueError, match="out of float32's range"):
        to_onnx(model)
    to_onnx(model, dtype=np.float64)
    for labels in (np.array(["a", "\ud800"]), np.array([0, 2**63], dtype=np.uint64), np.array([0, 1j])):
        model.classes_ = labels
        with pytest.raises(ValueError, match="ONNX"):
            to_onnx(model, dtype=np.float64)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pegasos\[onnx\]"):
        to_onnx(LinearSVC().fit(*CANCER))
