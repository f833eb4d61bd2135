"""The estimators as users meet them: scikit-learn's habits, and the optima of scikit-learn's own estimators."""

import inspect
import pickle
import warnings

import numpy as np
import oracles as o
import pandas as pd
import polars as pl
import pytest
import sklearn.svm
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pegasos import SDCA, InteriorPoint, LinearSVC, LinearSVR, Pegasos
from pegasos.losses import CrammerSinger, Huber, Quantile

TIGHT = {"tol": 1e-10, "max_iter": 20_000}


def scaled(load):
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def cancer():
    return scaled(load_breast_cancer)


@pytest.fixture(scope="module")
def iris():
    return scaled(load_iris)


@pytest.fixture(scope="module")
def diabetes():
    X, y = scaled(load_diabetes)
    return X, (y - y.mean()) / y.std()


def objective(model, X, y, loss, C=1.0, weight=None):
    """½‖w‖² + C Σ c ℓ of anything with coef_ and intercept_; y as the oracle wants it."""
    c = np.ones(len(y)) if weight is None else weight
    lam = 1 / (C * c.sum())
    w, b = np.squeeze(model.coef_), np.squeeze(model.intercept_)
    return o.primal(X, y, w, b, loss=loss, lam=lam, weight=c) / lam


# --- as scikit-learn has it ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["LinearSVC", "LinearSVR"])
def test_every_parameter_of_scikit_learn_is_accepted(name):
    ours, theirs = ({"LinearSVC": LinearSVC, "LinearSVR": LinearSVR}[name], getattr(sklearn.svm, name))
    defaults = {p.name: p.default for p in inspect.signature(theirs).parameters.values()}
    X, y = load_iris(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ours(**defaults).fit(X, y)
    assert model.get_params().items() >= defaults.items()


@pytest.mark.parametrize(
    "parameters",
    [
        {"penalty": "l2", "loss": "squared_hinge", "dual": True, "tol": 1e-4, "C": 1.0},
        {"multi_class": "ovr", "fit_intercept": True, "intercept_scaling": 1, "class_weight": None},
        {"verbose": 0, "random_state": None, "max_iter": 1000},
        {"C": 0.1, "loss": "hinge", "dual": "auto", "random_state": 42},
        {"multi_class": "crammer_singer", "random_state": np.random.RandomState(0)},
        {"C": 2, "dual": False, "loss": "squared_hinge", "class_weight": "balanced"},
    ],
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_calls_for_scikit_learn_run_and_give_the_same_attributes(parameters, n_classes):
    X, y = make_classification(90, 6, n_informative=5, n_redundant=0, n_classes=n_classes, random_state=0)
    ours = LinearSVC(**parameters).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        theirs = sklearn.svm.LinearSVC(**parameters).fit(X, y)
    for name in ("coef_", "intercept_", "classes_"):
        mine, yours = getattr(ours, name), getattr(theirs, name)
        assert (mine.shape, mine.dtype) == (yours.shape, yours.dtype)
    for method in ("predict", "decision_function"):
        mine, yours = getattr(ours, method)(X), getattr(theirs, method)(X)
        assert (mine.shape, mine.dtype) == (yours.shape, yours.dtype)
    assert type(ours.n_iter_) is int
    assert ours.n_features_in_ == 6
    assert np.mean(ours.predict(X) == theirs.predict(X)) > 0.9


@pytest.mark.parametrize(
    "parameters",
    [
        {"epsilon": 0.1, "C": 2.0, "loss": "epsilon_insensitive", "dual": True, "random_state": 0},
        {"epsilon": 0.0, "tol": 1e-4, "fit_intercept": True, "intercept_scaling": 1.0, "verbose": 0},
        {"loss": "squared_epsilon_insensitive", "dual": "auto", "max_iter": 5000},
    ],
)
def test_regression_calls_for_scikit_learn(parameters, diabetes):
    X, y = diabetes
    ours = LinearSVR(**parameters).fit(X, y)
    theirs = sklearn.svm.LinearSVR(**{"max_iter": 10_000} | parameters).fit(X, y)
    for name in ("coef_", "intercept_"):
        mine, yours = getattr(ours, name), getattr(theirs, name)
        assert (np.shape(mine), mine.dtype) == (np.shape(yours), np.asarray(yours).dtype)
    assert np.corrcoef(ours.predict(X), theirs.predict(X))[0, 1] > 0.99


def test_parameters_are_kept_as_given():
    solver = Pegasos(batch_size=4)
    model = LinearSVC(C=3, solver=solver, loss=CrammerSinger(cost=((0, 1), (2, 0))), callback=print)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert copy.set_params(C=5).C == 5
    assert model.C == 3
    with pytest.raises(ValueError, match="Invalid parameter 'gamma'"):
        copy.set_params(gamma=1)
    assert "Pegasos(batch_size=4" in repr(model)


@pytest.mark.parametrize("solver", ["auto", "sdca", "pegasos", "interior_point", "cutting_plane"])
@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_pickling(cancer, solver, warm):
    X, y = cancer
    model = LinearSVC(solver=solver, warm_start=warm, max_iter=20).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.decision_function(X), model.decision_function(X))
    assert copy.certificate_ == model.certificate_
    assert list(copy.trace_) == list(model.trace_)
    np.testing.assert_array_equal(copy.fit(X, y).coef_, model.fit(X, y).coef_)


@pytest.mark.parametrize("model", [LinearSVC(lam=0.01), LinearSVR(lam=0.01)], ids=["SVC", "SVR"])
def test_pickling_between_pieces(model, cancer):
    X, y = cancer
    first = {"classes": [0, 1]} if isinstance(model, LinearSVC) else {}
    model.partial_fit(X[:200], y[:200], **first)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.partial_fit(X, y).coef_, model.partial_fit(X, y).coef_)


def test_model_selection(cancer):
    X, y = cancer
    search = GridSearchCV(LinearSVC(), {"C": [0.01, 1.0], "solver": ["sdca", "auto"]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.95
    assert cross_val_score(make_pipeline(StandardScaler(), LinearSVC()), X, y, cv=3).min() > 0.94
    assert cross_val_score(LinearSVR(), *scaled(load_diabetes), cv=3, scoring="r2").mean() > 0.4


def test_calibration(cancer):
    X, y = cancer
    p = CalibratedClassifierCV(LinearSVC(), cv=3).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert np.mean((p[:, 1] > 0.5) == y) > 0.95


def test_pandas_frames():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = LinearSVC().fit(X, y)
    assert model.feature_names_in_.tolist() == X.columns.tolist()
    np.testing.assert_array_equal(model.predict(X), LinearSVC().fit(X.to_numpy(), y.to_numpy()).predict(X.to_numpy()))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X[X.columns[::-1]])
    with pytest.warns(UserWarning, match="valid feature names"):
        model.predict(X.to_numpy())
    model.fit(X, pd.Series(y).map({0: "a", 1: "b", 2: "c"}).astype("category"))
    assert model.classes_.tolist() == ["a", "b", "c"]


def test_polars_frames():
    X, y = load_iris(return_X_y=True)
    frame = pl.DataFrame(X, schema=["a", "b", "c", "d"], orient="row")
    model = LinearSVC().fit(frame, pl.Series(y))
    # Names are remembered where scikit-learn knows polars.
    known = getattr(Ridge().fit(frame, y), "feature_names_in_", None)
    assert (known is None) == (not hasattr(model, "feature_names_in_"))
    assert known is None or model.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    np.testing.assert_array_equal(model.coef_, LinearSVC().fit(X, y).coef_)
    np.testing.assert_array_equal(model.predict(frame), LinearSVC().fit(X, y).predict(X))


@pytest.mark.parametrize(
    ("low", "high"),
    [("ham", "spam"), (False, True), (-1, 1), (0.0, 1.0), (3, 7), (np.uint8(0), np.uint8(255))],
)
def test_labels_of_all_kinds(cancer, low, high):
    X, y = cancer
    labels = np.where(y == 1, high, low)
    model = LinearSVC().fit(X, labels)
    assert model.classes_.tolist() == np.unique(labels).tolist()
    assert model.classes_.dtype == model.predict(X).dtype == labels.dtype
    np.testing.assert_array_equal(model.coef_, LinearSVC().fit(X, y).coef_)
    assert model.score(X, labels) > 0.97
    if isinstance(low, str):
        assert LinearSVC().fit(X, labels.astype(object)).predict(X[:3]).dtype == object
        assert LinearSVC().fit(X, labels.tolist()).score(X, labels.tolist()) > 0.97


def test_columns_of_labels_are_flattened(cancer):
    X, y = cancer
    with pytest.warns(UserWarning, match="column-vector y"):
        LinearSVC().fit(X, y[:, None])


# --- the optima of scikit-learn --------------------------------------------------------------------------------------


def test_hinge_is_svc(cancer):
    X, y = cancer
    for C in (0.01, 1.0):
        ours = LinearSVC(C=C, **TIGHT).fit(X, y)
        theirs = sklearn.svm.SVC(kernel="linear", C=C, tol=1e-8).fit(X, y)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-3, atol=1e-4)
        assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-3)
        value = objective(theirs, X, 2 * y - 1, "hinge", C)
        assert objective(ours, X, 2 * y - 1, "hinge", C) == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("intercept", [False, True])
def test_liblinear_losses(cancer, loss, intercept):
    X, y = cancer
    how = {"fit_intercept": intercept, "intercept_scaling": 2.0, "C": 0.1, "loss": loss}
    ours = LinearSVC(**how, intercept="feature", **TIGHT).fit(X, y)
    theirs = sklearn.svm.LinearSVC(**how, dual=True, tol=1e-10, max_iter=10**6).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("solver", ["auto", "sdca"])
def test_log_is_logistic_regression(cancer, C, intercept, solver):
    X, y = cancer
    ours = LinearSVC(loss="log", C=C, fit_intercept=intercept, solver=solver, **TIGHT).fit(X, y)
    theirs = LogisticRegression(C=C, fit_intercept=intercept, tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-3)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-3)
    np.testing.assert_allclose(ours.predict_log_proba(X), theirs.predict_log_proba(X), rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("solver", ["auto", "sdca"])
def test_multinomial_is_logistic_regression(iris, C, intercept, solver):
    X, y = iris
    ours = LinearSVC(loss="multinomial", C=C, fit_intercept=intercept, solver=solver, **TIGHT).fit(X, y)
    theirs = LogisticRegression(C=C, fit_intercept=intercept, tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-3, atol=1e-3)
    centred = [m.intercept_ - m.intercept_.mean() for m in (ours, theirs)]
    np.testing.assert_allclose(*centred, atol=1e-3)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-3)


def test_multinomial_of_two_classes(cancer):
    """Two classes have one weight vector, the difference: ½‖W‖² = ¼‖w₁ − w₀‖², so C counts double."""
    X, y = cancer
    ours = LinearSVC(loss="multinomial", C=0.5, **TIGHT).fit(X, y)
    theirs = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit(X, y)
    assert ours.coef_.shape == (1, X.shape[1])
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-3)


def test_one_vs_rest_is_scikit_learns(iris):
    X, y = iris
    ours = LinearSVC(C=0.5, **TIGHT).fit(X, y)
    theirs = OneVsRestClassifier(sklearn.svm.SVC(kernel="linear", C=0.5, tol=1e-8)).fit(X, y)
    for k, part in enumerate(theirs.estimators_):
        sign = np.where(y == k, 1, -1)
        mine = LinearSVC()
        mine.coef_, mine.intercept_ = ours.coef_[k], ours.intercept_[k]
        assert objective(mine, X, sign, "hinge", 0.5) == pytest.approx(objective(part, X, sign, "hinge", 0.5), rel=1e-6)
        assert ours.certificate_.primal_per_class[k] * 0.5 * len(y) == pytest.approx(
            objective(mine, X, sign, "hinge", 0.5), rel=1e-12
        )


def test_crammer_singer_is_scikit_learns(iris):
    X, y = iris
    ours = LinearSVC(multi_class="crammer_singer", fit_intercept=False, **TIGHT).fit(X, y)
    theirs = sklearn.svm.LinearSVC(multi_class="crammer_singer", fit_intercept=False, tol=1e-8, max_iter=10**6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of scikit-learn 1.6, whose steps end too late
        theirs.fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-3, atol=1e-3)


def test_costs_move_predictions_where_mistakes_are_cheap(iris):
    X, y = iris
    plain = LinearSVC(loss="crammer_singer", C=0.1).fit(X, y)
    cost = np.ones((3, 3)) - np.eye(3)
    cost[1, 2] = 10  # calling a 1 a 2 is costly
    wary = LinearSVC(loss=CrammerSinger(cost=tuple(map(tuple, cost))), C=0.1).fit(X, y)
    mistakes = [np.sum((y == 1) & (model.predict(X) == 2)) for model in (plain, wary)]
    assert mistakes[1] < mistakes[0]
    assert np.sum(wary.predict(X) == 2) < np.sum(plain.predict(X) == 2)


@pytest.mark.parametrize("solver", ["auto", "sdca"])
def test_squared_is_ridge(diabetes, solver):
    X, y = diabetes
    ours = LinearSVR(loss="squared", C=0.1, solver=solver, **TIGHT).fit(X, y + 3)
    theirs = Ridge(alpha=10.0).fit(X, y + 3)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-3, atol=1e-4)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, rel=1e-4)


@pytest.mark.parametrize("solver", ["auto", "sdca"])
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_epsilon_insensitive_is_svr(diabetes, epsilon, solver):
    X, y = diabetes
    ours = LinearSVR(epsilon=epsilon, C=0.5, solver=solver, tol=1e-8, max_iter=20_000).fit(X, y)
    theirs = sklearn.svm.SVR(kernel="linear", epsilon=epsilon, C=0.5, tol=1e-8).fit(X, y)
    loss = o.EpsilonInsensitive(epsilon)
    assert objective(ours, X, y, loss, 0.5) == pytest.approx(objective(theirs, X, y, loss, 0.5), rel=1e-6)
    np.testing.assert_allclose(ours.coef_, theirs.coef_.ravel(), atol=1e-3)


@pytest.mark.parametrize(
    ("loss", "oracle"),
    [
        (Quantile(0.2), o.Quantile(0.2)),
        ("quantile", o.Quantile(0.5)),
        (Huber(0.5), o.Huber(0.5)),
        ("huber", o.Huber(1.35)),
        ("squared_epsilon_insensitive", o.SquaredEpsilonInsensitive(0.2)),
    ],
)
@pytest.mark.parametrize("intercept", ["unregularized", "feature"])
def test_other_regression_losses_reach_the_oracles_optimum(diabetes, loss, oracle, intercept):
    X, y = diabetes[0][:80], diabetes[1][:80] + 2
    best = o.optimum(X, y, loss=oracle, lam=1 / 80, bias=intercept)
    ours = LinearSVR(loss=loss, epsilon=0.2, intercept=intercept, tol=1e-8, max_iter=20_000).fit(X, y)
    assert ours.certificate_.primal == pytest.approx(best.primal, rel=1e-6)
    assert ours.certificate_.dual <= best.primal * (1 + 1e-9)


def test_quantiles_are_quantiles(diabetes):
    X, y = diabetes
    for tau in (0.1, 0.5, 0.9):
        below = np.mean(y <= LinearSVR(loss=Quantile(tau), C=10.0).fit(X, y).predict(X))
        assert below == pytest.approx(tau, abs=0.05)


# --- probabilities ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [LinearSVC(), LinearSVC(loss="squared_hinge"), LinearSVC(loss="crammer_singer")])
def test_no_probabilities_without_a_likelihood(model, iris):
    model.fit(*iris)
    for method in ("predict_proba", "predict_log_proba"):
        assert not hasattr(model, method)
        with pytest.raises(AttributeError) as error:
            getattr(model, method)(iris[0])
        assert "CalibratedClassifierCV" in str(error.value).splitlines()[-1]  # what a user sees last


def test_probabilities_of_one_vs_rest_add_up(iris):
    X, y = iris
    p = LinearSVC(loss="log").fit(X, y).predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    theirs = OneVsRestClassifier(LogisticRegression()).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(p, theirs, atol=0.02)


def test_probabilities_far_away_are_finite():
    model = LinearSVC(loss="log").fit([[0.0], [1.0], [2.0]], [0, 1, 2])
    for X in ([[1e300]], [[-1e300]]):
        assert np.isfinite(model.predict_proba(X)).all()
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
        assert not np.isnan(model.predict_log_proba(X)).any()


# --- weights ---------------------------------------------------------------------------------------------------------

WEIGHTED = [
    LinearSVC(**TIGHT),
    LinearSVC(loss="log", **TIGHT),
    LinearSVC(loss="multinomial", **TIGHT),
    LinearSVC(loss="crammer_singer", **TIGHT),
    LinearSVC(solver="sdca", intercept="feature", **TIGHT),
    LinearSVR(**TIGHT),
    LinearSVR(loss="huber", **TIGHT),
]


@pytest.mark.parametrize("model", WEIGHTED)
def test_weight_two_is_the_row_twice_and_zero_is_its_absence(model, iris):
    X, y = iris
    count = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = clone(model).fit(X, y, sample_weight=count)
    repeated = clone(model).fit(np.repeat(X, count, axis=0), np.repeat(y, count))
    assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=1e-8)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=2e-3)


@pytest.mark.parametrize("lam", [None, 0.01])
def test_all_weights_times_a_constant(lam, cancer):
    """With lam nothing changes; with C it is C that is multiplied."""
    X, y = cancer
    tripled = LinearSVC(C=0.1, lam=lam, **TIGHT).fit(X, y, sample_weight=np.full(len(y), 3.0))
    plain = LinearSVC(C=0.1 * 3, lam=lam, **TIGHT).fit(X, y)
    np.testing.assert_allclose(tripled.coef_, plain.coef_, atol=1e-3)
    assert tripled.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-8)


@pytest.mark.parametrize("loss", ["hinge", "multinomial"])
def test_class_weights_are_sample_weights(loss, iris):
    X, y = iris[0][:130], iris[1][:130]  # unbalanced
    factors = {0: 1.0, 1: 2.5, 2: 0.5}
    balanced = len(y) / (3 * np.bincount(y))
    for class_weight, factor in ((factors, np.array(list(factors.values()))), ("balanced", balanced)):
        one = LinearSVC(loss=loss, class_weight=class_weight).fit(X, y)
        other = LinearSVC(loss=loss).fit(X, y, sample_weight=factor[y])
        np.testing.assert_array_equal(one.coef_, other.coef_)


def test_class_weights_may_be_partial_and_named(cancer):
    X, y = cancer
    names = np.array(["benign", "malignant"])[y]
    one = LinearSVC(class_weight={"malignant": 3.0}).fit(X, names)
    np.testing.assert_array_equal(one.coef_, LinearSVC().fit(X, y, sample_weight=np.where(y, 3.0, 1.0)).coef_)


def test_lam_wins_over_C(cancer):
    X, y = cancer
    one = LinearSVC(lam=0.01, C=55.0).fit(X, y)
    np.testing.assert_array_equal(one.coef_, LinearSVC(lam=0.01).fit(X, y).coef_)
    np.testing.assert_allclose(one.coef_, LinearSVC(C=1 / (0.01 * len(y))).fit(X, y).coef_, rtol=1e-6)


# --- the certificate -------------------------------------------------------------------------------------------------

BIASES = [
    {"fit_intercept": False},
    {"intercept": "unregularized"},
    {"intercept": "feature", "intercept_scaling": 2.0},
    {"intercept": "search", "solver": "sdca"},
    {"intercept": "subgradient", "solver": Pegasos()},
    {"intercept": "batch", "solver": Pegasos(batch_size=32)},
]


@pytest.mark.parametrize("bias", BIASES, ids=lambda b: b.get("intercept", "none"))
@pytest.mark.parametrize("loss", ["hinge", "log", "crammer_singer", "multinomial"])
@pytest.mark.parametrize("data", ["cancer", "iris"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_certificate_is_what_the_weights_say(data, loss, bias, request):
    joint = loss in ("crammer_singer", "multinomial")
    if joint and (data == "cancer" or bias.get("intercept") in ("search", "batch")):
        pytest.skip("two classes keep the difference of their weights; joint losses have no such bias")
    X, y = request.getfixturevalue(data)
    model = LinearSVC(loss=loss, lam=0.01, max_iter=20, **bias).fit(X, y)
    c = model.certificate_
    assert c.gap == max(c.primal - c.dual, 0)
    assert c.relative_gap == c.gap / c.primal
    assert len(c.primal_per_class) == len(c.dual_per_class) == (1 if joint else len(model.coef_))
    assert sum(c.primal_per_class) == pytest.approx(c.primal, rel=1e-14)
    small = [p - d <= model.tol * p for p, d in zip(c.primal_per_class, c.dual_per_class, strict=True)]
    assert c.converged == all(small)
    assert (c.reason == "gap <= tol * primal") == c.converged
    B = bias.get("intercept_scaling", 1.0)
    fine = {"crammer_singer": o.CrammerSinger(3), "multinomial": o.Multinomial(3)}.get(loss, loss)
    parts = (
        [(model.coef_, model.intercept_, y)]
        if joint
        else [
            (model.coef_[k], model.intercept_[k], np.where(y == (1 if len(model.coef_) == 1 else k), 1, -1))
            for k in range(len(model.coef_))
        ]
    )
    for (w, b, target), value in zip(parts, c.primal_per_class, strict=True):
        want = o.primal(X, target, w, b, loss=fine, lam=0.01)
        if bias.get("intercept") == "feature":
            want += 0.01 / 2 * np.sum((b / B) ** 2)
        assert value == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared", "huber", "quantile"])
@pytest.mark.parametrize("bias", BIASES[:4], ids=lambda b: b.get("intercept", "none"))
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_certificate_of_a_regression(diabetes, loss, bias):
    X, y = diabetes
    model = LinearSVR(loss=loss, lam=0.01, max_iter=20, **bias).fit(X, y)
    want = o.primal(X, y, model.coef_, model.intercept_[0], loss=loss, lam=0.01)
    if bias.get("intercept") == "feature":
        want += 0.01 / 2 * float(model.intercept_[0] / 2.0) ** 2
    assert model.certificate_.primal == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize("bias", BIASES[:4], ids=lambda b: b.get("intercept", "none"))
def test_the_lower_bound_is_one(cancer, bias):
    X, y = cancer[0][:100], cancer[1][:100]
    kind = "none" if "fit_intercept" in bias else {"search": "unregularized"}.get(bias["intercept"], bias["intercept"])
    best = o.optimum(X, 2 * y - 1, loss="hinge", lam=0.1, bias=kind, B=2.0)
    c = LinearSVC(lam=0.1, **bias).fit(X, y).certificate_
    assert c.dual <= best.primal * (1 + 1e-9)
    assert c.primal >= best.dual * (1 - 1e-9)
    assert c.primal - best.primal <= c.gap + 1e-12


# --- defaults --------------------------------------------------------------------------------------------------------

SETS = {"breast_cancer": load_breast_cancer, "digits": load_digits, "wine": load_wine, "iris": load_iris}


@pytest.mark.parametrize("standardised", [False, True], ids=["raw", "standardised"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "log", "multinomial", "crammer_singer"])
@pytest.mark.parametrize("name", SETS)
def test_defaults_converge(name, loss, standardised):
    if loss == "crammer_singer" and not standardised:
        pytest.skip("only first-order methods minimise this loss, and they want columns of similar size")
    X, y = SETS[name](return_X_y=True)
    if standardised:
        X = StandardScaler().fit_transform(X)
    model = LinearSVC(loss=loss).fit(X, y)
    assert model.certificate_.converged
    assert model.score(X, y) > (0.95 if name != "iris" else 0.9)


@pytest.mark.parametrize("standardised", [False, True], ids=["raw", "standardised"])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared", "huber", "quantile", "squared_epsilon_insensitive"])
def test_regression_defaults_converge(loss, standardised):
    X, y = load_diabetes(return_X_y=True, scaled=False)
    if standardised:
        X = StandardScaler().fit_transform(X)
    model = LinearSVR(loss=loss).fit(X, y)
    assert model.certificate_.converged
    assert model.score(X, y) > 0.4


# --- the same bits ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("solver", ["auto", "sdca", SDCA(blocks=4), InteriorPoint(), "pegasos", "cutting_plane"])
@pytest.mark.parametrize("n_classes", [2, 20])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_same_bits_for_any_number_of_threads(layout, solver, n_classes, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("pegasos.solvers.linear.lanes.MIN_THREADED_WORK", 0)
    X, y = make_classification(600, 30, n_informative=20, n_classes=n_classes, n_clusters_per_class=1, random_state=0)
    models = [LinearSVC(solver=solver, n_jobs=jobs, max_iter=12).fit(layout(X), y) for jobs in (None, 1, 2, 3)]
    for other in models[1:]:
        np.testing.assert_array_equal(other.coef_, models[0].coef_)
        np.testing.assert_array_equal(other.intercept_, models[0].intercept_)
        assert other.certificate_.gap == models[0].certificate_.gap


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_seeds(cancer):
    X, y = cancer

    def coef(state):
        return LinearSVC(solver="sdca", max_iter=3, tol=0, random_state=state).fit(X, y).coef_

    np.testing.assert_array_equal(coef(0), coef(None))
    np.testing.assert_array_equal(coef(5), coef(5))
    np.testing.assert_array_equal(coef(np.random.RandomState(5)), coef(np.random.RandomState(5)))
    np.testing.assert_array_equal(coef(np.random.default_rng(5)), coef(np.random.default_rng(5)))
    assert (coef(5) != coef(6)).any()
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    coef(None)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002
