"""Certificates against the oracles: D ≤ P* ≤ P for any weights, dual point and row weights, and for every run."""

from __future__ import annotations

import numpy as np
import oracles as o
import pytest
from conftest import CASES, ORACLE_BIAS, SCALAR, advance, dual_value, kind_of, optimum, oracle, problem, toy
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from pegasos import _core, losses
from pegasos.fit.engine import Options
from pegasos.problems.base import Bounds, Point
from pegasos.problems.linear import Weights, feasible
from pegasos.solvers import SGD, Norma, Pegasos

every = pytest.mark.parametrize("loss", CASES, ids=repr)
biases = pytest.mark.parametrize("bias", ORACLE_BIAS)
several = settings(deadline=None, derandomize=True, max_examples=8)
seeds = st.integers(0, 10**6)


def random_weights(m, rng):
    """None, or row weights of which some are zero."""
    if rng.random() < 0.3:
        return None
    c = rng.uniform(0.1, 3, m)
    c[rng.random(m) < 0.2] = 0.0
    return c


def random_problem(loss, bias, seed, *, classes=None, m=18, n=3):
    rng = np.random.default_rng(seed)
    X, y = toy(loss, m, n, classes=classes, seed=seed)
    c = random_weights(m, rng)
    if c is not None and loss.kind != "regression":
        c[: classes or 3] += 0.5  # every class weighs something
    lam = 10.0 ** rng.uniform(-2, 1)
    return problem(X, y, loss, lam, weight=c, bias=bias, feature=rng.uniform(0.3, 2)), rng


def random_point(p, rng):
    scale = 10.0 ** rng.uniform(-1, 1)
    W, b = scale * rng.normal(size=(p.outputs, p.examples.n)), scale * rng.normal(size=p.outputs)
    if p.bias == "none":
        b = np.zeros(p.outputs)
    return Point(Weights(W, b), scale * rng.normal(size=(p.examples.m, p.outputs)))


def slack(value):
    return 1e-8 * abs(value) + 1e-12


def sandwiched(p, bounds, best=None):
    """D ≤ P* ≤ P, each part."""
    for part, star in enumerate(best or optimum(p)):
        assert bounds.dual[part] <= star.primal + slack(star.primal)
        assert bounds.primal[part] >= star.dual - slack(star.dual)


def targets(p, part):
    return p.target if p.joint else p.targets(part)


# ------------------------------------------------------------------------------------------------------ any point


@every
@biases
@several
@given(seed=seeds)
def test_any_point_is_a_sandwich(loss, bias, seed):
    p, rng = random_problem(loss, bias, seed)
    sandwiched(p, p.certify(random_point(p, rng)))


@pytest.mark.parametrize("loss", [losses.Hinge(), losses.Log()], ids=repr)
@biases
@several
@given(seed=seeds)
def test_any_point_is_a_sandwich_one_vs_rest(loss, bias, seed):
    p, rng = random_problem(loss, bias, seed, classes=4)
    bounds = p.certify(random_point(p, rng))
    assert bounds.primal.shape == bounds.dual.shape == (4,)
    sandwiched(p, bounds)


@every
@biases
def test_values_match_the_oracle(loss, bias):
    """P of the point given, and D of the dual point made feasible."""
    p, rng = random_problem(loss, bias, 1)
    point = random_point(p, rng)
    (W, b), u, bounds = point.model, point.duals, p.certify(point)
    options = {"loss": oracle(loss), "lam": p.lam, "weight": p.weight}
    if bias == "free" and not p.joint:
        b = bounds.model.b  # replaced by the best for these weights
    w, offset = (W, b) if p.joint else (W[0], b[0])
    P = o.primal(p.examples.array, p.target, w, offset, **options)
    if bias == "feature":
        P += p.lam / 2 * ((b / p.feature) ** 2).sum()
    assert_allclose(bounds.primal[0], P, rtol=1e-12)
    v = feasible(p, u)
    X = o.augment(p.examples.array, p.feature if bias == "feature" else None)
    D = o.dual(X, p.target, v if p.joint else v[:, 0], **options)
    assert np.isfinite(D)  # feasible
    assert_allclose(bounds.dual[0], D, rtol=1e-11, atol=1e-12)
    assert_allclose(dual_value(p, u), bounds.dual, rtol=1e-13)


@every
@several
@given(seed=seeds)
def test_free_bias_balances_the_dual_point(loss, seed):
    p, rng = random_problem(loss, "free", seed)
    u = feasible(p, random_point(p, rng).duals)
    assert np.abs(p.c @ u).max() <= 1e-10 * p.total * (1 + np.abs(u).max())
    assert np.isfinite(oracle(loss).conjugate(u if p.joint else u[:, 0], p.target)).all()


@every
@biases
def test_feasible_leaves_feasible_points_alone(loss, bias):
    p, _ = random_problem(loss, bias, 2)
    star = optimum(p)[0]
    u = star.u if p.joint else star.u[:, None]
    assert_allclose(p.c[:, None] * feasible(p, u.copy()), p.c[:, None] * u, rtol=1e-7, atol=1e-8)


@every
@biases
def test_the_optimum_certifies_itself(loss, bias):
    p, _ = random_problem(loss, bias, 3)
    star = optimum(p)[0]
    W, u = (star.w, star.u) if p.joint else (star.w[None], star.u[:, None])
    b = np.broadcast_to(np.asarray(star.b, dtype=float), (p.outputs,)).copy()
    bounds = p.certify(Point(Weights(np.ascontiguousarray(W), b), u))
    assert_allclose(bounds.primal[0], star.primal, rtol=1e-9)
    assert 0 <= bounds.gap[0] <= 1e-7 * star.primal + 1e-12


@pytest.mark.parametrize("loss", SCALAR, ids=repr)
def test_free_bias_is_the_best_one(loss):
    p, rng = random_problem(loss, "free", 4)
    (W, b) = random_point(p, rng).model
    bounds = p.certify(Point(Weights(W, b)))
    assert_allclose(bounds.scores, p.scores(W, bounds.model.b), rtol=1e-12, atol=1e-12)
    best = o.best_bias(p.examples.array @ W[0], p.target, loss=oracle(loss), weight=p.weight)
    options = {"loss": oracle(loss), "lam": p.lam, "weight": p.weight}
    assert_allclose(bounds.primal[0], o.primal(p.examples.array, p.target, W[0], best, **options), rtol=1e-10)


def test_no_dual_point_is_no_lower_bound():
    p, rng = random_problem(losses.Hinge(), "none", 5)
    assert p.certify(Point(random_point(p, rng).model)).dual.tolist() == [-np.inf]


@pytest.mark.parametrize("loss", [losses.Hinge(), losses.Squared(), losses.CrammerSinger()], ids=repr)
def test_one_class_only_has_a_free_bias(loss):
    """All rows of one class: the optimum is zero, and says so."""
    X, y = toy(loss)
    y = np.where(np.arange(len(y)) < 0, y, y[0]) if loss.kind != "joint" else np.append(np.zeros(39, dtype=int), 2)
    c = np.append(np.ones(39), 0.0) if loss.kind == "joint" else None
    p = problem(X, y, loss, 0.1, weight=c, bias="free")
    W, b = np.zeros((p.outputs, 4)), 100.0 * (np.arange(p.outputs) == 0) if p.joint else np.zeros(1)
    bounds = p.certify(Point(Weights(W, b), np.ones((40, p.outputs))))
    assert_allclose([bounds.primal[0], bounds.dual[0]], 0.0, atol=1e-12)


def test_gap_of_rounding_is_zero():
    one = np.ones(1)
    assert Bounds(one, one + 1e-15, one, one).gap[0] == 0.0
    assert Bounds(one, one - 0.1, one, one).gap[0] == pytest.approx(0.1)


# ------------------------------------------------------------------------------------------------------- every run


RUNS = {
    "whole epochs": (Pegasos(t0=0.0), "none"),
    "fixed order": (Pegasos(t0=0.0, sampling="fixed"), "none"),
    "iid": (Pegasos(t0=0.0, sampling="iid"), "none"),
    "projection": (Pegasos(t0=0.0, projection=True), "none"),
    "t0": (Pegasos(t0=300.0), "none"),
    "uneven batches": (Pegasos(t0=0.0, batch_size=7), "none"),
    "full batches": (Pegasos(t0=0.0, batch_size=40), "none"),
    "regularised bias": (Pegasos(), "feature"),
    "unregularised bias": (Pegasos(), "unregularized"),
    "bias by batches": (Pegasos(batch_size=8), "batch"),
    "average": (Pegasos(output="average"), "none"),
    "suffix": (Pegasos(output="suffix"), "none"),
    "random": (Pegasos(output="random"), "none"),
    "norma": (Norma(p=0.5), "none"),
    "norma with bias": (Norma(p=0.5), "unregularized"),
    "sgd": (SGD(eta=0.1), "none"),
    "sgd projected": (SGD(eta=0.1, projection=True), "feature"),
}


def run_problem(loss, intercept, *, weighted, lam=0.1):
    X, y = toy(loss, seed=11)
    c = random_weights(40, np.random.default_rng(6)) if weighted else None
    return problem(X, y, loss, lam, weight=c, bias=kind_of(intercept))


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("weighted", [False, True])
def test_runs_never_exceed_the_optimum(name, weighted):
    """The reported dual over many seeds, at whole epochs and in the middle of one."""
    solver, intercept = RUNS[name]
    p = run_problem(losses.Hinge(), intercept, weighted=weighted)
    best = optimum(p)
    for seed in range(15):
        engine = solver.engine(p, Options(intercept, seed))
        for rows in (40, 40, 17, 23, 40, 40, 9):
            engine.lanes.solvers[0].advance(rows)
            sandwiched(p, p.certify(engine.point()), best)


@every
@pytest.mark.parametrize("name", ["whole epochs", "iid", "projection", "unregularised bias"])
def test_runs_never_exceed_the_optimum_any_loss(loss, name):
    solver, intercept = RUNS[name]
    p = run_problem(loss, intercept, weighted=True, lam=1.0)
    best = optimum(p)
    for seed in range(4):
        engine = solver.engine(p, Options(intercept, seed))
        for rows in (40, 25, 15):
            engine.lanes.solvers[0].advance(rows)
            sandwiched(p, p.certify(engine.point()), best)


def raw_excess(sampling, rows, *, lam=0.1, seeds=30):
    """By how much the formula S/Ω − (λ/2)‖w‖², not corrected, exceeds the optimum: the most of many seeds."""
    X, y = toy(losses.Hinge(), seed=11)
    star = o.optimum(X, y, loss="hinge", lam=lam).primal
    found = []
    for seed in range(seeds):
        orders = [_core.epoch_order(40, sampling, seed, e) for e in range(2)]
        order = np.concatenate(orders)[:rows]
        W = o.pegasos(X, y, order, lam=lam, loss="hinge")
        found.append(o.free_certificate(X, y, order, W, lam=lam, loss="hinge").dual - star)
    return max(found)


def test_the_raw_formula_needs_whole_epochs():
    """Whole epochs: a bound. Half an epoch more, or independent draws: none, so the repair above is not idle."""
    assert raw_excess("permutation", 80) <= 1e-12
    assert raw_excess("permutation", 60) > 1e-3
    assert raw_excess("iid", 80) > 1e-3


@pytest.mark.parametrize("loss", SCALAR, ids=repr)
def test_an_unregularised_bias_needs_balance(loss):
    """The best dual point without a bias bounds a larger optimum; balanced, it bounds the one with a bias."""
    X, y = toy(loss, seed=2)
    keep = np.argsort(-y if loss.kind == "regression" else y, kind="stable")[:32]  # far off centre
    p = problem(X[keep], y[keep], loss, 0.1, bias="free")
    u = optimum(problem(X[keep], y[keep], loss, 0.1))[0].u[:, None]
    star = optimum(p)[0].primal
    raw = p.mean_conjugates(u)[0] - p.lam / 2 * p.squared_norms_of(p.dual_weights(u))[0]
    assert raw > star + 1e-4
    assert dual_value(p, u)[0] <= star + slack(star)


@every
def test_dual_point_is_at_least_as_good_as_the_free_certificate(loss):
    """D(ū) ≥ S/Ω − (λ/2)‖w‖² by Jensen, with equality for piecewise linear losses."""
    X, y = toy(loss)
    p = problem(X, y, loss, 1.0)
    engine = advance(Pegasos(t0=0.0).engine(p, Options("none", 3)), 1)
    order = _core.epoch_order(40, "permutation", 3, 0)
    W = o.pegasos(X, y, order, lam=1.0, loss=oracle(loss))
    free = o.free_certificate(X, y, order, W, lam=1.0, loss=oracle(loss)).dual
    mine = dual_value(p, engine.duals())[0]
    assert mine >= free - 1e-10 * (1 + abs(free))
    if loss.piecewise_linear or loss.name == "crammer_singer":
        assert_allclose(mine, free, rtol=1e-10)


@every
def test_the_window_tightens(loss):
    """More epochs, a smaller gap; and far below the gap of the whole history."""
    X, y = toy(loss, 60, 4)
    p = problem(X, y, loss, 0.1)
    star = optimum(p)[0].primal
    below = []
    engine = Pegasos().engine(p, Options("none", 0))
    for epochs in (1, 4, 16, 64):
        advance(engine, epochs)
        below.append(star - dual_value(p, engine.duals())[0])
    assert min(below) >= -1e-9
    assert below[-1] < 0.1 * below[0]
    assert below[-1] < 2e-2 * star


def test_window_beats_the_whole_history():
    X, y = toy(losses.Hinge(), 60, 4)
    p = problem(X, y, losses.Hinge(), 0.03)
    star = optimum(p)[0].primal
    engine = advance(Pegasos(t0=0.0).engine(p, Options("none", 0)), 32)
    order = np.concatenate([_core.epoch_order(60, "permutation", 0, e) for e in range(32)])
    W = o.pegasos(X, y, order, lam=0.03, loss="hinge")
    whole = o.free_certificate(X, y, order, W, lam=0.03, loss="hinge")
    window = o.free_certificate(X, y, order, W, lam=0.03, loss="hinge", start=16 * 60)
    mine = dual_value(p, engine.duals())[0]
    assert_allclose(mine, window.dual, rtol=1e-9)
    assert star - mine < 0.2 * (star - whole.dual)
