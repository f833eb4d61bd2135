"""Losses of a user's own, fitted: against independent optima, against the core's twin, and every way to go wrong."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import own_losses as own
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import pegasos
from pegasos import LBFGS, SGD, SVC, SVR, CuttingPlane, LinearSVC, LinearSVR, Norma, Nystroem, Pegasos
from pegasos.losses import CustomLoss
from pegasos.losses.checked import CheckedLoss
from pegasos.solvers import SOLVERS

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

LOSSES = own.MARGIN | own.REGRESSION
STEPS = (Pegasos, Norma, SGD)
RNG = np.random.default_rng(0)
M, N = 120, 4
X = RNG.normal(size=(M, N))
REAL = 2.0 * (X @ [1.0, -2.0, 0.5, 0.0]) + RNG.standard_t(2, size=M) + 1.0
SIGN = np.where(REAL > 0, 1.0, -1.0)
CLASSES = np.digitize(REAL, [-2.0, 1.0, 3.0])
WEIGHT = RNG.integers(0, 4, M).astype(float)


def estimator(loss, **how):
    return (LinearSVC if loss.kind == "margin" else LinearSVR)(loss=loss, random_state=0, **how)


def target(loss):
    return SIGN if loss.kind == "margin" else REAL


def solvers(loss):
    smooth = np.isfinite(loss.smoothness)
    return ["auto", "cutting_plane", Pegasos(batch_size=16), *(["lbfgs"] if smooth else [])]


# --- the optimum -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weighted"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("name", LOSSES)
def test_bounds_of_the_optimum(name, intercept, weight):
    """D ≤ P* ≤ P, both within tol where a method reaches it; P* is found by others, from the formulas alone."""
    loss, lam = LOSSES[name], 0.02
    y = target(loss)
    best = own.optimum(loss, X, y, lam, free=intercept, weight=weight)
    for solver in solvers(loss):
        steps = isinstance(solver, Pegasos)
        model = estimator(
            loss, solver=solver, lam=lam, fit_intercept=intercept, tol=1e-7, max_iter=40 if steps else 500
        )
        c = model.fit(X, y, weight).certificate_
        assert c.dual <= best * (1 + 1e-8)
        assert best <= c.primal * (1 + 1e-8)
        b = float(model.intercept_[0]) if intercept else 0.0
        assert c.primal == pytest.approx(own.objective(loss, X, y, model.coef_.ravel(), b, lam, weight), rel=1e-12)
        assert c.dual > 0.2 * best if steps else c.converged


@pytest.mark.parametrize("solver", ["auto", "lbfgs", "cutting_plane"])
@pytest.mark.parametrize("intercept", [{"intercept": "feature", "intercept_scaling": 2.0}, {"fit_intercept": False}])
def test_a_bias_that_is_regularised(solver, intercept):
    for loss, twin in ((own.LOG_DUAL, "log"), (own.PSEUDO_HUBER, None)):
        model = estimator(loss, solver=solver, lam=0.02, tol=1e-8, **intercept).fit(X, target(loss))
        assert model.certificate_.converged
        if twin is not None:
            other = LinearSVC(loss=twin, lam=0.02, tol=1e-9, **intercept).fit(X, SIGN)
            assert model.certificate_.primal == pytest.approx(other.certificate_.primal, rel=1e-7)
            np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-3)


def test_a_conjugate_makes_the_same_certificate():
    """Declared or computed: the same bound, for the same dual variables."""
    for given, without in (("hinge*", "hinge"), ("huber*", "huber"), ("log*", "log")):
        pair = [
            estimator(LOSSES[name], solver=CuttingPlane(), tol=1e-4).fit(X, target(LOSSES[name])).certificate_
            for name in (given, without)
        ]
        assert pair[0].primal == pair[1].primal
        assert pair[0].dual == pytest.approx(pair[1].dual, rel=1e-11)


# --- the steps -------------------------------------------------------------------------------------------------------

HOW = [
    Pegasos(batch_size=7),
    Pegasos(batch_size=1, t0=0.0, output="average"),
    Pegasos(batch_size=10, output="suffix", projection=True),
    Pegasos(batch_size=3, output="random"),
    Pegasos(batch_size=M, t0=0.0, projection=True),
    Pegasos(batch_size=4, sampling="fixed"),
    Norma(batch_size=5),
    SGD(batch_size=5, eta=0.3, output="average"),
]


@pytest.mark.parametrize("intercept", ["unregularized", "feature", None])
@pytest.mark.parametrize("classes", [SIGN, CLASSES], ids=["two", "more"])
@pytest.mark.parametrize("solver", HOW, ids=range(len(HOW)))
def test_steps_are_the_cores(solver, classes, intercept):
    """The hinge loss given as functions takes the steps of the core's, in every layout and type of rows."""
    bias = {"fit_intercept": False} if intercept is None else {"intercept": intercept}
    how = {"solver": solver, "lam": 0.01, "tol": 0.0, "max_iter": 6, "random_state": 3} | bias
    for rows in (X, sparse.csr_array(X * (np.abs(X) > 0.5)), X.astype(np.float32)):
        mine = LinearSVC(loss=own.HINGE_DUAL, **how).fit(rows, classes, 1.0 + WEIGHT)
        core = LinearSVC(loss="hinge", **how).fit(rows, classes, 1.0 + WEIGHT)
        np.testing.assert_allclose(mine.coef_, core.coef_, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(mine.intercept_, core.intercept_, rtol=1e-9, atol=1e-9)
        assert mine.certificate_.dual == pytest.approx(core.certificate_.dual, rel=1e-9)


def test_steps_of_a_regression_begin_at_the_median():
    """With a steepness the units of steps are those of the targets, as of the package's own losses."""
    far = 1e6 + 1e4 * REAL
    how = {"solver": Pegasos(batch_size=5), "max_iter": 5, "tol": 0.0, "lam": 1e-3, "random_state": 0}
    tube = CustomLoss(lambda z, y: np.abs(z - y), lambda z, y: np.sign(z - y), kind="regression", steepness=1.0)
    mine, core = LinearSVR(loss=tube, **how).fit(X, far), LinearSVR(loss="epsilon_insensitive", **how).fit(X, far)
    np.testing.assert_allclose(mine.coef_, core.coef_, rtol=1e-9)


def test_sparse_rows_are_scored_where_they_lie():
    rows = sparse.random_array((60, 5000), density=0.01, format="csr", rng=np.random.default_rng(0))
    y = np.where(RNG.uniform(size=60) > 0.5, 1, -1)
    for index in (np.int32, np.int64):
        rows.indices, rows.indptr = rows.indices.astype(index), rows.indptr.astype(index)
        models = [
            LinearSVC(loss=own.LOG, solver=Pegasos(batch_size=8), lam=0.1, max_iter=4, tol=0).fit(A, y)
            for A in (rows, rows.toarray())
        ]
        np.testing.assert_allclose(models[0].coef_, models[1].coef_, atol=1e-14)


# --- more than two classes, kernels, scikit-learn --------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["auto", "cutting_plane", "lbfgs"])
def test_one_against_the_rest(solver):
    mine = LinearSVC(loss=own.LOG_DUAL, solver=solver, tol=1e-7, class_weight="balanced").fit(X, CLASSES)
    core = LinearSVC(loss="log", tol=1e-9, class_weight="balanced").fit(X, CLASSES)
    assert mine.certificate_.converged
    np.testing.assert_allclose(mine.certificate_.primal_per_class, core.certificate_.primal_per_class, rtol=1e-6)
    assert all(np.less_equal(mine.certificate_.dual_per_class, core.certificate_.primal_per_class))


def test_kernel_machines_by_nystroem():
    """With all rows as the basis the machine is the exact one, and so is its certificate."""
    how = {"gamma": 0.5, "C": 2.0, "tol": 1e-4, "random_state": 0}
    mine = SVC(loss=own.HINGE, solver=Nystroem(M), **how).fit(X, SIGN)
    exact = SVC(**how | {"tol": 1e-6}).fit(X, SIGN).certificate_
    assert mine.certificate_.dual <= exact.primal
    assert exact.dual <= mine.certificate_.primal <= exact.dual * (1 + 2e-4)
    huber = SVR(loss=own.PSEUDO_HUBER, solver=Nystroem(M, exact_bound=True), **how).fit(X, REAL)
    assert huber.certificate_.relative_gap < 1e-3
    with pytest.raises(ValueError, match="solver 'sdca' cannot minimise a CustomLoss with a kernel; Nystroem can"):
        SVC(loss=own.HINGE).fit(X, SIGN)


def test_scikit_learn():
    model = LinearSVC(loss=own.LOG_DUAL, solver=Pegasos(batch_size=16), tol=0.1)
    assert clone(model).get_params()["loss__smoothness"] == 0.25
    assert model.set_params(loss__smoothness=0.3).loss == replace(own.LOG_DUAL, smoothness=0.3)
    search = GridSearchCV(LinearSVC(), {"loss": [own.LOG, own.HINGE, "hinge"], "C": [0.1, 1.0]}, cv=3).fit(X, SIGN)
    assert search.best_score_ > 0.8
    copy = pickle.loads(pickle.dumps(search.best_estimator_.set_params(loss=own.LOG).fit(X, SIGN)))
    np.testing.assert_array_equal(copy.predict(X), search.best_estimator_.predict(X))


# --- going on --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", [*HOW[1:4], CuttingPlane(), LBFGS(memory=2)], ids=str)
def test_checkpoints(solver, tmp_path):
    """A fit that goes on from a file ends at the same bits; a file of another loss of the same name is refused."""
    loss, path = own.LOG_DUAL, tmp_path / "run.ckpt"
    other = replace(loss, value=lambda z, y: 0.5 * own.log(z, y), slope=lambda z, y: 0.5 * own.log_slope(z, y))
    other = replace(other, conjugate=None)
    how = {"solver": solver, "tol": 0.0, "lam": 0.01}
    first, last = (3, 7) if solver.name != "cutting_plane" else (4, 12)
    straight = estimator(loss, max_iter=last, **how).fit(X, CLASSES)
    estimator(loss, max_iter=first, checkpoint=path, **how).fit(X, CLASSES)
    assert path.exists()
    with pytest.raises(ValueError, match=r"loss is CustomLoss.* there and CustomLoss.* here"):
        estimator(other, checkpoint=path, **how).fit(X, CLASSES)
    resumed = estimator(loss, max_iter=last, checkpoint=path, **how).fit(X, CLASSES)
    np.testing.assert_array_equal(resumed.coef_, straight.coef_)
    assert resumed.certificate_.dual == straight.certificate_.dual


@pytest.mark.parametrize("solver", [Pegasos(batch_size=8), "lbfgs"])
def test_warm_start(solver):
    model = estimator(own.LOG_DUAL, solver=solver, warm_start=True, tol=1e-6, max_iter=5).fit(X, SIGN)
    before = model.certificate_.relative_gap
    assert model.fit(X, SIGN).certificate_.relative_gap < before


# --- going wrong -----------------------------------------------------------------------------------------------------


class Trouble(Exception):
    """The user's own."""


def test_exceptions_are_the_users_and_leave_no_trace():
    calls = []

    def slope(z, y):
        calls.append(len(z))
        if len(calls) > 20:
            raise Trouble("of my own")
        return own.log_slope(z, y)

    for solver in ("auto", "cutting_plane", Pegasos(batch_size=10)):
        calls.clear()
        model = LinearSVC(loss=CustomLoss(own.log, slope), solver=solver)
        with pytest.raises(Trouble, match="of my own"):
            model.fit(X, SIGN)
        assert not hasattr(model, "coef_")


@pytest.mark.parametrize("solver", ["auto", "cutting_plane", "lbfgs", Pegasos(batch_size=10)])
@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (CustomLoss(own.log, lambda z, y: -own.log_slope(z, y), smoothness=1.0), "not the slope of a convex loss"),
        (
            CustomLoss(lambda z, y: 1 - np.exp(-z * z), lambda z, y: 2 * z * np.exp(-z * z), smoothness=2.0),
            "not convex",
        ),
        (CustomLoss(own.log, own.log_slope, own.hinge_conjugate, smoothness=1.0), "conjugate.slope.p.. = slope.p. p"),
        (CustomLoss(own.log, lambda z, y: np.log(z) * 0, smoothness=1.0), r"slope\(.*\) is nan, but must be"),
        (CustomLoss(lambda z, y: -own.log(z, y), own.log_slope, smoothness=1.0), "must be a finite number >= 0|convex"),
    ],
    ids=["sign", "bowl", "conjugate", "nan", "negative"],
)
def test_what_is_wrong_is_found(loss, message, solver):
    model = estimator(loss, solver=solver)
    with pytest.raises(ValueError, match=message), np.errstate(all="ignore"):
        model.fit(X, SIGN)
    assert not hasattr(model, "coef_")


def test_a_bound_above_the_objective_is_refused(monkeypatch):
    """Even if no check has looked where the functions contradict each other."""
    monkeypatch.setattr(CheckedLoss, "examine", lambda *everything: None)
    loss = CustomLoss(own.hinge, own.hinge_slope, lambda a, y: own.hinge_conjugate(a, y) - 10)
    with pytest.raises(ValueError, match=r"the lower bound .* is above the objective"):
        LinearSVC(loss=loss, max_iter=5).fit(X, SIGN)


@pytest.mark.parametrize("solver", [name for name, cls in SOLVERS.items() if not cls.own_losses])
def test_who_cannot_says_who_can(solver):
    with pytest.raises(ValueError, match=f"solver '{solver}' cannot minimise a CustomLoss; 'auto', .* can"):
        LinearSVC(loss=own.HINGE, solver=solver).fit(X, SIGN)


def test_who_can_is_said_rightly():
    from pegasos.solvers.base import OWN_LOSS_SOLVERS

    assert {name for name in SOLVERS if f"'{name}'" in OWN_LOSS_SOLVERS} == {
        n for n, c in SOLVERS.items() if c.own_losses
    }


def test_refusals():
    with pytest.raises(ValueError, match="'lbfgs' needs a smooth loss: give CustomLoss its smoothness"):
        LinearSVC(loss=own.HINGE, solver="lbfgs").fit(X, SIGN)
    with pytest.raises(
        ValueError, match=r"loss='custom' is not for LinearSVR.*a CustomLoss for it has kind='regression'"
    ):
        LinearSVR(loss=own.HINGE).fit(X, REAL)
    with pytest.raises(ValueError, match=r"is not for LinearSVC.*a CustomLoss for it has kind='margin'"):
        LinearSVC(loss=own.LOPSIDED).fit(X, SIGN)
    with pytest.raises(ValueError, match="partial_fit cannot minimise a CustomLoss"):
        LinearSVC(loss=own.HINGE, lam=0.1).partial_fit(X, SIGN, classes=[-1, 1])
    with pytest.raises(ValueError, match="intercept='batch' is not for a CustomLoss"):
        LinearSVC(loss=own.HINGE, intercept="batch", solver=Pegasos(batch_size=8)).fit(X, SIGN)
    with pytest.raises(ValueError, match=r"'search'.*CustomLoss|cannot minimise a CustomLoss"):
        LinearSVC(loss=own.HINGE, intercept="search").fit(X, SIGN)
    with pytest.raises(AttributeError, match="predict_proba needs"):
        LinearSVC(loss=own.LOG).fit(X, SIGN).predict_proba(X)


def test_files(tmp_path):
    model = LinearSVC(loss=own.HINGE).fit(X, SIGN)
    with pytest.raises(ValueError, match=r"loss=CustomLoss.* is code, which a model file does not hold; keep coef_"):
        pegasos.save(model, tmp_path / "model")
    assert not (tmp_path / "model").exists()
    with pytest.raises(ValueError, match="loss 'custom' cannot be written as a LIBLINEAR model"):
        pegasos.io.write_liblinear(model, tmp_path / "model")


def test_rows_that_change_are_noticed():
    """Sparse rows are gathered by their own indices, which whoever owns them can spoil while a fit runs."""
    rows = sparse.csr_matrix(X)

    def slope(z, y):
        rows.indices[:] = 10**6
        return own.log_slope(z, y)

    model = LinearSVC(loss=CustomLoss(own.log, slope), solver=Pegasos(batch_size=4), max_iter=3)
    with pytest.raises(ValueError, match="changed"):
        model.fit(rows, SIGN)
