"""w_1 ≠ 0: the first iterate of Pegasos, NORMA and SGD as a user gives it, against the printed recursions."""

from __future__ import annotations

import numpy as np
import oracles as o
import pytest
from batch_oracles import batches, figure_2
from conftest import oracle, problem
from numpy.testing import assert_allclose, assert_array_equal

from pegasos import SDCA, SGD, LinearSVC, LinearSVR, Norma, Pegasos, losses
from pegasos.fit.engine import Options

pytestmark = pytest.mark.filterwarnings("ignore:.*stopped before:UserWarning")


def rows(m=10, n=3, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n))
    return X, np.sign(X[:, 0] + 0.5 * rng.normal(size=m))


def fitted(solver, epochs=1, *, cls=LinearSVC, data=None, init=None, bias_init=None, **options):
    X, y = rows() if data is None else data
    how = {"lam": 0.1, "tol": 0.0, "max_iter": epochs, "fit_intercept": False} | options
    return cls(solver=solver, **how).fit(X, y, coef_init=init, intercept_init=bias_init)


W1 = np.array([[0.5, -2.0, 1.0]])


@pytest.mark.parametrize("k", [1, 4, 10])
@pytest.mark.parametrize("project", [False, True])
@pytest.mark.parametrize("epochs", [1, 3])
def test_the_recursion_begins_at_w1(k, project, epochs):
    X, y = rows()
    drawn = batches(10, epochs, k=k, sampling="permutation")
    expected = figure_2(X, y, drawn, 0.1, w1=W1[0], project=project)
    solver = Pegasos(t0=0, batch_size=k, sampling="permutation", projection=project)
    assert_allclose(fitted(solver, epochs, init=W1).coef_[0], expected[-1], rtol=1e-12)
    mean = Pegasos(t0=0, batch_size=k, sampling="permutation", projection=project, output="average")
    assert_allclose(fitted(mean, epochs, init=W1).coef_[0], expected[:-1].mean(axis=0), rtol=1e-11, atol=1e-13)


def test_w1_decides_the_first_subgradient_and_nothing_else():
    """All ten rows in one step: those that w_1 classifies with margin 1 add nothing, w_1 itself is forgotten."""
    X, y = rows()
    w1 = 100.0 * np.linalg.lstsq(X, y, rcond=None)[0]
    violated = y * (X @ w1) < 1
    assert 0 < violated.sum() < 10
    expected = (y[violated] @ X[violated]) / (0.1 * 10)
    assert_allclose(fitted(Pegasos(t0=0, batch_size=10), init=w1).coef_[0], expected, rtol=1e-12)
    assert np.abs(expected - fitted(Pegasos(t0=0, batch_size=10)).coef_[0]).max() > 0.1


@pytest.mark.parametrize("t0", [5.0, 40.0])
@pytest.mark.parametrize("output", ["last", "average", "random"])
def test_with_t0_it_weighs_as_many_rows(t0, output):
    X, y = rows()
    expected = figure_2(X, y, batches(10, 1), 0.1, w1=W1[0], t0=t0)
    found = fitted(Pegasos(t0=t0, sampling="permutation", output=output), init=W1).coef_[0]
    if output == "random":
        assert np.abs(found - expected[:-1]).max(axis=1).min() < 1e-12
    else:
        assert_allclose(found, expected[-1] if output == "last" else expected[:-1].mean(axis=0), rtol=1e-11)


def test_norma_and_sgd():
    X, y = rows()
    order = [int(A[0]) for A in batches(10, 2)]
    for solver, eta in (
        (SGD(eta=0.05, sampling="permutation"), lambda t: 0.05),
        (Norma(p=0.5, sampling="permutation"), lambda t: 0.5 / (0.1 * np.sqrt(t))),
    ):
        w = W1[0].copy()
        for t, i in enumerate(order, start=1):
            g = y[i] * X[i] * (y[i] * (X[i] @ w) < 1)
            w = (1 - eta(t) * 0.1) * w + eta(t) * g
        assert_allclose(fitted(solver, 2, init=W1).coef_[0], w, rtol=1e-11)


def test_biases():
    """Learnt by sub-gradients it goes on from the one given; a constant feature's weight is part of w_1."""
    X, y = rows()
    solver = Pegasos(t0=0, batch_size=10).engine(
        problem(X, y, losses.Hinge(), 0.1, bias="free"), Options("subgradient", 0)
    )
    solver.begin_at(W1, np.array([0.75]))
    assert solver.model()[1] == 0.75
    violated = y * (X @ W1[0] + 0.75) < 1
    solver.advance()
    assert_allclose(solver.model()[0][0], y[violated] @ X[violated] / (0.1 * 10), rtol=1e-12)
    assert_allclose(solver.model()[1], 0.75 + y[violated].sum() / 10, rtol=1e-12)
    B = 2.0
    feature = fitted(
        Pegasos(t0=0), intercept="feature", intercept_scaling=B, init=W1, bias_init=0.5, fit_intercept=True
    )
    Xb = np.column_stack([X, np.full(10, B)])
    w = figure_2(Xb, y, batches(10, 1), 0.1, w1=np.append(W1[0], 0.5 / B))[-1]
    assert_allclose(np.append(feature.coef_[0], feature.intercept_ / B), w, rtol=1e-12, atol=1e-14)


def test_every_class_begins_where_it_is_told():
    X, _ = rows(30)
    y = np.arange(30) % 3
    W = np.random.default_rng(0).normal(size=(3, 3))
    model = fitted(Pegasos(t0=0, sampling="permutation"), data=(X, y), init=W)
    for k in range(3):
        expected = figure_2(X, np.where(y == k, 1.0, -1.0), batches(30, 1), 0.1, w1=W[k])[-1]
        assert_allclose(model.coef_[k], expected, rtol=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
def test_joint_losses(classes):
    X, _ = rows(30)
    y = np.arange(30) % classes
    W = np.random.default_rng(0).normal(size=(1 if classes == 2 else 3, 3))
    solver = Pegasos(t0=10.0, sampling="permutation")
    model = fitted(solver, data=(X, y), init=W, loss="crammer_singer")
    w = np.concatenate([-W / 2, W / 2]) if classes == 2 else W
    for t, A in enumerate(batches(30, 1)):
        g = oracle(losses.CrammerSinger(), classes).slope(X[A] @ w.T, y[A])
        w = ((t + 10) * w + g.T @ X[A] / 0.1) / (t + 11)
    assert_allclose(model.coef_, w[1:] - w[:1] if classes == 2 else w, rtol=1e-11)


def test_regression():
    X, y = rows()
    model = fitted(Pegasos(t0=7.0, sampling="permutation"), cls=LinearSVR, data=(X, 3 * y), init=W1[0], loss="squared")
    w = W1[0]
    for t, A in enumerate(batches(10, 1)):
        w = ((t + 7) * w + (3 * y[A] - X[A] @ w) @ X[A] / 0.1) / (t + 8)
    assert_allclose(model.coef_, w, rtol=1e-11)


@pytest.mark.parametrize(
    "solver", [Pegasos(t0=0, batch_size=4), Pegasos(), Norma(), SGD(), Pegasos(projection=True)], ids=repr
)
def test_bounds_hold(solver):
    X, y = rows(60, seed=1)
    star = o.optimum(X, y, loss="hinge", lam=0.1).primal
    for epochs in (1, 2, 5, 20):
        c = fitted(solver, epochs, data=(X, y), init=W1).certificate_
        assert c.dual <= star + 1e-9 <= c.primal + 2e-9


def test_the_ball_of_the_2007_paper():
    """Norms up to 1/√λ; beyond that only where nothing is projected."""
    edge = W1 / np.linalg.norm(W1) / np.sqrt(0.1)
    for solver in (Pegasos(t0=0, projection=True), SGD(projection=True)):
        fitted(solver, init=edge)
        with pytest.raises(ValueError, match=r"coef_init: its norm 3\.16544 exceeds 3\.16228, the radius of the ball"):
            fitted(solver, init=1.001 * edge)
    fitted(Pegasos(t0=0), init=100 * edge)
    with pytest.raises(ValueError, match="coef_init: its norm"):  # the bias is a weight
        fitted(Pegasos(projection=True), init=edge, bias_init=1.0, fit_intercept=True, intercept="feature")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fitted(SDCA(), init=W1), "coef_init, intercept_init: solver 'sdca' has no first iterate"),
        (lambda: fitted("auto", bias_init=[0.0]), "solver 'auto' has no first iterate"),
        (lambda: fitted("pegasos", init=np.zeros((2, 3))), r"coef_init has shape \(2, 3\), but must have \(1, 3\)"),
        (lambda: fitted("pegasos", init=np.zeros(4)), r"coef_init has shape \(4,\)"),
        (lambda: fitted("pegasos", bias_init=[1.0, 2.0]), r"intercept_init has shape \(2,\), but must have \(1,\)"),
        (lambda: fitted("pegasos", init=[0.0, np.nan, 0.0]), "coef_init has entries that are not finite"),
        (lambda: fitted("pegasos", bias_init=[1.0]), "intercept_init: there is no intercept with fit_intercept=False"),
    ],
)
def test_what_cannot_be_begun_at_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_it_replaces_what_warm_start_begins_with():
    X, y = rows()
    model = LinearSVC(solver=Pegasos(t0=0), lam=0.1, tol=0.0, max_iter=1, fit_intercept=False, warm_start=True)
    model.fit(X, y)
    assert_array_equal(model.fit(X, y, coef_init=W1).coef_, fitted(Pegasos(t0=0), init=W1).coef_)


def test_a_checkpoint_belongs_to_its_first_iterate(tmp_path):
    """The fit goes on to the same bits; another w_1 is another fit."""
    path = tmp_path / "fit"
    how = {"checkpoint": path, "checkpoint_every": 0.0}
    fitted(Pegasos(t0=3.0, batch_size=4), 2, init=W1, **how)
    for other in (None, 2 * W1):
        with pytest.raises(ValueError, match=r"start is .* here|coef_init or intercept_init differ"):
            fitted(Pegasos(t0=3.0, batch_size=4), 5, init=other, **how)
    resumed = fitted(Pegasos(t0=3.0, batch_size=4), 5, init=W1, **how)
    assert_array_equal(resumed.coef_, fitted(Pegasos(t0=3.0, batch_size=4), 5, init=W1).coef_)


def test_a_state_before_the_first_step_keeps_w1():
    X, y = rows()
    p = problem(X, y, losses.Hinge(), 0.1)
    one, other = (Pegasos(t0=0).engine(p, Options("none", 0)) for _ in range(2))
    one.begin_at(W1, None)
    assert_array_equal(one.model()[0], W1)
    other.restore(one.state())
    for engine in (one, other):
        engine.advance()
    assert_array_equal(one.model()[0], other.model()[0])
    assert np.abs(one.model()[0] - W1).max() > 0.01


def test_a_search_for_the_bias_has_many_runs_and_no_first_iterate():
    with pytest.raises(ValueError, match="with intercept='search' each bias has a run of its own"):
        fitted(Pegasos(), fit_intercept=True, intercept="search", init=W1)
