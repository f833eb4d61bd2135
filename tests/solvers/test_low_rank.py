"""The interior point method on a low-rank kernel: the factor, the machine on it, and the bounds of the exact one."""

import numpy as np
import oracles as o
import primal_oracles
import pytest
from conftest import oracle
from judging import judged
from kernel_cases import curve, objective, problem, three_classes, two_classes
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise

from pegasos import SVC, SVR, LinearSVC, LowRankInteriorPoint, losses
from pegasos.fit.engine import Options
from pegasos.kernels.span import incomplete_cholesky

ALL = LowRankInteriorPoint(rank=10_000, trace_tol=0.0)
GAMMA = 0.5


def factor(K, most, share=0.0):
    return incomplete_cholesky(lambda j: K[j], np.diag(K).copy(), most, share=share, floor=1e-12)


def test_the_factor_is_that_of_the_oracle():
    rng = np.random.default_rng(0)
    K = pairwise.polynomial_kernel(rng.normal(size=(40, 3)), degree=3)
    order, V = factor(K, 15)
    pivots, G = primal_oracles.incomplete_cholesky(K, 15)
    assert order.tolist() == pivots
    np.testing.assert_allclose(V.T, G, rtol=1e-8, atol=1e-8 * np.abs(G).max())
    np.testing.assert_allclose(np.tril(V[:, order], -1), 0.0, atol=1e-10 * np.abs(G).max())


def test_the_factor_ends_by_trace_and_by_dependence():
    X, _ = two_classes(60)
    K = pairwise.rbf_kernel(X, gamma=0.05)
    for share in (0.3, 1e-2, 1e-4):
        order, V = factor(K, 60, share)
        _, G = primal_oracles.incomplete_cholesky(K, len(order) - 1)
        assert np.trace(K - V.T @ V) <= share * np.trace(K) * (1 + 1e-9)
        assert np.trace(K - G @ G.T) > share * np.trace(K)  # with one pivot less it is not enough
        assert np.linalg.eigvalsh(K - V.T @ V).min() > -1e-12
    twice = np.repeat(np.repeat(K[:5, :5], 2, axis=0), 2, axis=1)
    order, V = factor(twice, 10)
    assert sorted(order.tolist()) == [0, 2, 4, 6, 8]
    np.testing.assert_allclose(V.T @ V, twice, atol=1e-12)
    own = np.diag(K).copy()
    own[::2] = 0.0
    order, _ = incomplete_cholesky(lambda j: K[j], own, 60, share=0.0, floor=1e-12)
    assert set(order) <= set(range(1, 60, 2))


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_with_full_rank_it_is_the_exact_machine(layout, C):
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


def test_with_full_rank_pairs_of_classes_and_regression_are_exact():
    X, y = three_classes()
    exact, model = (SVC(gamma=GAMMA, tol=1e-9, solver=s).fit(X, y) for s in ("smo", ALL))
    np.testing.assert_allclose(model.certificate_.primal_per_class, exact.certificate_.primal_per_class, rtol=1e-7)
    np.testing.assert_array_equal(model.predict(X), exact.predict(X))
    x, t = curve()
    exact, model = (SVR(gamma=1.0, tol=1e-9, solver=s).fit(x, t) for s in ("smo", ALL))
    assert model.certificate_.primal == pytest.approx(exact.certificate_.primal, rel=1e-6)
    np.testing.assert_allclose(model.predict(x), exact.predict(x), atol=1e-3)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", [losses.Hinge(), losses.SquaredHinge(), losses.EpsilonInsensitive(0.1)], ids=str)
def test_the_machine_is_the_best_one_on_the_factor(loss, fit_intercept):
    X, y = two_classes(100)
    y = X[:, 0] ** 2 if loss.kind == "regression" else y.astype(float)
    K = pairwise.rbf_kernel(X, gamma=GAMMA)
    pivots, G = primal_oracles.incomplete_cholesky(K, 12)
    bias = "unregularized" if fit_intercept else "none"
    best = o.optimum(G, y, loss=oracle(loss), lam=1 / 100, bias=bias).primal
    exact = o.optimum(np.linalg.cholesky(K + 1e-12 * np.eye(100)), y, loss=oracle(loss), lam=1 / 100, bias=bias).primal
    estimator = SVR if loss.kind == "regression" else SVC
    solver = LowRankInteriorPoint(rank=12)
    model = estimator(loss=loss, gamma=GAMMA, tol=1e-8, solver=solver, fit_intercept=fit_intercept).fit(X, y)
    c = model.certificate_
    assert set(model.support_) == set(pivots)
    assert c.goal_reached
    assert c.primal == pytest.approx(best, rel=1e-7)
    assert 0 <= c.restricted_gap <= 1e-8 * c.primal
    assert 0 < c.dual <= exact * (1 + 1e-7)
    assert exact < c.primal * (1 - 1e-3)  # the restriction costs something here, and the certificate says so
    assert not c.converged


def test_more_rank_is_nearer_and_the_trace_decides_how_much():
    X, y = two_classes(200)
    exact = SVC(gamma=0.05, tol=1e-9).fit(X, y).certificate_.primal
    before = np.inf
    for trace_tol in (0.3, 1e-2, 1e-4, 1e-8):
        model = SVC(gamma=0.05, tol=1e-6, solver=LowRankInteriorPoint(trace_tol=trace_tol)).fit(X, y)
        c = model.certificate_
        assert c.dual - 1e-9 <= exact <= c.primal * (1 + 1e-9)
        assert c.primal <= before * (1 + 2e-6)
        before = c.primal
        order, _ = factor(pairwise.rbf_kernel(X, gamma=0.05), 200, trace_tol)
        assert set(model.support_) == set(order)
    assert before == pytest.approx(exact, rel=1e-4)


def test_the_bound_of_the_exact_machine_can_be_left_out():
    X, y = two_classes(100)
    shared = {"gamma": GAMMA, "C": 10.0}
    without = SVC(solver=LowRankInteriorPoint(10, exact_bound=False), **shared).fit(X, y).certificate_
    with_it = SVC(solver=LowRankInteriorPoint(10), **shared).fit(X, y).certificate_
    assert without.dual == 0.0 < with_it.dual
    assert without.primal == with_it.primal


def test_layouts_threads_and_kernels_given_otherwise_make_no_difference():
    X, y = two_classes(150)
    X[np.abs(X) < 0.5] = 0.0
    solver, K = LowRankInteriorPoint(20), pairwise.rbf_kernel(X, gamma=GAMMA)
    shared = {"tol": 1e-8, "solver": solver}
    one = SVC(gamma=GAMMA, **shared).fit(X, y)
    np.testing.assert_array_equal(SVC(gamma=GAMMA, n_jobs=2, **shared).fit(X, y).dual_coef_, one.dual_coef_)
    scores = one.decision_function(X)
    for model, rows in (
        (SVC(gamma=GAMMA, **shared), sparse.csr_matrix(X)),
        (SVC(kernel="precomputed", **shared), K),
        (SVC(kernel=lambda A, B: pairwise.rbf_kernel(A, B, gamma=GAMMA), **shared), X),
    ):
        np.testing.assert_allclose(model.fit(rows, y).decision_function(rows), scores, atol=1e-4)
        assert model.certificate_.primal == pytest.approx(one.certificate_.primal, rel=1e-7)
        assert len(model.support_) == 20
    assert one.n_kernel_evaluations_ == 20 * 150
    assert objective(one, X, y, 1.0) / len(y) == pytest.approx(one.certificate_.primal, rel=1e-9)


def test_a_weight_of_two_is_a_row_twice():
    X, y = two_classes(80)
    weight = np.where(np.arange(80) % 3 == 0, 2.0, 1.0)
    twice = np.repeat(np.arange(80), weight.astype(int))
    shared = {"gamma": GAMMA, "tol": 1e-9, "solver": LowRankInteriorPoint(25)}
    weighted = SVC(**shared).fit(X, y, sample_weight=weight)
    repeated = SVC(**shared).fit(X[twice], y[twice])
    assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=1e-7)
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-3)


def test_a_kernel_of_zeros_is_the_bias_alone():
    y = np.repeat([0, 1], [15, 25])
    model = SVC(kernel="precomputed", solver=ALL).fit(np.zeros((40, 40)), y)
    assert model.certificate_.converged
    assert not np.any(model.decision_function(np.zeros((40, 40))) != model.intercept_[0])


def test_kernels_that_are_not_positive_semi_definite_have_no_lower_bound():
    X, y = two_classes(100)
    model = SVC(kernel="sigmoid", gamma=5.0, coef0=-2.0, solver=LowRankInteriorPoint(50)).fit(X, y)
    assert not model.certificate_.converged
    assert model.certificate_.goal_reached
    assert model.certificate_.dual == -np.inf
    assert 0 <= model.certificate_.restricted_gap <= 1e-3 * model.certificate_.primal


# --- the loop --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("regression", [False, True])
def test_resumed_is_straight(regression):
    def make():
        return LowRankInteriorPoint(40).engine(problem(regression=regression), Options(tol=1e-6, seed=0))

    def go_on(engine, keep=None):
        while True:
            if keep is not None:
                keep.append(engine.state())
            engine.advance()
            if engine.due(1e-6):
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


def test_limits_and_checkpoints(tmp_path):
    X, y = three_classes(300)
    file = tmp_path / "fit.ckpt"
    shared = {"gamma": 1.0, "tol": 1e-8, "solver": LowRankInteriorPoint(60), "C": 100.0}
    straight = SVC(**shared).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="max_iter reached"):
        short = SVC(max_iter=1, checkpoint=file, **shared).fit(X, y)
    assert not short.certificate_.converged
    assert short.certificate_.dual <= straight.certificate_.primal * (1 + 1e-9)
    resumed = SVC(checkpoint=file, **shared).fit(X, y)
    assert not file.exists()
    np.testing.assert_array_equal(resumed.dual_coef_, straight.dual_coef_)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: LowRankInteriorPoint(rank=0), "rank=0"),
        (lambda: LowRankInteriorPoint(rank=2.5), "rank=2.5"),
        (lambda: LowRankInteriorPoint(trace_tol=-1e-9), "trace_tol=-1e-09"),
        (lambda: LowRankInteriorPoint(trace_tol="small"), "trace_tol='small'"),
        (lambda: LowRankInteriorPoint(exact_bound="auto"), "exact_bound='auto'"),
        (lambda: SVC(kernel="poly", gamma=1e200, solver=ALL).fit([[1.0], [2.0]], [0, 1]), "kernel of rows"),
        (lambda: SVC(solver=ALL, intercept="feature").fit([[0.0], [1.0]], [0, 1]), "feature"),
        (lambda: LinearSVC(solver=ALL).fit([[0.0], [1.0]], [0, 1]), "unknown"),
    ],
)
def test_bad_requests_are_refused_by_name(make, words):
    with pytest.raises(ValueError, match=words):
        make()
