"""Classes of y whose rows all have weight zero: all estimators know them, and none predicts them."""

from io import BytesIO

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier

from pegasos import SVC, LinearSVC, SparseSVC, io
from pegasos.io.models import native
from pegasos.solvers import SBP

X, Y = load_iris(return_X_y=True)
X = X - X.mean(axis=0)

MODELS = {
    "SVC": SVC(),
    "one against the rest": SVC(multi_class="ovr"),
    "probabilities": SVC(loss="log", multi_class="ovr", tol=0.01),
    "sdca": SVC(solver="sdca", tol=0.01),
    "pegasos": SVC(solver="pegasos", tol=0.1),
    "lasvm": SVC(solver="lasvm"),
    "sbp": SVC(solver=SBP(nu=0.1), max_iter=300),
    "nystroem": SVC(solver="nystroem"),
    "LinearSVC": LinearSVC(),
    "crammer_singer": LinearSVC(loss="crammer_singer"),
    "SparseSVC": SparseSVC(max_support=20),
    "SparseSVC, size by folds": SparseSVC(),
}

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize("absent", [0, 1, 2])
@pytest.mark.parametrize("name", MODELS)
def test_a_class_without_weight_stays_and_never_wins(name, absent):
    weight = np.where(absent == Y, 0.0, 1.0)
    model = MODELS[name].fit(X, Y, sample_weight=weight)
    assert_array_equal(model.classes_, [0, 1, 2])
    found = model.predict(X)
    assert absent not in found
    assert model.decision_function(X).shape == (len(X), 3)
    there = absent != Y
    assert np.mean(found[there] == Y[there]) > 0.9
    if hasattr(model, "n_support_"):
        assert model.n_support_[absent] == 0
        assert_array_equal(np.sort(Y[model.support_]), np.repeat([0, 1, 2], model.n_support_))


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("absent", [0, 1, 3])
def test_the_other_machines_are_those_without_the_rows(multi_class, absent):
    y = Y.copy()
    y[::7] = 3
    weight = np.random.default_rng(0).integers(1, 3, size=len(y)) * (y != absent).astype(float)
    there = y != absent
    both = [SVC(multi_class=multi_class, gamma=0.3, tol=1e-6) for _ in range(2)]
    model, alone = both[0].fit(X, y, weight), both[1].fit(X[there], y[there], weight[there])
    assert model.certificate_.primal == alone.certificate_.primal
    assert_array_equal(model.support_vectors_, alone.support_vectors_)
    assert_array_equal(model.predict(X), alone.predict(X))
    if multi_class == "ovr":
        others = np.delete(np.arange(4), absent)
        assert_array_equal(model.decision_function(X)[:, others], alone.decision_function(X))
        assert_array_equal(model.decision_function(X)[:, absent], -1.0)
    else:
        shape = {"decision_function_shape": "ovo"}
        scores, mine = (m.set_params(**shape).decision_function(X) for m in (alone, model))
        pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
        assert_array_equal(mine[:, [absent not in pair for pair in pairs]], scores)
        for column, (i, j) in zip(mine.T, pairs, strict=True):
            if absent in (i, j):
                assert_array_equal(column, 1.0 if j == absent else -1.0)


@pytest.mark.parametrize("name", MODELS)
def test_one_class_with_weight_is_predicted_everywhere(name):
    for y, only in ((Y, 1), (Y % 2, 0), (Y % 2, 1)):
        model = MODELS[name].fit(X, y, sample_weight=(y == only).astype(float))
        assert_array_equal(model.predict(X), only)
        assert model.certificate_.converged
        assert_array_equal(model.classes_, np.unique(y))


@pytest.mark.parametrize(
    "model",
    [
        SVC(loss="log", lam=0.1),
        SVC(loss="log", multi_class="ovr", lam=0.1),
        SVC(intercept="feature", lam=0.1),
        SVC(fit_intercept=False, lam=0.1),
        LinearSVC(loss="log", lam=0.1),
        LinearSVC(loss="multinomial", lam=0.1),
        LinearSVC(intercept="feature", lam=0.1),
        LinearSVC(fit_intercept=False, lam=0.1),
        LinearSVC(loss="crammer_singer", lam=0.1),
    ],
    ids=str,
)
def test_the_certificate_of_one_class_is_that_of_its_model(model):
    y, weight = Y % 2, (Y % 2 == 1) * np.random.default_rng(0).uniform(0.5, 2.0, size=len(Y))
    model.fit(X, y, sample_weight=weight)
    c, scores, b = model.certificate_, model.decision_function(X), float(model.intercept_[0])
    if isinstance(model, SVC):
        squared_norm = float((scores[model.support_] - b) @ model.dual_coef_[0])
    else:
        squared_norm = float(np.sum(model.coef_**2))
    if model.intercept == "feature" and model.fit_intercept:
        squared_norm += b**2
    if model.loss == "multinomial" or model.loss == "crammer_singer":
        squared_norm /= 2  # the difference of two weights of opposite signs
    log = np.logaddexp(0, -scores)
    loss = {"log": log, "multinomial": log}.get(model.loss, np.maximum(0, 1 - scores))
    P = 0.05 * squared_norm + float(weight @ loss) / weight.sum()
    assert c.primal == pytest.approx(P, rel=1e-6, abs=1e-14)
    assert 0 <= c.dual <= c.primal + 1e-14
    assert c.converged == (c.gap <= model.tol * c.primal or c.primal < 1e-24)


def test_layouts_and_files():
    weight = (Y != 1).astype(float)
    K = X @ X.T
    for kernel, rows in (("precomputed", K), ("linear", sparse.csr_matrix(X)), ("linear", X)):
        model = SVC(kernel=kernel).fit(rows, Y, weight)
        assert_allclose(model.decision_function(rows), SVC(kernel="linear").fit(X, Y, weight).decision_function(X))
        again = native.decode(BytesIO(data := native.encode(model)), len(data))
        assert_array_equal(again.decision_function(rows), model.decision_function(rows))
    assert model.coef_.shape == (3, 4)


def test_libsvm_files(tmp_path):
    model = SVC(gamma=0.3).fit(X, Y, (Y != 1).astype(float))
    io.write_libsvm(model, tmp_path / "model")
    assert_array_equal(io.read_libsvm(tmp_path / "model").predict(X), model.predict(X))


def test_no_weight_at_all_is_refused():
    with pytest.raises(ValueError, match="leave no row any weight"):
        SVC(class_weight={0: 0.0, 1: 1.0, 2: 1.0}).fit(X, Y, (Y == 0).astype(float))


@pytest.mark.parametrize("estimator", [SVC(), SVC(multi_class="ovr"), LinearSVC(), SparseSVC(max_support=10)])
def test_bootstraps_without_a_rare_class(estimator):
    rare = np.append(np.flatnonzero(Y != 2)[:60], np.flatnonzero(Y == 2)[:1])
    for y in (Y, np.where(Y == 2, 1, 0)):
        bag = BaggingClassifier(estimator, n_estimators=8, random_state=0).fit(X[rare], y[rare])
        left_out = [len(rare) - 1 not in chosen for chosen in bag.estimators_samples_]
        assert any(left_out)
        assert bag.score(X[rare], y[rare]) > 0.8


def test_boosting_and_calibration_with_weights():
    boosted = AdaBoostClassifier(SVC(), n_estimators=5, random_state=0).fit(X, Y)
    assert boosted.score(X, Y) > 0.9
    weight = np.where(Y == 1, 0.0, 1.0)
    calibrated = CalibratedClassifierCV(SVC(), cv=3).fit(X, Y, sample_weight=weight)
    assert calibrated.predict_proba(X).shape == (len(X), 3)
