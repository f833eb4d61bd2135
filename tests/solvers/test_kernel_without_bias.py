"""Kernel machines without a bias: no constraint joins their dual variables."""

import warnings

import bias_oracles as b
import numpy as np
import oracles as o
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_cases import curve, objective, three_classes, two_classes
from scipy import sparse
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise

from pegasos import SVC, SVR, LinearSVC, LinearSVR, SparseSVC, _core, io, sparsify
from pegasos.fit.engine import MAX_ITER
from pegasos.kernels import gram
from pegasos.kernels.cache import padded
from pegasos.solvers import LASVM, SBP, SMO, Nystroem
from pegasos.solvers.kernel.reasons import SINGLE_CONDITIONS
from pegasos.solvers.kernel.working_set import newton_steps

#: SMO on whole kernel matrices and on working sets, and what else solves the problem exactly.
EXACT = [SMO(), SMO(working_set=16), LASVM(epochs=2)]

SHARED = {"gamma": 0.5, "fit_intercept": False, "tol": 1e-8}


def best(K, y, C, weight=None):
    """The least ½‖w‖² + C Σ c·hinge without a bias, by an independent solver."""
    weight = np.ones(len(y)) if weight is None else weight
    values, vectors = np.linalg.eigh(K)
    Z, lam = vectors * np.sqrt(np.maximum(values, 0)), 1 / (C * weight.sum())
    used = weight > 0
    return o.optimum(Z[used], y[used], loss="hinge", lam=lam, weight=weight[used], bias="none").primal


# --- the steps of the core -------------------------------------------------------------------------------------------


def solved(K, g, lo, hi, *, steps=2**40, goal=1e-12, start=None):
    """What the core makes of a working set: the variables, their slopes, and what it says."""
    k = len(g)
    local = np.zeros((5, padded(k)))
    values = K.diagonal(), g, np.zeros(k) if start is None else start, lo, hi
    for to, own in zip(local, values, strict=True):
        to[:k] = own
    wide = np.zeros((k, padded(k)), dtype=K.dtype)
    wide[:, :k] = K
    diagonal, slope, a, low, high = local
    said = _core.smo_block(wide, diagonal, slope, a, low, high, k, 0.0, goal, steps, False)
    return a[:k], slope[:k], said


def working_set(seed, k, C=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(k, 3)) * rng.uniform(0.3, 2, size=(k, 1))
    y, room = rng.choice([-1.0, 1.0], k), C * rng.uniform(0.2, 2, size=k)
    return X @ X.T + 0.1 * np.eye(k), y, np.where(y > 0, 0, -room), np.where(y > 0, room, 0)


@given(st.integers(0, 500), st.integers(1, 24), st.sampled_from([0.05, 1.0, 30.0]))
@settings(max_examples=40, deadline=None)
def test_each_step_is_the_oracles(seed, k, C):
    K, y, lo, hi = working_set(seed, k, C)
    a = np.zeros(k)
    for steps in range(1, 6):
        a = b.smo_step(K, y - K @ a, a, lo, hi)
        found, slope, _ = solved(K, y, lo, hi, steps=steps)
        np.testing.assert_allclose(found, a, atol=1e-7)
        np.testing.assert_allclose(slope, y - K @ found, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 2, 7, 8, 33, 100])
def test_the_core_ends_at_the_optimum(k, dtype):
    K, y, lo, hi = working_set(k, k, 3.0)
    K = K.astype(dtype)
    a, slope, (steps, first, last, indefinite) = solved(K, y, lo, hi, goal=1e-10)
    assert (lo <= a).all()
    assert (a <= hi).all()
    np.testing.assert_allclose(slope, y - K.astype(float) @ a, atol=1e-8)
    # Nothing that can move gains: that is the optimum of a concave problem over a box.
    assert max(np.where(a < hi, slope, 0).max(), np.where(a > lo, -slope, 0).max()) == pytest.approx(last, abs=1e-12)
    assert last <= 1e-10 < first == 1.0
    assert not indefinite
    assert steps >= 1
    assert solved(K, slope, lo, hi, start=a, goal=1e-9)[2][0] == 0


def test_no_step_falls_behind_one_variable_alone():
    for seed in range(20):
        K, y, lo, hi = working_set(seed, 12, 0.5)
        value, a = 0.0, np.zeros(12)
        for steps in range(1, 12):
            g = y - K @ a
            alone = np.clip(g / K.diagonal(), lo - a, hi - a)
            gains = alone * g - 0.5 * alone**2 * K.diagonal()
            worst = np.argmax(np.maximum(np.where(a < hi, g, -1), np.where(a > lo, -g, -1)))
            a = solved(K, y, lo, hi, steps=steps)[0]
            now = y @ a - 0.5 * a @ K @ a
            assert now >= value + gains[worst] - 1e-12
            value = now


def test_the_core_meets_equal_rows_empty_rows_and_fixed_variables():
    X = np.array([[1.0, 0], [1.0, 0], [0, 0], [0, 2.0], [1.0, 0]])
    y = np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    lo, hi = np.where(y > 0, 0, -2.0), np.where(y > 0, 2.0, 0)
    hi[4] = 0.0  # cannot move
    a, _, said = solved(X @ X.T, y, lo, hi)
    assert a[[2, 4]].tolist() == [2.0, 0.0]  # nothing holds back the row of zeros
    assert y @ a - 0.5 * a @ X @ X.T @ a == pytest.approx(y[2] * 2 + best_of_grid(X @ X.T, y), abs=1e-6)
    assert not said[3]
    assert solved(np.array([[1.0, 5.0], [5.0, 1.0]]), np.ones(2), -np.ones(2), np.ones(2))[2][3]  # no space of features
    assert solved(np.array([[-1.0]]), np.ones(1), -np.ones(1), np.ones(1))[2][3]


def best_of_grid(K, y):
    """Of rows 0, 1 and 3 between their bounds, 2 apart from zero: by looking at all of a grid."""
    rows, grid = [0, 1, 3], np.linspace(0, 2, 81)
    A = np.stack(np.meshgrid(grid, grid, grid), axis=-1).reshape(-1, 3) * y[rows]
    return float((A @ y[rows] - 0.5 * np.einsum("ai,ij,aj->a", A, K[np.ix_(rows, rows)], A)).max())


def test_newton_needs_no_balance():
    K, g, _, _ = working_set(3, 9)
    a, lo, hi = np.zeros(9), -np.full(9, 1e9), np.full(9, 1e9)
    start = g.copy()
    newton_steps(K, g, a, lo, hi, balance=False)
    np.testing.assert_allclose(a, np.linalg.solve(K, start), rtol=1e-6)
    np.testing.assert_allclose(g, 0, atol=1e-6)
    assert abs(a.sum()) > 0.1


# --- the machines ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [0.02, 1.0, 300.0])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
@pytest.mark.parametrize("solver", EXACT, ids=str)
def test_the_optimum(solver, kernel, C):
    X, y = two_classes(70)
    weight = np.random.default_rng(1).uniform(0, 3, size=len(y)).round()
    model = SVC(solver=solver, kernel=kernel, C=C, coef0=0.5, degree=2, **SHARED).fit(X, y, sample_weight=weight)
    K = {
        "rbf": pairwise.rbf_kernel(X, gamma=0.5),
        "linear": X @ X.T,
        "poly": (0.5 * X @ X.T + 0.5) ** 2,
    }[kernel]
    star, c = best(K, y.astype(float), C, weight), model.certificate_
    assert c.converged
    assert c.dual <= star * (1 + 1e-9)
    assert star <= c.primal * (1 + 1e-9)
    assert c.primal == pytest.approx(star, rel=1e-7)
    assert model.intercept_.tolist() == [0.0]


@pytest.mark.parametrize("solver", [*EXACT, Nystroem(120), SBP()], ids=str)
def test_odd_kernels_of_symmetric_rows_have_no_bias(solver):
    """(x, y) and (−x, −y) with K(−a, x) = −K(a, x): the best bias is 0, and scikit-learn's machine is this one."""
    X, y = two_classes(60, d=4)
    y = np.where(X @ [1.0, -1, 0.5, 0.2] + 0.8 * np.random.default_rng(5).normal(size=60) > 0, 1, -1)
    X, y = np.concatenate([X, -X]), np.concatenate([y, -y])
    for kernel in ("linear", "poly"):
        shared = {"kernel": kernel, "C": 0.3, "gamma": 0.3, "degree": 3}
        theirs = svm.SVC(tol=1e-9, **shared).fit(X, y)
        assert theirs.intercept_[0] == pytest.approx(0, abs=1e-6)
        tol = 0.05 if solver == SBP() else 1e-9
        ours = SVC(solver=solver, fit_intercept=False, tol=tol, random_state=0, **shared).fit(X, y)
        assert ours.intercept_[0] == 0
        values = [objective(model, X, y, 0.3) for model in (ours, theirs)]
        assert values[0] == pytest.approx(values[1], rel=tol + 1e-6)
        if solver != SBP():
            np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("working_set", [None, 16])
def test_the_linear_kernel_is_the_linear_machine(working_set):
    X, y = two_classes(200)
    shared = {"C": 0.5, "fit_intercept": False, "tol": 1e-9, "loss": "hinge"}
    ours, linear = (
        SVC(kernel="linear", solver=SMO(working_set), **shared).fit(X, y),
        LinearSVC(max_iter=100_000, **shared).fit(X, y),
    )
    assert ours.certificate_.primal == pytest.approx(linear.certificate_.primal, rel=1e-8)
    np.testing.assert_allclose(ours.coef_, linear.coef_, atol=1e-4)
    x, t = curve(100)
    shared = {"C": 2.0, "fit_intercept": False, "tol": 1e-9, "epsilon": 0.05}
    ours = SVR(kernel="linear", solver=SMO(working_set), **shared).fit(x, t)
    linear = LinearSVR(max_iter=100_000, loss="epsilon_insensitive", **shared).fit(x, t)
    assert ours.certificate_.primal == pytest.approx(linear.certificate_.primal, rel=1e-8)
    np.testing.assert_allclose(ours.coef_.ravel(), linear.coef_.ravel(), atol=1e-4)


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("solver", [*EXACT, "nystroem"], ids=str)
def test_several_classes(solver, multi_class):
    X, y = three_classes(120)
    how = {"multi_class": multi_class, "class_weight": {0: 2.0, 1: 0.5, 2: 1.0}, "C": 3.0} | SHARED
    model, other = SVC(solver=solver, **how).fit(X, y), SVC(solver="sdca", max_iter=10**5, **how).fit(X, y)
    assert model.intercept_.tolist() == [0.0, 0.0, 0.0]
    np.testing.assert_allclose(
        model.certificate_.primal_per_class, other.certificate_.primal_per_class, rtol=1e-6 if solver in EXACT else 1e-4
    )
    assert model.certificate_.dual <= other.certificate_.primal * (1 + 1e-9)
    np.testing.assert_allclose(model._scores(X), other._scores(X), atol=2e-3)


def test_pairs_of_many_classes_are_the_pairs_alone():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(9), 7)
    X = rng.normal(size=(63, 4)) + np.eye(9)[y][:, :4]
    model = SVC(C=5.0, decision_function_shape="ovo", **SHARED).fit(X, y)
    scores, k = model.decision_function(X), 0
    for i in range(9):
        for j in range(i + 1, 9):
            own = (y == i) | (y == j)
            alone = SVC(C=5.0, **SHARED).fit(X[own], y[own] == i)
            np.testing.assert_allclose(scores[own, k], alone.decision_function(X[own]), atol=1e-6)
            k += 1


def test_single_precision_and_small_caches(monkeypatch):
    X, y = two_classes(900)
    exact = SVC(C=20.0, **SHARED).fit(X, y)
    monkeypatch.setattr(gram, "MAX_DOUBLE_ROWS", 10)
    monkeypatch.setattr("pegasos.problems.kernel.FULL_CERTIFICATE_VALUES", -1)
    monkeypatch.setattr("pegasos.solvers.kernel.smo_engine.FULL_CERTIFICATE_VALUES", -1)
    for solver in (SMO(working_set=64), LASVM()):
        one, two = (
            SVC(C=20.0, solver=solver, cache_size=1e-6, n_jobs=jobs, **SHARED | {"tol": 1e-4}).fit(X, y)
            for jobs in (1, 2)
        )
        np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)
        assert one.certificate_.dual <= exact.certificate_.primal <= one.certificate_.primal
        assert one.certificate_.converged


def test_a_hard_problem_takes_newtons_method(monkeypatch):
    """A nearly singular kernel matrix and a large C: steps on two variables alone take very long."""
    monkeypatch.setattr("pegasos.solvers.kernel.whole_smo.STEPS_PER_CALL", 200)
    monkeypatch.setattr("pegasos.solvers.kernel.smo_engine.STEPS_PER_CALL", 200)
    X, y = two_classes(80)
    shared = {"C": 1e4, "gamma": 0.02, "fit_intercept": False, "tol": 1e-6}
    star = best(pairwise.rbf_kernel(X, gamma=0.02), y.astype(float), 1e4)
    for solver in (SMO(), SMO(working_set=80)):
        model = SVC(solver=solver, **shared).fit(X, y)
        assert model.certificate_.converged
        assert model.certificate_.primal == pytest.approx(star, rel=1e-5)


def test_one_class_alone():
    X, y = two_classes(40)
    weight = (y > 0).astype(float)
    for solver in (*EXACT, SBP()):
        tol = 0.05 if solver == SBP() else 1e-6
        model = SVC(solver=solver, gamma=0.5, fit_intercept=False, tol=tol).fit(X, y, sample_weight=weight)
        assert model.certificate_.converged
        assert (model.predict(X) == 1).all()


def test_auto_is_smo():
    X, y = two_classes()
    np.testing.assert_array_equal(SVC(**SHARED).fit(X, y).dual_coef_, SVC(solver="smo", **SHARED).fit(X, y).dual_coef_)


def test_kernels_that_are_not_positive_semi_definite_end():
    X, y = two_classes(200)
    for solver in EXACT:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = SVC(kernel="sigmoid", gamma=0.1, C=0.1, solver=solver, fit_intercept=False).fit(X, y)
        c = model.certificate_
        assert c.dual == -np.inf
        assert c.reason.startswith(SINGLE_CONDITIONS)
        g = np.where(y > 0, 1.0, -1.0) - model.decision_function(X)
        alpha = np.zeros(len(y))
        alpha[model.support_] = np.asarray(model.dual_coef_)[0]
        room = np.where(y > 0, 0.1, -0.1)
        assert g[alpha < np.maximum(room, 0)].max() <= 1e-3
        assert g[alpha > np.minimum(room, 0)].min() >= -1e-3


# --- around the fit --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("solver", [SMO(), SMO(working_set=32), LASVM(), Nystroem(30), SBP()], ids=str)
def test_limits_and_checkpoints(solver, multi_class, tmp_path):
    X, y = three_classes(100 if solver == SBP() else 300)
    file = tmp_path / "fit.ckpt"
    tol = 0.2 if solver == SBP() else 1e-5
    shared = {"C": 3.0, "gamma": 1.0, "fit_intercept": False, "solver": solver, "random_state": 2, "tol": tol}
    shared["multi_class"] = multi_class
    straight = SVC(**shared).fit(X, y)
    with pytest.warns(ConvergenceWarning, match=MAX_ITER):
        short = SVC(max_iter=2, checkpoint=file, **shared).fit(X, y)
    assert short.certificate_.dual <= straight.certificate_.primal <= short.certificate_.primal * (1 + tol)
    with pytest.raises(ValueError, match="intercept is none there and unregularized here"):
        SVC(checkpoint=file, **shared | {"fit_intercept": True}).fit(X, y)
    resumed = SVC(checkpoint=file, **shared).fit(X, y)
    assert not file.exists()
    assert resumed.certificate_.converged or resumed.certificate_.goal_reached
    assert resumed.certificate_.dual <= straight.certificate_.primal * (1 + 1e-12)
    assert straight.certificate_.dual <= resumed.certificate_.primal * (1 + 1e-12)


@pytest.mark.parametrize("solver", [*EXACT, Nystroem(30), SBP()], ids=str)
def test_files(solver, tmp_path):
    X, y = two_classes(90)
    model = SVC(solver=solver, gamma=0.5, fit_intercept=False, tol=0.05, random_state=0).fit(sparse.csr_matrix(X), y)
    io.save(model, tmp_path / "model.pegasos")
    again = io.load(tmp_path / "model.pegasos")
    assert again.fit_intercept is False
    assert again.intercept_.tolist() == [0.0]
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    io.write_libsvm(model, tmp_path / "model.libsvm")
    theirs = io.read_libsvm(tmp_path / "model.libsvm")
    assert theirs.intercept_.tolist() == [0.0]
    np.testing.assert_allclose(theirs.decision_function(X), model.decision_function(X), atol=1e-9)


def test_streams_go_on_without_a_bias():
    X, y = two_classes(120)
    model = SVC(lam=0.01, gamma=0.5, fit_intercept=False).fit(X[:80], y[:80])
    model.partial_fit(X[80:], y[80:])
    assert model.intercept_.tolist() == [0.0]


# --- compressed ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["basic", "aggressive", "projection"])
@pytest.mark.parametrize("refit", [True, False])
def test_compressed_machines_have_no_bias_either(variant, refit):
    if variant == "projection" and not refit:
        return
    X, y = two_classes(300)
    model = SVC(gamma=0.5, C=3.0, fit_intercept=False).fit(X, y)
    path = sparsify(model, X, y, variant=variant, refit=refit)
    for size in (0, 5, path.n_support):
        assert path.at(size).intercept_.tolist() == [0.0]
    assert path.at().score(X, y) > model.score(X, y) - 0.05


def test_the_batch_perceptron_compressed_has_sixteen_squares_of_the_norm():
    """Section 4.5 of the 2013 paper: ‖w‖ ≤ 2‖u‖ by SBP, and 4‖w‖² support vectors of that."""
    X, y = two_classes(250)
    u = SVC(gamma=0.5, C=0.3, fit_intercept=False, tol=1e-8).fit(X, y)
    square = float(u.dual_coef_[0] @ u.decision_function(X)[u.support_])
    loss = float(np.maximum(0, 1 - y * u.decision_function(X)).mean())
    w = SVC(solver=SBP(nu=loss / np.sqrt(square)), gamma=0.5, C=0.3, fit_intercept=False, tol=0.3, random_state=0)
    w.fit(X, y)
    norm = np.sqrt(float(w.dual_coef_[0] @ w.decision_function(X)[w.support_]))
    assert norm <= 2 * np.sqrt(square)
    path = sparsify(w, X, y, variant="basic", refit=False, step=0.5, tol=0.5)
    (run,) = path.runs
    assert run.reason == "f <= tol"
    assert run.iterations <= run.iteration_bound == pytest.approx(4 * norm**2)
    assert path.n_support <= 16 * square
    guarantee = path.guarantee()
    assert guarantee.holds
    assert guarantee.slant_loss <= guarantee.hinge_loss
    assert path.at().intercept_.tolist() == [0.0]


def test_sparse_svc_without_a_bias(tmp_path):
    X, y = two_classes(200)
    model = SparseSVC(solver=SBP(), tol=0.1, gamma=0.5, fit_intercept=False, max_support=12, random_state=0).fit(X, y)
    assert model.intercept_.tolist() == [0.0]
    assert len(model.support_) == 12
    io.save(model, tmp_path / "model")
    again = io.load(tmp_path / "model")
    assert again.fit_intercept is False
    assert again.guarantee_ == model.guarantee_
