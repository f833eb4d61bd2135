"""Nyström features and the linear solver: the right machine, said aloud, and a model like any other."""

import pickle

import numpy as np
import pytest
from judging import judged
from kernel_cases import curve, objective, problem, three_classes, two_classes
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem as TheirNystroem
from sklearn.metrics import pairwise

from pegasos import SVC, SVR, LinearSVC, Nystroem
from pegasos.estimators import kernel_model
from pegasos.fit.engine import Options
from pegasos.solvers import NystroemWarning, resolve

ALL = Nystroem(n_components=10_000)
GAMMA = 0.5


def dense(coef):
    return coef.toarray() if sparse.issparse(coef) else coef


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_with_all_rows_it_is_the_exact_machine(layout, C):
    X, y = two_classes(120)
    weight = np.random.default_rng(0).integers(0, 3, size=len(y)).astype(float)
    shared = {"C": C, "gamma": GAMMA, "tol": 1e-9, "class_weight": {-1: 2.0}}
    exact = SVC(**shared).fit(layout(X), y, sample_weight=weight)
    model = SVC(solver=ALL, **shared).fit(layout(X), y, sample_weight=weight)
    assert model.certificate_.converged
    assert 0 <= model.certificate_.restricted_gap <= 1e-9 * model.certificate_.primal
    assert model.certificate_.primal == pytest.approx(exact.certificate_.primal, rel=1e-7)
    assert model.certificate_.dual == pytest.approx(exact.certificate_.primal, rel=1e-7)
    np.testing.assert_allclose(model.decision_function(layout(X)), exact.decision_function(layout(X)), atol=1e-3)
    assert set(model.support_) <= set(np.flatnonzero(weight))


def test_with_all_rows_pairs_of_classes_and_regression_are_exact():
    X, y = three_classes()
    exact, model = (SVC(gamma=GAMMA, tol=1e-9, solver=s).fit(X, y) for s in ("smo", ALL))
    np.testing.assert_allclose(model.certificate_.primal_per_class, exact.certificate_.primal_per_class, rtol=1e-7)
    np.testing.assert_allclose(model.decision_function(X), exact.decision_function(X), atol=1e-3)
    np.testing.assert_array_equal(model.predict(X), exact.predict(X))
    x, t = curve()
    exact, model = (SVR(gamma=1.0, tol=1e-9, solver=s).fit(x, t) for s in ("smo", ALL))
    assert model.certificate_.primal == pytest.approx(exact.certificate_.primal, rel=1e-7)
    np.testing.assert_allclose(model.predict(x), exact.predict(x), atol=1e-3)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "linear"])
def test_the_machine_is_that_of_scikit_learns_features(kernel):
    X, y = two_classes(200)
    chosen = {"linear": {}, "poly": {"gamma": GAMMA, "coef0": 1.0, "degree": 2}}.get(kernel, {"gamma": GAMMA})
    model = SVC(kernel=kernel, tol=1e-8, solver=Nystroem(40), random_state=1, **chosen).fit(X, y)
    theirs = TheirNystroem(kernel=kernel, n_components=len(model.support_), **chosen)
    theirs.fit(X[model.support_])
    Z = theirs.transform(X)
    linear = LinearSVC(loss="hinge", C=1.0, tol=1e-8).fit(Z, y)
    assert model.certificate_.primal == pytest.approx(linear.certificate_.primal, rel=1e-6)
    np.testing.assert_allclose(model.decision_function(X), linear.decision_function(Z), atol=2e-3)
    # The primal value is that of the returned model in the estimator's own objective.
    assert objective(model, X, y, 1.0) / len(y) == pytest.approx(model.certificate_.primal, rel=1e-6)


def test_the_basis_is_the_support():
    X, y = three_classes(300)
    model = SVC(gamma=GAMMA, solver=Nystroem(30), random_state=3).fit(X, y)
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    assert model.n_support_.sum() == len(model.support_) <= 3 * 30
    for i, j in ((0, 1), (0, 2), (1, 2)):
        own = np.flatnonzero((y == i) | (y == j))
        pair = SVC(gamma=GAMMA, solver=Nystroem(30), random_state=3, tol=1e-6).fit(X[own], y[own])
        assert len(pair.support_) == 30
    sizes = [np.count_nonzero((y == i) | (y == j)) for i, j in ((0, 1), (0, 2), (1, 2))]
    assert model.n_kernel_evaluations_ == sum(30 * (30 + size) for size in sizes)
    whole = SVC(gamma=GAMMA, solver="nystroem").fit(X, y).certificate_
    own = model.certificate_
    assert own.primal - own.restricted_gap >= whole.primal * (1 - 2e-3)  # fewer rows can only do worse
    assert own.dual <= whole.primal
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_the_seed_decides():
    X, y = two_classes(200)
    a, b, c = (
        SVC(gamma=GAMMA, solver=Nystroem(20), random_state=s, n_jobs=n).fit(X, y) for s, n in ((1, 1), (1, 2), (2, 1))
    )
    np.testing.assert_array_equal(a.dual_coef_, b.dual_coef_)
    assert not np.array_equal(a.support_, c.support_)
    x, t = curve()
    a, b = (SVR(gamma=1.0, solver=Nystroem(10), random_state=s).fit(x, t) for s in (1, 2))
    assert not np.array_equal(a.support_, b.support_)


def test_duplicates_and_single_precision_features(monkeypatch):
    from pegasos.solvers.kernel import spans

    X, y = two_classes(80)
    twice = SVC(gamma=GAMMA, tol=1e-9, C=1.0, solver=ALL).fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    once = SVC(gamma=GAMMA, tol=1e-9, C=2.0, solver=ALL).fit(X, y)
    np.testing.assert_allclose(twice.decision_function(X), once.decision_function(X), atol=1e-3)
    monkeypatch.setattr(spans, "MAX_DOUBLE_ENTRIES", 0)
    single = SVC(gamma=GAMMA, tol=1e-6, C=2.0, solver=ALL).fit(X, y)
    assert single.certificate_.primal == pytest.approx(once.certificate_.primal, rel=1e-5)


@pytest.mark.parametrize("estimator", [SVC, SVR])
def test_very_many_rows_are_approximated_aloud(estimator, monkeypatch):
    X, y = two_classes(150)
    monkeypatch.setattr(kernel_model, "MAX_EXACT_ROWS", 100)
    with pytest.warns(NystroemWarning, match=r"150 rows.*solver='smo'"):
        model = estimator(gamma=GAMMA).fit(X, y)
    assert model.certificate_.restricted_gap is not None
    exact = estimator(gamma=GAMMA, solver="smo").fit(X, y)  # no warning
    assert exact.certificate_.restricted_gap is None
    K = pairwise.rbf_kernel(X, gamma=GAMMA)
    assert estimator(kernel="precomputed").fit(K, y).certificate_.restricted_gap is None


def test_functions_and_kernels_that_are_not_positive_semi_definite():
    X, y = two_classes(100)
    a = SVC(kernel=lambda A, B: pairwise.rbf_kernel(A, B, gamma=GAMMA), solver=Nystroem(30), tol=1e-8).fit(X, y)
    b = SVC(gamma=GAMMA, solver=Nystroem(30), tol=1e-8).fit(X, y)
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-3)
    assert a.n_kernel_evaluations_ == b.n_kernel_evaluations_ == 30 * 130
    # The span of what is positive is a linear machine like any other, but says nothing of the exact one.
    model = SVC(kernel="sigmoid", gamma=5.0, coef0=-2.0, solver=Nystroem(50)).fit(X, y)
    assert not model.certificate_.converged
    assert model.certificate_.goal_reached
    assert model.certificate_.dual == -np.inf
    assert 0 <= model.certificate_.restricted_gap <= 1e-3 * model.certificate_.primal
    assert objective(model, X, y, 1.0) / len(y) == pytest.approx(model.certificate_.primal, rel=1e-4)


# --- the loop --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("regression", [False, True])
def test_resumed_is_straight(regression):
    tol = 1e-6

    def make():
        return Nystroem(40).engine(problem(regression=regression), Options(tol=tol, seed=0))

    def go_on(engine, keep=None):
        while True:
            if keep is not None:
                keep.append(engine.state())
            engine.advance()
            if engine.due(tol):
                bounds = judged(engine)
                if engine.stuck is not None:
                    return
                engine.learn(bounds)

    straight, states = make(), []
    go_on(straight, states)
    for state in states[:: max(1, len(states) // 5)]:
        resumed = make()
        resumed.restore(state)
        go_on(resumed)
        for name in ("coef", "u", "numbers"):
            np.testing.assert_array_equal(resumed.state()[name], straight.state()[name], err_msg=name)


def test_a_state_is_believed_in_nothing():
    engine = Nystroem(40).engine(problem(), Options(tol=1e-3, seed=0))
    for _ in range(3):
        engine.advance()
    good = engine.state()
    for name, bad in (
        ("coef", good["coef"][:-1]),
        ("coef", good["coef"] * np.nan),
        ("numbers", good["numbers"] - 5),
        ("counts", good["counts"] + 0.5),
    ):
        with pytest.raises(ValueError, match="state"):
            Nystroem(40).engine(problem(), Options(tol=1e-3, seed=0)).restore(good | {name: bad})


def test_limits_and_checkpoints(tmp_path):
    X, y = three_classes(300)
    file = tmp_path / "fit.ckpt"
    shared = {"gamma": 1.0, "tol": 1e-8, "solver": Nystroem(100), "C": 100.0}
    straight = SVC(**shared).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="max_iter reached"):
        short = SVC(max_iter=1, checkpoint=file, **shared).fit(X, y)
    assert not short.certificate_.converged
    assert file.exists()
    resumed = SVC(checkpoint=file, **shared).fit(X, y)
    assert not file.exists()
    np.testing.assert_array_equal(resumed.dual_coef_, straight.dual_coef_)
    with pytest.warns(ConvergenceWarning, match="max_time reached"):
        SVC(max_time=1e-9, checkpoint=file, **shared).fit(X, y)
    resumed = SVC(checkpoint=file, **shared).fit(X, y)
    np.testing.assert_array_equal(resumed.dual_coef_, straight.dual_coef_)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Nystroem(n_components=0), "n_components=0"),
        (lambda: Nystroem(n_components=2.5), "n_components=2.5"),
        (lambda: Nystroem(n_components=True), "n_components=True"),
        (lambda: SVC(kernel="precomputed", solver=ALL).fit(np.eye(4), [0, 0, 1, 1]), "precomputed"),
        (lambda: SVR(kernel="precomputed", solver=ALL).fit(np.eye(4), [0.0, 0, 1, 1]), "precomputed"),
        (lambda: SVC(random_state="x", solver=ALL).fit([[0.0], [1.0]], [0, 1]), "random_state='x'"),
        (lambda: SVC(kernel="poly", gamma=1e200, solver=ALL).fit([[1.0], [2.0]], [0, 1]), "kernel of rows 0 and 0"),
        (lambda: LinearSVC(solver=ALL).fit([[0.0], [1.0]], [0, 1]), "unknown"),
        (lambda: resolve(Nystroem, "kernel"), "parentheses"),
    ],
)
def test_bad_requests_are_refused_by_name(make, words):
    with pytest.raises(ValueError, match=words):
        make()
