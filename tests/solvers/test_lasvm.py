"""LASVM: its visits one by one, the optimum after finishing, and the loop around it."""

from dataclasses import replace

import bias_oracles as b
import numpy as np
import oracles as o
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_cases import curve, problem, three_classes, two_classes
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise

from pegasos import LASVM, SVC, SVR, _core
from pegasos.fit.engine import Options
from pegasos.kernels import gram
from pegasos.kernels.functions import Kernel
from pegasos.kernels.gram import PartRows
from pegasos.losses import Hinge
from pegasos.problems.kernel import KernelProblem
from pegasos.problems.part import Part

GAMMA = 0.5


def passed(X, y, C, weight, *, epochs, tau, seed, bias="free"):
    """An engine after its passes, without finishing."""
    kernel, m = Kernel("rbf", GAMMA), len(y)
    part = Part(None, y, weight, Hinge(), C)
    whole = KernelProblem(X, kernel, (part,), 1 / (C * m), float(m), PartRows(X, kernel, [None], 200.0, 1), bias)
    solver = LASVM(epochs=epochs, finish=False, tau=tau)
    engine = solver.engine(whole, Options(tol=1e-3, seed=seed))
    while engine.stuck is None:
        engine.advance()
    return engine


# --- the visits ------------------------------------------------------------------------------------------------------


@given(st.integers(0, 1000), st.sampled_from([0.1, 1.0, 50.0]), st.sampled_from([1, 2]), st.sampled_from([1e-3, 0.3]))
@settings(max_examples=20, deadline=None)
def test_visits_without_a_bias_are_the_oracles(seed, C, epochs, tau):
    X, y = two_classes(30, seed=seed)
    y = y.astype(float)
    weight = np.maximum(np.random.default_rng(seed).uniform(-0.3, 2, size=30), 0)
    engine = passed(X, y, C, weight, epochs=epochs, tau=tau, seed=seed, bias="none")
    movable = np.flatnonzero(weight > 0)
    order = np.concatenate([np.random.default_rng([seed, 0, e]).permutation(movable) for e in range(epochs)])
    alpha, S = b.lasvm(pairwise.rbf_kernel(X, gamma=GAMMA), y, C * weight, order.tolist(), tau)
    np.testing.assert_allclose(engine.states[0].alpha, alpha, atol=1e-9)
    assert engine.online[0].members.tolist() == S
    np.testing.assert_allclose(engine.states[0].F, pairwise.rbf_kernel(X, gamma=GAMMA) @ alpha, atol=1e-9)


@given(st.integers(0, 1000), st.sampled_from([0.1, 1.0, 50.0]), st.sampled_from([1, 2]), st.sampled_from([1e-3, 0.3]))
@settings(max_examples=20, deadline=None)
def test_visits_are_the_oracles(seed, C, epochs, tau):
    X, y = two_classes(30, seed=seed)
    y = y.astype(float)
    # No two alike: where both of a pair reach their bounds at once, rounding decides which of them does.
    weight = np.maximum(np.random.default_rng(seed).uniform(-0.3, 2, size=30), 0)
    engine = passed(X, y, C, weight, epochs=epochs, tau=tau, seed=seed)
    movable = np.flatnonzero(weight > 0)
    order = np.concatenate([np.random.default_rng([seed, 0, e]).permutation(movable) for e in range(epochs)])
    alpha, S = o.lasvm(pairwise.rbf_kernel(X, gamma=GAMMA), y, C * weight, order.tolist(), tau)
    np.testing.assert_allclose(engine.states[0].alpha, alpha, atol=1e-9)
    assert engine.online[0].members.tolist() == S
    np.testing.assert_allclose(engine.states[0].F, pairwise.rbf_kernel(X, gamma=GAMMA) @ alpha, atol=1e-9)
    assert engine.states[0].alpha.sum() == pytest.approx(0, abs=1e-9)


def test_scans_of_the_core():
    rng = np.random.default_rng(0)
    row, t, F = np.arange(6), np.array([1.0, 1, 1, -1, -1, -1]), rng.normal(size=6)
    lo, hi = np.where(t > 0, 0.0, -1.0), np.where(t > 0, 1.0, 0.0)
    alpha = np.array([0.0, 1.0, 0.5, 0.0, -1.0, -0.5])
    members = np.array([5, 0, 4, 1, 2, 3])
    g = t - F
    top, bottom, finite = _core.lasvm_extremes(members, 6, row, t, lo, hi, alpha, F, 0.0)
    assert finite
    assert top == max((s for s in range(6) if alpha[s] < hi[s]), key=lambda s: g[s])
    assert bottom == min((s for s in range(6) if alpha[s] > lo[s]), key=lambda s: g[s])
    assert _core.lasvm_extremes(members, 0, row, t, lo, hi, alpha, F, 0.0)[:2] == (-1, -1)
    assert not _core.lasvm_extremes(members, 6, row, t, lo, hi, alpha, F * np.nan, 0.0)[2]
    inside = np.ones(6, dtype=bool)
    kept = _core.lasvm_leave(members, 6, row, t, lo, hi, alpha, F, inside, -np.inf, np.inf)
    assert members[:kept].tolist() == [5, 4, 1, 2]  # those at zero are gone, the others in order
    assert inside.tolist() == [False, True, True, False, True, True]
    with pytest.raises(IndexError):
        _core.lasvm_extremes(members + 6, 6, row, t, lo, hi, alpha, F, 0.0)
    with pytest.raises(ValueError, match="alpha"):
        _core.lasvm_extremes(members, 6, row, t, lo, hi, alpha[:5], F, 0.0)


# --- the optimum -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_finishing_reaches_the_optimum(kernel, C, bias):
    X, y = two_classes(150)
    weight = np.random.default_rng(1).uniform(0, 3, size=len(y)).round()
    shared = {"kernel": kernel, "gamma": GAMMA, "C": C, "coef0": 0.5, "tol": 1e-8, "class_weight": "balanced"}
    shared["fit_intercept"] = bias
    model = SVC(solver="lasvm", random_state=4, **shared).fit(X, y, sample_weight=weight)
    exact = SVC(**shared).fit(X, y, sample_weight=weight)
    assert model.certificate_.converged
    assert model.certificate_.primal == pytest.approx(exact.certificate_.primal, rel=1e-7)
    np.testing.assert_allclose(model.decision_function(X), exact.decision_function(X), atol=1e-4)


def test_agrees_with_scikit_learn():
    X, y = three_classes(200)
    shared = {"gamma": 0.7, "tol": 1e-8, "C": 2.0}
    ours, theirs = SVC(solver=LASVM(epochs=2), **shared).fit(X, y), svm.SVC(**shared).fit(X, y)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)
    x, t = curve()
    ours, theirs = (cls(gamma=1.0, tol=1e-8) for cls in (SVR, svm.SVR))
    ours.set_params(solver=LASVM()).fit(x, t)
    np.testing.assert_allclose(ours.predict(x), theirs.fit(x, t).predict(x), atol=1e-4)


def test_one_pass_is_nearly_as_good():
    X, y = two_classes(1000)
    exact = SVC(gamma=GAMMA).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="finish=False"):
        model = SVC(gamma=GAMMA, solver=LASVM(finish=False)).fit(X, y)
    c = model.certificate_
    assert c.dual <= exact.certificate_.primal <= c.primal
    assert c.primal <= 1.1 * exact.certificate_.primal
    assert model.score(X, y) > exact.score(X, y) - 0.02
    assert 0 < model.n_kernel_evaluations_ <= 1.1 * len(y) ** 2
    SVC(gamma=GAMMA, solver=LASVM(finish=False), tol=0.2).fit(X, y)  # good enough: no warning


@pytest.mark.parametrize("kind", ["precomputed", "function"])
def test_kernels_of_the_user(kind):
    X, y = three_classes()
    K = pairwise.rbf_kernel(X, gamma=GAMMA)
    kernel = kind if kind == "precomputed" else lambda A, B: pairwise.rbf_kernel(A, B, gamma=GAMMA)
    model = SVC(kernel=kernel, tol=1e-8, solver="lasvm").fit(K if kind == "precomputed" else X, y)
    own = SVC(gamma=GAMMA, tol=1e-8).fit(X, y)
    scores = model.decision_function(K if kind == "precomputed" else X)
    np.testing.assert_allclose(scores, own.decision_function(X), atol=1e-5)


@pytest.mark.parametrize("cache_size", [200.0, 1e-6])
def test_single_precision_caches_and_threads(cache_size, monkeypatch):
    monkeypatch.setattr(gram, "MAX_DOUBLE_ROWS", 10)
    X, y = three_classes(400)
    shared = {"gamma": GAMMA, "solver": LASVM(), "cache_size": cache_size, "tol": 1e-4}
    one, two = (SVC(n_jobs=n, **shared).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)
    exact = SVC(gamma=GAMMA, tol=1e-8).fit(X, y)
    assert one.certificate_.primal == pytest.approx(exact.certificate_.primal, rel=1e-4)


def test_the_seed_decides_the_order():
    X, y = two_classes(100)
    solver = LASVM(finish=False)
    fits = [SVC(gamma=GAMMA, tol=0.5, solver=solver, random_state=s).fit(X, y) for s in (1, 1, 2)]
    np.testing.assert_array_equal(fits[0].decision_function(X), fits[1].decision_function(X))
    assert not np.array_equal(fits[0].decision_function(X), fits[2].decision_function(X))


def test_duplicates_and_contradictions():
    X = np.repeat([[0.0], [1.0], [2.0]], 4, axis=0)
    y = np.tile([0, 1, 0, 1], 3)
    model = SVC(gamma=1.0, solver="lasvm").fit(X, y)
    assert model.certificate_.converged
    assert model.certificate_.primal == pytest.approx(SVC(gamma=1.0).fit(X, y).certificate_.primal, rel=1e-6)


# --- the loop --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("regression", [False, True])
@pytest.mark.parametrize("bias", ["free", "none"])
def test_resumed_is_straight(regression, bias):
    def make():
        return LASVM(epochs=2).engine(replace(problem(regression=regression), bias=bias), Options(tol=1e-4, seed=0))

    def rest(engine):
        return all(state.rests for state in engine.states)

    straight, states = make(), []
    while not rest(straight):
        states.append(straight.state())
        straight.advance()
    for state in states[:: max(1, len(states) // 5)]:
        resumed = make()
        resumed.restore(state)
        while not rest(resumed):
            resumed.advance()
        resumed.before = straight.evaluations - resumed.problem.rows.evaluations
        for name, array in straight.state().items():
            np.testing.assert_array_equal(resumed.state()[name], array, err_msg=name)


def test_a_state_is_believed_in_nothing():
    def make():
        return LASVM().engine(problem(), Options(tol=1e-3, seed=0))

    engine = make()
    engine.advance()
    good = engine.state()
    assert len(good["members"]) > 2
    for name, bad in (
        ("members", good["members"] + 1000),
        ("members", good["members"] * 0),
        ("members", good["members"][:-1]),
        ("online", good["online"] - 1000),
        ("online", good["online"] + 0.5),
        ("gamma", good["gamma"] + 10),
    ):
        with pytest.raises(ValueError, match="state"):
            make().restore(good | {name: bad})


def test_limits_and_checkpoints(tmp_path):
    X, y = two_classes(600)
    file = tmp_path / "fit.ckpt"
    shared = {"C": 10.0, "gamma": 1.0, "tol": 1e-5, "solver": LASVM(), "random_state": 2}
    straight = SVC(**shared).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="max_iter reached"):
        short = SVC(max_iter=50, checkpoint=file, **shared).fit(X, y)
    assert short.n_iter_[0] in (50, 51)  # a visit moves one pair or two
    with pytest.warns(ConvergenceWarning, match="max_time reached"):
        SVC(max_time=1e-9, checkpoint=file, **shared).fit(X, y)
    resumed = SVC(checkpoint=file, **shared).fit(X, y)
    assert not file.exists()
    np.testing.assert_array_equal(resumed.dual_coef_, straight.dual_coef_)
    with pytest.warns(ConvergenceWarning):
        SVC(max_iter=50, checkpoint=file, **shared).fit(X, y)
    with pytest.raises(ValueError, match="random_state"):
        SVC(checkpoint=file, **(shared | {"random_state": 3})).fit(X, y)


def test_kernels_that_are_not_positive_semi_definite_end():
    X, y = two_classes(200)
    with pytest.warns(ConvergenceWarning, match="not positive semi-definite"):
        model = SVC(kernel="sigmoid", gamma=5.0, coef0=-2.0, C=10.0, solver="lasvm").fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: LASVM(epochs=0), "epochs=0"),
        (lambda: LASVM(epochs=1.5), "epochs=1.5"),
        (lambda: LASVM(finish=1), "finish=1"),
        (lambda: LASVM(tau=0.0), "tau=0.0"),
        (lambda: LASVM(tau=float("inf")), "tau=inf"),
        (lambda: SVC(random_state=-1, solver="lasvm").fit([[0.0], [1.0]], [0, 1]), "random_state=-1"),
        (lambda: SVC(solver=LASVM).fit([[0.0], [1.0]], [0, 1]), "parentheses"),
        (lambda: SVC(kernel="poly", gamma=1e200, solver="lasvm").fit([[1.0], [2.0]], [0, 1]), "kernel of rows"),
    ],
)
def test_bad_requests_are_refused_by_name(make, words):
    with pytest.raises(ValueError, match=words):
        make()
