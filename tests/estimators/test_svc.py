"""SVC and SVR: the right optimum, scikit-learn's layout, one certificate, the same bits, refusals by name."""

import signal
import threading
import warnings

import numpy as np
import oracles as o
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_cases import curve, objective, problem, three_classes, two_classes
from scipy import sparse
from sklearn import svm
from sklearn.datasets import load_digits, load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise

from pegasos import SMO, SVC, SVR, LinearSVC
from pegasos.estimators.svc import _counts
from pegasos.fit.engine import Options
from pegasos.fit.loop import Limits, Watch, run
from pegasos.kernels.functions import Kernel
from pegasos.solvers import resolve


def features(K):
    """Rows whose inner products are K."""
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0))


def best(K, y, loss, C, weight=None):
    """The optimal value, in the units of λ, by an independent QP."""
    weight = np.ones(len(y)) if weight is None else weight
    lam = 1 / (C * weight.sum())
    found = o.optimum(features(K), y.astype(float), loss=loss, lam=lam, weight=weight, bias="unregularized", B=1.0)
    return found.primal


# --- the optimum -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "laplacian", "poly"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_bounds_enclose_an_independent_optimum(kernel, C, weighted):
    X, y = two_classes()
    weight = np.random.default_rng(1).uniform(0.2, 3, size=len(y)) if weighted else None
    model = SVC(kernel=kernel, C=C, gamma=0.5, coef0=1.0, tol=1e-9).fit(X, y, sample_weight=weight)
    K = Kernel(kernel, 0.5, 1.0, 3)
    values = np.zeros((60, 64))
    K.core(X).block(np.arange(60), np.arange(60), values, 1)
    expected = best(values[:, :60], y, o.SCALAR["hinge"](), C, weight)
    c = model.certificate_
    assert c.converged
    assert c.dual <= c.primal * (1 + 1e-14)
    assert c.dual <= expected * (1 + 1e-7)
    assert c.primal >= expected * (1 - 1e-7)
    assert c.primal == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 5.0])
@pytest.mark.parametrize("C", [0.01, 10.0])
def test_regression_encloses_an_independent_optimum(epsilon, C):
    x, y = curve()
    model = SVR(C=C, gamma=1.0, epsilon=epsilon, tol=1e-9).fit(x, y)
    expected = best(pairwise.rbf_kernel(x, gamma=1.0), y, o.SCALAR["epsilon_insensitive"](epsilon), C)
    assert model.certificate_.dual <= expected * (1 + 1e-7) + 1e-12
    assert model.certificate_.primal == pytest.approx(expected, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("gamma", [0.1, 2.0, "scale", "auto"])
@pytest.mark.parametrize("C", [1e-6, 0.1, 1.0, 1e3])
def test_agrees_with_scikit_learn(kernel, gamma, C):
    X, y = two_classes(150)
    shared = {"kernel": kernel, "gamma": gamma, "C": C, "coef0": 0.5}
    ours, theirs = SVC(tol=1e-8, **shared).fit(X, y), svm.SVC(tol=1e-8, **shared).fit(X, y)
    P, Q = objective(ours, X, y, C), objective(theirs, X, y, C)
    assert P <= Q * (1 + 1e-6)
    # LIBSVM keeps kernel values in single precision, which shows where C or the kernel is large.
    if C > 1 or kernel == "poly":
        return
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=2e-5)
    if C > 1e-3:
        assert set(ours.support_.tolist()) == set(theirs.support_.tolist())


@pytest.mark.parametrize(("kernel", "C"), [("rbf", 1e-6), ("rbf", 1e6), ("linear", 1e6)])
def test_extreme_regularisation_has_its_certificate(kernel, C):
    X, y = two_classes(100)
    c = SVC(kernel=kernel, C=C).fit(X, y).certificate_
    assert c.converged
    K = pairwise.linear_kernel(X) if kernel == "linear" else pairwise.rbf_kernel(X, gamma=1 / (3 * X.var()))
    expected = best(K, y, o.SCALAR["hinge"](), C)
    assert c.dual <= expected * (1 + 1e-5)
    assert expected * (1 - 1e-5) <= c.primal <= expected * (1 + 2e-3)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("epsilon", [0.01, 0.3])
def test_regression_agrees_with_scikit_learn(kernel, C, epsilon):
    X, _ = two_classes(120)
    y = X[:, 0] ** 2 + 0.3 * X[:, 1]
    weight = np.random.default_rng(3).uniform(0.5, 2, size=len(y))
    shared = {"kernel": kernel, "C": C, "epsilon": epsilon, "coef0": 1.0, "gamma": 0.2, "tol": 1e-9}
    ours, theirs = SVR(**shared).fit(X, y, weight), svm.SVR(**shared).fit(X, y, weight)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-4)  # of LIBSVM's single precision
    assert set(ours.support_.tolist()) == set(theirs.support_.tolist())


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("weights", [None, "balanced", {0: 1.0, 1: 3.0, 2: 0.5}])
@pytest.mark.parametrize("shape", ["ovr", "ovo"])
def test_many_classes_have_scikit_learns_layout(layout, weights, shape):
    X, y = three_classes()
    shared = {"class_weight": weights, "decision_function_shape": shape, "gamma": 0.7, "tol": 1e-9}
    ours, theirs = SVC(**shared).fit(layout(X), y), svm.SVC(**shared).fit(layout(X), y)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
    np.testing.assert_allclose(ours.class_weight_, theirs.class_weight_)
    assert ours.dual_coef_.shape == theirs.dual_coef_.shape
    dense = [m.dual_coef_.toarray() if sparse.issparse(m.dual_coef_) else m.dual_coef_ for m in (ours, theirs)]
    np.testing.assert_allclose(*dense, atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6)
    np.testing.assert_allclose(ours.decision_function(layout(X)), theirs.decision_function(layout(X)), atol=1e-6)
    np.testing.assert_array_equal(ours.predict(layout(X)), theirs.predict(layout(X)))
    assert ours.n_iter_.shape == theirs.n_iter_.shape
    assert ours.shape_fit_ == theirs.shape_fit_
    assert ours.fit_status_ == 0


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_no_pair_is_left_because_another_is_done(kernel):
    X, y = load_digits(return_X_y=True)
    c = SVC(kernel=kernel, C=100.0).fit(X, y).certificate_
    assert c.converged
    gaps = np.array(c.primal_per_class) - np.array(c.dual_per_class)
    assert np.all(gaps <= 1e-3 * np.array(c.primal_per_class))


def test_linear_kernels_have_weights():
    X, y = load_iris(return_X_y=True)
    ours, theirs = SVC(kernel="linear", tol=1e-9).fit(X, y), svm.SVC(kernel="linear", tol=1e-9).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    thin = SVC(kernel="linear", tol=1e-9).fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(thin.coef_.toarray(), theirs.coef_, atol=1e-4)
    with pytest.raises(AttributeError, match="linear"):
        _ = SVC().fit(X, y).coef_
    x, t = curve()
    a, b = SVR(kernel="linear", tol=1e-9).fit(x, t), svm.SVR(kernel="linear", tol=1e-9).fit(x, t)
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-6)


def test_the_linear_kernel_is_the_linear_machine():
    X, y = two_classes()
    kernel, linear = SVC(kernel="linear", tol=1e-10).fit(X, y), LinearSVC(tol=1e-10).fit(X, y)
    np.testing.assert_allclose(kernel.coef_, linear.coef_, atol=1e-5)
    assert kernel.certificate_.primal == pytest.approx(linear.certificate_.primal, rel=1e-9)
    by_lam = SVC(kernel="linear", lam=1 / len(y), C=77.0, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(by_lam.coef_, kernel.coef_, atol=1e-9)


def test_ties_are_broken_as_scikit_learn_does():
    X, y = three_classes(40)
    ours, theirs = SVC(break_ties=True, tol=1e-9).fit(X, y), svm.SVC(break_ties=True, tol=1e-9).fit(X, y)
    Z = np.random.default_rng(5).normal(size=(500, 3)) * 3
    np.testing.assert_array_equal(ours.predict(Z), theirs.predict(Z))
    with pytest.raises(ValueError, match="break_ties"):
        ours.set_params(decision_function_shape="ovo").predict(Z)


@pytest.mark.parametrize("C", [1e-6, 1e-2, 1.0, 1e4, 1e6])
def test_a_default_fit_is_as_good_as_libsvm(C):
    X, y = make_moons(300, noise=0.25, random_state=0)
    ours = SVC(C=C, gamma=1.0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = svm.SVC(C=C, gamma=1.0).fit(X, y)
    assert ours.certificate_.converged
    assert objective(ours, X, y, C) <= objective(theirs, X, y, C) * (1 + 1e-9)


@pytest.mark.parametrize("kind", ["precomputed", "function"])
def test_kernels_of_the_user_are_the_same_kernels(kind):
    X, y = three_classes()
    named = SVC(gamma=0.5, tol=1e-8).fit(X, y)
    Z = np.random.default_rng(3).normal(size=(20, 3))
    if kind == "precomputed":
        other = SVC(kernel="precomputed", tol=1e-8).fit(pairwise.rbf_kernel(X, gamma=0.5), y)
        scores = other.decision_function(pairwise.rbf_kernel(Z, X, gamma=0.5))
    else:
        other = SVC(kernel=lambda A, B: pairwise.rbf_kernel(A, B, gamma=0.5), tol=1e-8).fit(X, y)
        scores = other.decision_function(Z)
    np.testing.assert_allclose(scores, named.decision_function(Z), atol=1e-7)
    np.testing.assert_array_equal(other.support_, named.support_)


# --- working sets, precision, parts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [4, 16, 64])
@pytest.mark.parametrize("single", [False, True])
def test_small_working_sets_find_the_same_optimum(size, single, monkeypatch):
    monkeypatch.setattr("pegasos.kernels.gram.MAX_DOUBLE_ROWS", 10 if single else 10**6)
    X, y = two_classes(400)
    whole = SVC(gamma=0.5, tol=1e-6).fit(X, y)
    batched = SVC(gamma=0.5, tol=1e-6, solver=SMO(working_set=size), cache_size=0.2).fit(X, y)
    assert batched.certificate_.converged
    assert batched.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=2e-6)
    np.testing.assert_allclose(batched.decision_function(X), whole.decision_function(X), atol=1e-3)


def test_single_precision_is_left_where_it_is_not_enough(monkeypatch):
    monkeypatch.setattr("pegasos.kernels.gram.MAX_DOUBLE_ROWS", 10)
    X, y = two_classes(300)
    model = SVC(gamma=0.5, C=1e4, tol=1e-10, solver=SMO(working_set=128)).fit(X, y)
    assert model.certificate_.converged
    assert model.certificate_.relative_gap <= 1e-10


def test_parts_with_and_without_shared_rows_agree():
    X, y = three_classes(200)
    shared, apart = SVC(tol=1e-9).fit(X, y), SVC(tol=1e-9, cache_size=0.01).fit(X, y)
    np.testing.assert_allclose(shared.decision_function(X), apart.decision_function(X), atol=1e-7)


@pytest.mark.parametrize("kind", [SVC, SVR])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
def test_threads_do_not_change_a_bit(kind, layout, monkeypatch):
    monkeypatch.setattr("pegasos.kernels.gram.MAX_DOUBLE_ROWS", 10)
    X, y = three_classes(700)
    fits = [kind(gamma=0.5, solver=SMO(working_set=64), n_jobs=n).fit(layout(X), y) for n in (None, 2, 3)]
    for other in fits[1:]:
        first, second = (m.dual_coef_ if layout is np.asarray else m.dual_coef_.toarray() for m in (fits[0], other))
        np.testing.assert_array_equal(first, second)
        np.testing.assert_array_equal(fits[0].intercept_, other.intercept_)
        np.testing.assert_array_equal(fits[0].predict(layout(X)), other.predict(layout(X)))


@pytest.mark.parametrize("kernel", ["linear", "rbf", "laplacian", "chi2"])
def test_layouts_and_precisions_agree(kernel):
    X, y = two_classes(200)
    X = np.abs(X) * (np.random.default_rng(0).random(X.shape) < 0.3)
    fits = [
        SVC(kernel=kernel, gamma=0.5, tol=1e-8).fit(cast(X), y)
        for cast in (np.asarray, sparse.csr_matrix, lambda A: A.astype(np.float32), lambda A: np.asfortranarray(A))
    ]
    for other in fits[1:]:
        np.testing.assert_allclose(other.decision_function(X), fits[0].decision_function(X), atol=1e-5)


# --- weights ---------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 3), min_size=30, max_size=30))
@settings(max_examples=15, deadline=None)
def test_weights_are_repetitions(counts):
    X, y = three_classes(30)
    counts = np.array(counts)
    if len(np.unique(y[counts > 0])) < 3:
        return
    weighted = SVC(tol=1e-10).fit(X, y, sample_weight=counts)
    repeated = SVC(tol=1e-10).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-6)


def test_weights_of_regression_are_repetitions():
    x, y = curve()
    counts = np.random.default_rng(0).integers(0, 4, size=len(y))
    weighted = SVR(tol=1e-10).fit(x, y, sample_weight=counts)
    repeated = SVR(tol=1e-10).fit(np.repeat(x, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(weighted.predict(x), repeated.predict(x), atol=1e-6)


# --- odd data --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [1e-6, 1.0, 1e6])
def test_one_row_a_class(C):
    X, y = np.array([[0.0], [2.0], [5.0]]), np.array(["a", "b", "c"])
    ours, theirs = SVC(C=C, gamma=0.3, tol=1e-9).fit(X, y), svm.SVC(C=C, gamma=0.3, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-6)


def test_duplicates_and_contradictions():
    X, y = two_classes(20)
    X, y = np.concatenate([X, X, X]), np.concatenate([y, y, -y])
    ours, theirs = SVC(tol=1e-9).fit(X, y), svm.SVC(tol=1e-9).fit(X, y)
    assert objective(ours, X, y, 1.0) <= objective(theirs, X, y, 1.0) * (1 + 1e-7)
    same = SVC().fit(np.ones((6, 2)), [0, 0, 0, 1, 1, 1])
    assert same.certificate_.converged
    assert same.certificate_.primal == pytest.approx(1.0)


def test_all_at_a_bound_and_all_free():
    X, y = two_classes(40)
    bounded = SVC(C=1e-5).fit(X, y)
    assert bounded.certificate_.converged
    np.testing.assert_allclose(np.abs(bounded.dual_coef_).max(), 1e-5)
    free = SVC(C=1e6, gamma=50.0, tol=1e-6).fit(X, y)
    assert free.certificate_.converged
    assert np.abs(free.dual_coef_).max() < 1e5
    np.testing.assert_allclose(np.where(y > 0, 1, -1) * free.decision_function(X), 1, atol=1e-4)


def test_regression_within_the_tube_needs_no_support_vector():
    x, y = curve()
    model = SVR(epsilon=10.0).fit(x, y)
    assert len(model.support_) == 0
    assert model.certificate_.converged
    np.testing.assert_allclose(model.predict(x), model.intercept_[0])


@pytest.mark.parametrize("kernel", ["sigmoid", "indefinite"])
def test_kernels_that_are_not_positive_semi_definite_end(kernel):
    X, y = two_classes(200)
    rng = np.random.default_rng(0)
    A = rng.normal(size=(200, 200))
    parameters = (
        {"kernel": "sigmoid", "gamma": 5.0, "coef0": -2.0} if kernel == "sigmoid" else {"kernel": "precomputed"}
    )
    with pytest.warns(ConvergenceWarning, match="not positive semi-definite"):
        model = SVC(C=10.0, **parameters).fit(X if kernel == "sigmoid" else A + A.T, y)
    assert not model.certificate_.converged
    assert np.isfinite(model.decision_function(X if kernel == "sigmoid" else A + A.T)).all()


def test_ill_conditioned_kernels_are_solved():
    rng = np.random.default_rng(0)
    X, y = rng.normal(loc=100, size=(80, 2)), rng.integers(0, 2, size=80)
    model = SVC(kernel="poly", coef0=1.0).fit(X, y)
    assert model.certificate_.converged


# --- the loop around it ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("regression", [False, True])
def test_resumed_is_straight(regression):
    solver = SMO(working_set=32)
    straight = solver.engine(problem(regression=regression), Options(tol=1e-6, seed=0))
    states = []
    while straight.stuck is None and not straight.due(1e-6):
        states.append(straight.state())
        straight.advance()
    for state in states[:: max(1, len(states) // 4)]:
        resumed = solver.engine(problem(regression=regression), Options(tol=1e-6, seed=0))
        resumed.restore(state)
        while not resumed.due(1e-6):
            resumed.advance()
        # Rows that the cache held are computed again: only their count differs.
        resumed.before = straight.evaluations - resumed.problem.rows.evaluations
        for name, array in straight.state().items():
            np.testing.assert_array_equal(resumed.state()[name], array, err_msg=name)


def test_a_state_is_believed_in_nothing():
    engine = SMO(working_set=32).engine(problem(), Options(tol=1e-3, seed=0))
    engine.advance()
    good = engine.state()
    for name, bad in (
        ("gamma", good["gamma"] + 10),
        ("gamma", good["gamma"][:-1]),
        ("working", good["working"] + 1000),
        ("lengths", good["lengths"] * 0 - 1),
        ("scalars", good["scalars"] * np.nan),
        ("wide", good["wide"] + 7),
    ):
        with pytest.raises(ValueError, match="state"):
            SMO(working_set=32).engine(problem(), Options(tol=1e-3, seed=0)).restore(good | {name: bad})


def test_the_loop_records_and_counts():
    p = problem()
    engine = SMO(working_set=32).engine(p, Options(tol=1e-6, seed=0))
    result = run(p, engine, Limits(1e-6, 10**9), Watch())
    assert result.certificate.converged
    assert len(result.certificate.primal_per_class) == 2
    assert engine.evaluations > 0
    assert all(record.gap >= 0 for record in result.trace)


def test_limits_callbacks_and_checkpoints(tmp_path):
    X, y = two_classes(1500)
    file = tmp_path / "fit.ckpt"
    shared = {"C": 1e3, "gamma": 1.0, "tol": 1e-6, "solver": SMO(working_set=64)}
    straight = SVC(**shared).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="max_iter reached"):
        SVC(max_iter=50, checkpoint=file, **shared).fit(X, y)
    assert file.exists()
    seen = []
    SVC(callback=seen.append, **shared).fit(X, y)
    assert seen[-1].coef is not None
    stopped = SVC(callback=lambda c: True, **shared).fit(X, y)
    assert stopped.certificate_.reason == "stopped by the callback"
    file.unlink()
    with pytest.warns(ConvergenceWarning, match="max_time reached"):
        SVC(max_time=1e-9, checkpoint=file, checkpoint_every=0, **shared).fit(X, y)
    resumed = SVC(checkpoint=file, **shared).fit(X, y)
    assert not file.exists()
    np.testing.assert_array_equal(resumed.dual_coef_, straight.dual_coef_)
    with pytest.warns(ConvergenceWarning):
        SVC(max_time=1e-9, checkpoint=file, **shared).fit(X, y)
    with pytest.raises(ValueError, match="kernel"):
        SVC(checkpoint=file, **(shared | {"gamma": 2.0})).fit(X, y)


@pytest.mark.unsanitized
@pytest.mark.parametrize("keep", [False, True])
def test_interrupts(keep, interruptible):
    X, y = two_classes(3000)
    model = SVC(C=1e6, gamma=1.0, tol=1e-12, solver=SMO(working_set=16), on_interrupt="keep" if keep else "raise")
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    timer.start()
    if keep:
        assert model.fit(X, y).certificate_.reason == "interrupted"
    else:
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
        assert not hasattr(model, "support_")
    timer.join()


# --- refusals --------------------------------------------------------------------------------------------------------

X0, Y0 = two_classes(20)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"gamma": -1.0}, "gamma=-1.0"),
        ({"gamma": "large"}, "gamma='large'"),
        ({"gamma": float("nan")}, "gamma=nan"),
        ({"kernel": "none"}, "kernel='none'"),
        ({"kernel": 3}, "kernel=3"),
        ({"degree": -1}, "degree=-1"),
        ({"degree": 2.5}, "degree=2.5"),
        ({"coef0": "x"}, "coef0='x'"),
        ({"C": 0.0}, "C=0.0"),
        ({"tol": -1.0}, "tol=-1.0"),
        ({"cache_size": 0}, "cache_size=0"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"solver": "norma"}, "linear"),
        ({"solver": SMO}, "parentheses"),
        ({"probability": True}, "CalibratedClassifierCV"),
        ({"probability": "no"}, "probability='no' must be True or False"),
        ({"shrinking": "x"}, "shrinking='x' must be True or False"),
        ({"break_ties": None}, "break_ties=None"),
        ({"verbose": "x"}, "verbose='x'"),
        ({"fit_intercept": "no"}, "fit_intercept='no'"),
        ({"kernel": "rfb"}, "kernel='rfb' is none of .*did you mean 'rbf'"),
        ({"solver": "smoo"}, "did you mean 'smo'"),
        ({"solver": ["smo"]}, "is unknown"),
        ({"multi_class": "ove"}, "did you mean 'ov"),
        ({"decision_function_shape": "x"}, "decision_function_shape='x'"),
        ({"n_jobs": 0}, "n_jobs=0"),
        ({"kernel": lambda A, B: np.ones((2, 2))}, r"shape \(2, 2\)"),
        ({"kernel": lambda A, B: np.full((len(A), len(B)), np.nan)}, "returned nan"),
        ({"kernel": lambda A, B: np.full((len(A), len(B)), "a")}, "not numbers"),
        ({"kernel": "chi2"}, "chi2.*row"),
        ({"kernel": "poly", "gamma": 1e200}, "kernel of rows"),
    ],
)
def test_bad_parameters_are_refused_by_name(parameters, words):
    model = SVC(**parameters)
    with pytest.raises(ValueError, match=words):
        model.fit(X0, Y0)
    assert not hasattr(model, "support_")


def test_bad_data_are_refused_by_name():
    with pytest.raises(ValueError, match="square matrix"):
        SVC(kernel="precomputed").fit(X0, Y0)
    with pytest.raises(TypeError, match="precomputed"):
        SVC(kernel="precomputed").fit(sparse.eye(20, format="csr"), Y0)
    with pytest.raises(ValueError, match="one class only"):
        SVC().fit(X0, np.ones(20))
    with pytest.raises(ValueError, match="epsilon"):
        SVR(epsilon=-1.0).fit(X0, Y0)
    with pytest.raises(ValueError, match="working_set"):
        SMO(working_set=2)
    with pytest.raises(ValueError, match="unknown"):
        resolve("none", "kernel")


def test_many_small_pairs_are_all_solved():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(240, 4)), np.arange(240) % 40
    model = SVC(gamma=0.5).fit(X, y)
    assert model.certificate_.converged
    assert len(model.intercept_) == 780
    np.testing.assert_array_equal(model.predict(X), svm.SVC(gamma=0.5, tol=1e-6).fit(X, y).predict(X))


@pytest.mark.parametrize("far", [1e6, 1e8])
def test_rows_far_from_the_origin_lose_nothing(far):
    X, y = two_classes()
    X = np.round(X * 2**10) / 2**10  # exact beside large numbers
    near, away = SVC(gamma=0.5).fit(X, y), SVC(gamma=0.5).fit(X + far, y)
    assert away.certificate_.primal == pytest.approx(near.certificate_.primal, rel=1e-6)
    np.testing.assert_allclose(away.decision_function(X + far), near.decision_function(X), atol=1e-4)


def test_a_bound_above_the_objective_of_zero_is_none():
    rng = np.random.default_rng(0)
    K = rng.normal(size=(60, 60))
    K = 5 * (K + K.T)
    with pytest.warns(ConvergenceWarning, match="semi-definite"):
        c = SVC(kernel="precomputed").fit(K, np.arange(60) % 2).certificate_
    assert not c.converged


@pytest.mark.parametrize("C", [1e6, 1e9, 1e12, 1e15])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_vanishing_objective_is_not_taken_for_zero(C):
    X, y = make_moons(60, noise=0.01, random_state=0)
    c = SVC(C=C, gamma=5.0).fit(X, y).certificate_
    assert c.converged == (c.relative_gap <= 1e-3)
    assert c.converged or C > 1e9
    assert c.dual > 0


def test_probabilities_of_the_log_loss():
    X, y = three_classes()
    two = SVC(loss="log", gamma=0.5, multi_class="ovr").fit(X, y > 0)
    p = two.predict_proba(X)
    np.testing.assert_allclose(p[:, 1], 1 / (1 + np.exp(-two.decision_function(X))))
    np.testing.assert_allclose(two.predict_log_proba(X), np.log(p))
    three = SVC(loss="log", gamma=0.5, multi_class="ovr").fit(X, y)
    np.testing.assert_allclose(three.predict_proba(X).sum(axis=1), 1.0)
    np.testing.assert_array_equal(three.classes_[three.predict_proba(X).argmax(axis=1)], three.predict(X))
    in_pairs = SVC(loss="log", gamma=0.5)
    assert hasattr(in_pairs, "predict_proba")  # how many classes there will be is not known yet
    np.testing.assert_array_equal(in_pairs.fit(X, y > 0).predict_proba(X), p)
    for model, remedy in ((SVC(), "CalibratedClassifierCV"), (SVC(loss="log"), "Fit with multi_class='ovr'")):
        with pytest.raises(AttributeError) as error:
            _ = model.fit(X, y).predict_proba
        assert remedy in str(error.value.__cause__ or error.value)


@pytest.mark.parametrize("value", [-2.0, float("nan"), float("inf")])
def test_class_weights_are_numbers(value):
    for kind in (SVC, LinearSVC):
        with pytest.raises(ValueError, match="class_weight of class -1"):
            kind(class_weight={-1: value}).fit(X0, Y0)


def test_kernel_matrices_are_symmetric():
    K = pairwise.rbf_kernel(X0)
    K[3, 7] += 0.5
    with pytest.raises(ValueError, match=r"entry \(3, 7\)"):
        SVC(kernel="precomputed").fit(K, Y0)


def test_auto_takes_pegasos_for_sub_gradients():
    model = SVC(intercept="subgradient", tol=0.1).fit(X0, Y0)
    assert np.isfinite(model.intercept_).all()


def test_more_steps_than_the_type_of_n_iter_can_tell():
    """As a long fit, or a forged checkpoint, may have."""
    assert _counts([0, 7, 2**53]).tolist() == [1, 7, 2**31 - 1]
