"""The interior point method: its steps against a slow oracle, its ends, and how often it asks for a certificate."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import problem, toy
from numpy.testing import assert_allclose
from oracles import BoxPoint, box_step, central_point
from scipy import sparse
from scipy.linalg import cython_lapack
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine

from pegasos import LinearSVC, LinearSVR, _core, losses
from pegasos.solvers.linear.interior_point import Boxes, InteriorPointEngine
from pegasos.solvers.linear.normal_equations import LAPACK, PRECISION_LOST, regularisation, solve_normal

PIECEWISE = [losses.Hinge(), losses.EpsilonInsensitive(0.1), losses.Quantile(0.3)]


def boxes_of(loss, m, n, bias, seed=0):
    """A problem, its rows x̃, diagonal R and boxes, in units of their mean height."""
    X, y = toy(loss, m, n, seed=seed)
    c = np.random.default_rng(seed).uniform(0.5, 2, m)
    p = problem(X, y, loss, 0.05, weight=c, bias=bias)
    boxes, A = Boxes(p, 0), X if bias == "none" else np.column_stack([X, np.ones(m)])
    unit = boxes.h.mean()
    return p, A, regularisation(p) / unit, boxes.h / unit, np.ascontiguousarray(boxes.s), boxes.p


def steps_of(p, R, h, s, q, index=None, beta=None, nearness=1.0):
    beta = np.zeros(len(R)) if beta is None else beta
    return _core.BoxSteps(LAPACK, p.examples.rows, index, p.bias != "none", 1, h, s, q, R, beta, nearness)


def point_of(steps, boxes):
    """Where the core is, and the slacks and scores that it keeps beside."""
    m = steps.rows
    a, t, z, v = steps.path()[: 4 * boxes * m].reshape(4, boxes, m)
    return BoxPoint(steps.beta(), a, z, v), t, steps.path()[4 * boxes * m :]


# --------------------------------------------------------------------------------------------------------------- steps


@pytest.mark.parametrize("bias", ["none", "feature", "free"])
@pytest.mark.parametrize("loss", PIECEWISE, ids=repr)
@pytest.mark.parametrize("m", [5, 8, 23])
def test_steps_are_those_of_the_oracle(loss, bias, m):
    p, A, R, h, s, q = boxes_of(loss, m, 3, bias)
    beta = np.random.default_rng(1).normal(size=len(R))
    steps = steps_of(p, R, h, s, q, beta=beta, nearness=0.7)
    expected = central_point(A, h, s, q, beta, 0.7)
    count = 0
    while steps.relative_gap > 1e-6:  # further on the oracle's h − a has too few digits
        now, t, score = point_of(steps, len(h))
        for mine, other in zip(now, expected, strict=True):
            assert_allclose(mine, other, rtol=1e-6, atol=1e-9 * np.abs(other).max())
        assert_allclose(t, h - now.a, rtol=1e-9, atol=1e-12)
        assert_allclose(score, A @ now.beta, rtol=1e-9, atol=1e-9)
        assert_allclose(steps.gap, np.sum(now.a * now.z + t * now.v), rtol=1e-12)
        assert steps.steps == count
        steps.step()
        expected, count = box_step(A, R, h, s, q, now), count + 1
    assert count > 3


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_steps_on_some_of_the_rows(kind, dtype):
    X, y = toy(losses.Hinge(), 30, 4)
    index = np.array([2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 0])
    X = X.astype(dtype)
    R, h, s = np.r_[np.full(4, 0.5), 0.0], np.ones((1, len(index))), y[None, index].copy()
    some = problem(kind(X), y, losses.Hinge(), 0.1, bias="free")
    few = problem(X[index].astype(float), y[index], losses.Hinge(), 0.1, bias="free")
    one, other = steps_of(some, R, h, s, np.ones_like(h), index=index), steps_of(few, R, h, s, np.ones_like(h))
    for _ in range(6):
        one.step()
        other.step()
    assert_allclose(one.beta(), other.beta(), rtol=1e-8)
    assert_allclose(one.duals(), other.duals(), rtol=1e-8)


def test_what_a_path_knows_of_itself_outlives_the_process():
    p, _, R, h, s, q = boxes_of(losses.EpsilonInsensitive(0.1), 20, 3, "free")
    one, other = (steps_of(p, R, h, s, q) for _ in range(2))
    for _ in range(5):
        one.step()
    other.restore(one.path(), one.beta(), one.length, one.steps)
    for name in ("gap", "relative_gap", "loss", "length", "steps"):
        assert getattr(other, name) == getattr(one, name)
        assert getattr(one, name) > 0
    one.step()
    other.step()
    assert np.array_equal(one.path(), other.path())


@pytest.mark.parametrize("what", ["path", "beta"])
def test_a_step_that_fails_changes_nothing(what):
    p = boxes_of(losses.Hinge(), 20, 3, "free")[0]
    engine = InteriorPointEngine(p)
    engine.advance()
    state = {name: array.copy() for name, array in engine.state().items()}
    state[f"0.{what}"][1] = np.nan
    engine.restore(state)
    engine.advance()
    assert engine.stuck == PRECISION_LOST
    assert engine.due(1e-3)  # there is nothing to wait for
    for name in ("0.path", "0.beta", "0.iterations"):
        np.testing.assert_array_equal(engine.state()[name], state[name])


def test_the_path_ends_feasible():
    """Rβ = X̃ᵀ(s∘a) to more digits than normal equations have near the end of the path."""
    X, y = load_breast_cancer(return_X_y=True)
    p = problem(X, np.where(y == 0, 1.0, -1.0), losses.Hinge(), 1 / len(y), bias="free")
    engine = InteriorPointEngine(p)
    while engine.paths[0].steps.relative_gap > 1e-9:
        engine.advance()
    (W, _), u = engine.model(), engine.duals()
    assert_allclose(p.dual_weights(u), W, atol=1e-9 * np.linalg.norm(W))
    assert abs(u.sum()) <= 1e-14 * np.abs(u).sum()


# -------------------------------------------------------------------------------------------------------- certificates


def standardised(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris, load_wine])
@pytest.mark.parametrize("scale", [np.asarray, standardised])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_tiny_problems_are_solved_accurately_with_one_or_two_certificates(load, scale, C):
    X, y = load(return_X_y=True)
    model = LinearSVC(C=C).fit(scale(X), y)
    assert model.certificate_.relative_gap <= 1e-12
    assert 1 <= len(model.trace_) <= 2
    assert model.certificate_.epochs < 30


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "quantile"])
def test_so_are_tiny_regressions(loss):
    model = LinearSVR(loss=loss).fit(*load_diabetes(return_X_y=True))
    assert model.certificate_.relative_gap <= 1e-12
    assert 1 <= len(model.trace_) <= 2


def test_max_iter_is_kept_where_certificates_are_rare():
    with pytest.warns(UserWarning, match="max_iter reached"):
        model = LinearSVC(max_iter=3).fit(*load_iris(return_X_y=True))
    assert model.n_iter_ == 3
    assert np.isfinite(model.certificate_.primal)


def test_a_certificate_that_is_not_enough_asks_for_more_of_every_part():
    X, y = toy(losses.Hinge(), 40, 3, classes=3)
    p = problem(X, y, losses.Hinge(), 0.05, bias="free")
    engine = InteriorPointEngine(p)
    while not engine.due(0.0):
        engine.advance()
    assert not engine.eager
    engine.learn(p.certify(engine.point()))
    before = engine.epochs
    engine.advance()
    assert engine.epochs > before or engine.stuck is not None


# --------------------------------------------------------------------------------------------------- normal equations


def test_wide_normal_matrices():
    A = np.random.default_rng(0).normal(size=(400, 150))
    M, r = A.T @ A, A.sum(axis=0)
    assert_allclose(solve_normal(M, r), np.linalg.solve(M, r), rtol=1e-9)


@pytest.mark.parametrize("M", [-np.eye(3), np.full((3, 3), np.nan), np.diag([1.0, np.nan, 1.0])])
def test_what_no_ridge_makes_definite_is_refused(M):
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        solve_normal(M, np.ones(3))


def test_shapes_and_functions_are_checked_at_the_border():
    p, _, R, h, s, q = boxes_of(losses.Hinge(), 20, 3, "free")
    calls = [
        (lambda: solve_normal(np.eye(3), np.ones(2)), "M has length 3, not 2"),
        (lambda: solve_normal(np.ones((3, 2)), np.ones(3)), "M has 2 columns, not 3"),
        (lambda: solve_normal(np.ones((0, 0)), np.ones(0)), "M has no size"),
        (lambda: _core.Lapack(cython_lapack.__pyx_capi__["dpotrs"]), "dpotrf has type"),
        (lambda: _core.Lapack(cython_lapack.__pyx_capi__["dlamch"]), "dpotrf has type"),
        (lambda: steps_of(p, R[1:], h, s, q), "R has length 3, not 4"),
        (lambda: steps_of(p, R, h, s[:, 1:].copy(), q), "s has 19 columns, not 20"),
        (lambda: steps_of(p, R, h[:, 1:].copy(), s, q), "h has 19 columns, not 20"),
        (lambda: steps_of(p, R, h, s, q, beta=np.ones(3)), "beta has length 3, not 4"),
        (lambda: steps_of(p, R, h[:0], s[:0], q[:0]), "there are no boxes"),
        (lambda: steps_of(p, R, h, s, q, index=np.zeros(0, dtype=np.int64)), "there are no rows"),
        (lambda: steps_of(p, R, h, s, q).restore(np.ones(3), R, 1.0, 0), "path has length 3"),
    ]
    for call, message in calls:
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(IndexError, match="row index"):
        steps_of(p, R, h, s, q, index=np.full(20, 20))
