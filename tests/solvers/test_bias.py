"""The bias: the best one for fixed scores, and the five ways to learn it."""

from __future__ import annotations

import numpy as np
import oracles as o
import pytest
from conftest import SCALAR, advance, kind_of, optimum, oracle, problem, solve, toy
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from sklearn.svm import SVC, SVR
from sklearn.svm import LinearSVC as LiblinearSVC

from pegasos import LinearSVC, LinearSVR, _core, losses
from pegasos.fit.engine import Options
from pegasos.problems.base import Point
from pegasos.problems.linear import Weights, feasible
from pegasos.solvers import SDCA, Auto, CuttingPlane, InteriorPoint, Pegasos
from pegasos.solvers.linear.bias_search import lowest

several = settings(deadline=None, derandomize=True, max_examples=50)
scalar = pytest.mark.parametrize("loss", SCALAR, ids=repr)


# ------------------------------------------------------------------------------------------------------- best_offset


def offset(loss, s, y, c=None, start=0.0):
    s, y = np.asarray(s, dtype=float), np.asarray(y, dtype=float)
    c = np.ones(len(s)) if c is None else np.asarray(c, dtype=float)
    return loss.core().best_offset(s, y, c, start)


@several
@given(seed=st.integers(0, 10**6), tied=st.booleans(), weighted=st.booleans())
def test_hinge_interval(seed, tied, weighted):
    """All minimisers, as the order statistics say."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 20))
    s, y = rng.normal(size=m), rng.choice([-1.0, 1.0], m)
    y[:2] = 1.0, -1.0
    if tied:
        s = np.round(s)
    c = rng.integers(0, 4, m).astype(float) if weighted else None
    if weighted:
        c[:2] = 1.0
    lo, hi, flat = offset(losses.Hinge(), s, y, c)
    expected = o.hinge_bias_interval(s, y, c)
    assert_allclose([lo, hi], expected, rtol=1e-9, atol=1e-9)
    if expected[1] > expected[0]:
        assert flat
    if flat:  # the slopes in the middle are balanced as they are
        c = np.ones(m) if c is None else c
        assert abs(c @ losses.Hinge().core().slope(s + 0.5 * (lo + hi), y)) <= 1e-9


@scalar
@several
@given(seed=st.integers(0, 10**6))
def test_no_bias_is_better(loss, seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 25))
    s, c = rng.normal(size=m), rng.uniform(0, 2, m)
    y = rng.choice([-1.0, 1.0], m) if loss.kind == "margin" else rng.normal(size=m)
    y[:2], c[:2] = (1.0, -1.0), 1.0
    lo, hi, _ = offset(loss, s, y, c, float(rng.normal(0, 10)))
    middle = 0.5 * (lo + hi)
    value = lambda b: float(c @ oracle(loss).value(s + b, y))  # noqa: E731
    best = value(o.best_bias(s, y, loss=oracle(loss), weight=c))
    assert value(middle) <= best + 1e-9 * (1 + best)
    for b in (lo, hi):
        assert value(b) <= best + 1e-9 * (1 + best)


@pytest.mark.parametrize("y", [1.0, -1.0])
def test_one_class(y):
    """Any bias beyond the extreme is best; the nearest one is given."""
    s = np.array([-0.5, 0.2, 3.0])
    lo, hi, flat = offset(losses.Hinge(), s, np.full(3, y))
    edge = 1.5 if y > 0 else -4.0
    assert flat
    assert_allclose([lo, hi], edge, atol=1e-9)
    assert (losses.Hinge().core().value(s + lo, np.full(3, y)) <= 1e-9).all()


def test_rows_of_weight_zero_do_not_count():
    s, y = np.array([0.0, 0.0, 50.0, -70.0]), np.array([1.0, -1.0, 1.0, -1.0])
    assert_allclose(offset(losses.Hinge(), s, y, [1, 1, 0, 0])[:2], (-1, 1), atol=1e-9)


def test_median_and_mean():
    y = np.array([0.0, 1.0, 5.0, 6.0, 100.0])
    zero = np.zeros(5)
    assert_allclose(offset(losses.EpsilonInsensitive(), zero, y)[:2], 5.0)
    assert_allclose(offset(losses.Squared(), zero, y)[:2], y.mean(), rtol=1e-9)
    assert_allclose(offset(losses.Quantile(0.9), zero, y)[:2], 100.0)
    lo, hi, flat = offset(losses.Quantile(0.4), zero, y)
    assert flat
    assert_allclose([lo, hi], [1.0, 5.0])


@pytest.mark.parametrize("size", [1e-6, 1e6])
def test_any_scale(size):
    y = size * np.array([0.0, 1.0, 5.0, 6.0, 100.0])
    assert_allclose(offset(losses.EpsilonInsensitive(), np.zeros(5), y)[:2], 5.0 * size, rtol=1e-9)
    assert_allclose(offset(losses.Squared(), np.zeros(5), y)[:2], y.mean(), rtol=1e-6)


# ------------------------------------------------------------------------------------------------- lines of the search


@several
@given(seed=st.integers(0, 10**6), count=st.integers(1, 8))
def test_lowest_point_of_lines(seed, count):
    """Against a fine grid: the point is on the envelope, and nothing is lower."""
    rng = np.random.default_rng(seed)
    lines = [(float(h), float(s)) for h, s in zip(rng.normal(size=count), rng.normal(size=count), strict=True)]
    lines += [(float(rng.normal()), 0.0)]
    envelope = lambda b: max(h + s * b for h, s in lines)  # noqa: E731
    b, value = lowest(lines)
    assert envelope(b) == pytest.approx(value, abs=1e-9)
    assert value <= min(map(envelope, np.linspace(-20, 20, 401))) + 1e-9


def test_lines_that_fall_for_ever():
    assert lowest([(0.0, 1.0), (1.0, 2.0)])[1] == -np.inf


# ------------------------------------------------------------------------------------------------------ against others


def centred(m=60, n=4, seed=0):
    """A binary problem whose bias matters."""
    X, y = toy(losses.Hinge(), m, n, seed=seed)
    return X + 0.8, y


@pytest.mark.parametrize("solver", [Auto(), SDCA(), InteriorPoint(), CuttingPlane()], ids=lambda s: s.name)
@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_unregularized_is_libsvm(solver, C):
    X, y = centred()
    theirs = SVC(kernel="linear", C=C, tol=1e-8).fit(X, y)
    mine = LinearSVC(C=C, solver=solver, tol=1e-7, max_iter=20_000, intercept="unregularized").fit(X, y)
    assert_allclose(mine.coef_, theirs.coef_, atol=2e-3)
    scores = X @ theirs.coef_[0]
    lo, hi = o.hinge_bias_interval(scores, y)
    assert lo - 2e-3 <= mine.intercept_[0] <= hi + 2e-3
    assert_allclose(mine.decision_function(X), theirs.decision_function(X), atol=1e-2)


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_unregularized_regression_is_libsvm(C):
    X, y = toy(losses.EpsilonInsensitive(), 60, 4)
    theirs = SVR(kernel="linear", C=C, epsilon=0.1, tol=1e-8).fit(X, y)
    mine = LinearSVR(loss=losses.EpsilonInsensitive(0.1), C=C, tol=1e-8).fit(X, y)
    options = {"loss": o.EpsilonInsensitive(0.1), "lam": 1 / (60 * C)}
    values = [o.primal(X, y, np.ravel(f.coef_), float(np.ravel(f.intercept_)[0]), **options) for f in (mine, theirs)]
    assert_allclose(*values, rtol=1e-5)
    assert_allclose(np.ravel(mine.coef_), np.ravel(theirs.coef_), atol=5e-3)


@pytest.mark.parametrize("B", [0.5, 1.0, 10.0])
@pytest.mark.parametrize("C", [0.1, 1.0])
def test_feature_is_liblinear(B, C):
    X, y = centred()
    theirs = LiblinearSVC(loss="hinge", C=C, intercept_scaling=B, tol=1e-9, max_iter=10**6).fit(X, y)
    mine = LinearSVC(C=C, intercept="feature", intercept_scaling=B, tol=1e-8, max_iter=20_000).fit(X, y)

    def objective(f):
        penalty = 0.5 * (float((f.coef_**2).sum()) + float(f.intercept_[0] / B) ** 2)
        return penalty + C * np.maximum(0, 1 - y * f.decision_function(X)).sum()

    assert_allclose(objective(mine), objective(theirs), rtol=1e-6)
    assert_allclose(mine.coef_, theirs.coef_, atol=2e-3)
    assert_allclose(mine.certificate_.primal * C * 60, objective(mine), rtol=1e-9)


# ------------------------------------------------------------------------------------------------------ the five ways


WAYS = {
    "unregularized": SDCA(),
    "feature": SDCA(),
    "search": SDCA(),
    "search by pegasos": Pegasos(),
    "subgradient": Pegasos(),
    "batch": Pegasos(batch_size=20),
}


@pytest.mark.parametrize("intercept", WAYS)
@scalar
def test_gaps_are_honest(intercept, loss):
    """The certified dual never exceeds the optimum with an unregularised bias (or the feature's own)."""
    X, y, solver = *toy(loss, 60, 4), WAYS[intercept]
    intercept = intercept.split()[0]
    c = np.random.default_rng(0).uniform(0.2, 2, 60)
    p = problem(X, y, loss, 0.05, weight=c, bias=kind_of(intercept), feature=1.3)
    star = optimum(p)[0].primal
    result = solve(p, solver, intercept, tol=1e-3, max_iter=120)
    for checkpoint in result.trace:
        assert checkpoint.dual <= star * (1 + 1e-8)
        assert checkpoint.primal >= star * (1 - 1e-8)
    assert result.certificate.primal - star <= result.certificate.gap + 1e-8 * star
    assert result.certificate.primal <= 1.1 * star


@pytest.mark.parametrize("intercept", ["unregularized", "search"])
@scalar
def test_exact_ways_find_the_optimum(intercept, loss):
    X, y = toy(loss, 60, 4)
    p = problem(X, y, loss, 0.1, bias="free")
    star = optimum(p)[0]
    result = solve(p, SDCA(), intercept, tol=1e-5, max_iter=3000)
    assert result.certificate.converged
    assert_allclose(result.certificate.primal, star.primal, rtol=2e-5)


@pytest.mark.parametrize("solver", [SDCA(), Pegasos()], ids=lambda s: s.name)
def test_search_moves_the_bias_of_each_class(solver):
    X, y = toy(losses.Hinge(), 60, 4, classes=3)
    p = problem(X + 0.5, y, losses.Hinge(), 0.05, bias="free")
    stars = optimum(p)
    result = solve(p, solver, "search", tol=1e-3, max_iter=8000)
    assert result.certificate.converged
    for star, primal, dual in zip(
        stars, result.certificate.primal_per_class, result.certificate.dual_per_class, strict=True
    ):
        assert dual <= star.primal * (1 + 1e-8)
        assert primal <= star.primal * (1 + 1.1e-3)


@pytest.mark.parametrize("solver", [Pegasos(), Pegasos(t0=0), Pegasos(t0=0, projection=True)], ids=repr)
@pytest.mark.parametrize("lam", [0.3, 0.03])
def test_search_with_pegasos_finds_the_optimum(solver, lam):
    """The paper's outer loop: also with rows far from 0, one class rare, and steps as printed."""
    X, y = centred()
    y = np.where(np.arange(60) % 3 == 0, y, -1.0)
    p = problem(X, y, losses.Hinge(), lam, bias="free")
    star = optimum(p)[0].primal
    result = solve(p, solver, "search", tol=1e-3, max_iter=20_000)
    assert result.certificate.converged
    assert star * (1 - 1e-9) <= result.certificate.primal <= star * (1 + 1e-3)
    assert star * (1 - 1.1e-3) <= result.certificate.dual <= star * (1 + 1e-9)


def test_runs_of_the_search_are_those_of_pegasos_at_a_fixed_bias():
    """Each application is Fig. 1 on the margins y(⟨w, x⟩ + b), from w = 0; its line is below J everywhere."""
    X, y = centred(40)
    lam, p = 0.05, problem(*centred(40), losses.Hinge(), 0.05, bias="free")
    engine = Pegasos(t0=0, sampling="permutation").engine(p, Options("search", 3))
    biases = np.linspace(-3, 3, 13)
    exact = [optimum_at(X, y, lam, b) for b in biases]
    for number in range(6):
        assert engine.round == number
        b = float(engine.b[0])
        w, t = np.zeros(4), 0
        while not engine.due(0.0):
            epoch = int(engine.inner.epochs)
            advance(engine, engine.epochs + 1)
            for i in _core.epoch_order(40, "permutation", 3 + number, epoch):
                t += 1
                violated = y[i] * (w @ X[i] + b) < 1
                w = (1 - 1 / t) * w + violated * y[i] * X[i] / (lam * t)
            assert_allclose(engine.model()[0][0], w, atol=1e-10)
            assert engine.model()[1][0] == b
        engine.learn(p.certify(engine.point()))
        for height, slope in engine.lines[0]:
            assert np.all(height + slope * biases <= np.array(exact) + 1e-7)
    assert abs(engine.b[0]) > 0.1


def optimum_at(X, y, lam, b):
    """J(b), by the dual at a fixed bias."""
    m = len(y)

    def dual(a):
        w = (a * y) @ X / (lam * m)
        return lam / 2 * w @ w - a @ (1 - y * b) / m, (y * (X @ w) - 1 + y * b) / m

    return -minimize(dual, np.full(m, 0.5), jac=True, bounds=[(0, 1)] * m, options={"ftol": 1e-13}).fun


@scalar
def test_batch_slopes_are_balanced(loss):
    """Each batch's slopes add up to zero, so whole epochs give a dual point that needs no repair."""
    X, y = toy(loss, 60, 4)
    p = problem(X, y, loss, 0.5, bias="free")
    u = advance(Pegasos(batch_size=20).engine(p, Options("batch", 0)), 3).duals()
    assert abs(float(u.sum())) <= 1e-9 * max(1.0, float(np.abs(u).sum()))
    assert_allclose(feasible(p, u), u, atol=1e-9)


def test_full_batches_converge():
    """With all rows in one batch the inner bias is exact: the deterministic sub-gradient method."""
    X, y = centred(40)
    p = problem(X, y, losses.Hinge(), 0.1, bias="free")
    star = optimum(p)[0].primal
    result = solve(p, Pegasos(batch_size=40), "batch", tol=0.0, max_iter=2000)
    assert result.certificate.primal - star < 1e-3 * star
    assert result.certificate.relative_gap < 5e-3


def test_constant_features_need_no_bias():
    """A large constant feature approaches the free bias from above."""
    X, y = centred()
    free = optimum(problem(X, y, losses.Hinge(), 0.05, bias="free"))[0].primal
    values = []
    for B in (1.0, 10.0, 100.0):
        p = problem(X, y, losses.Hinge(), 0.05, bias="feature", feature=B)
        values.append(solve(p, InteriorPoint(), "feature", tol=1e-9).certificate.primal)
    assert values[0] > values[1] > values[2] >= free * (1 - 1e-9)
    assert values[2] < free * (1 + 1e-3)


def test_certify_replaces_the_bias():
    X, y = centred()
    p = problem(X, y, losses.Hinge(), 0.05, bias="free")
    W = np.ones((1, 4))
    values = {float(p.certify(Point(Weights(W, np.array([b])))).primal[0]) for b in (-5.0, 0.0, 7.0)}
    assert max(values) - min(values) < 1e-12
