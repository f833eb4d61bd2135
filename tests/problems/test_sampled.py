"""Estimates of the objective: how often their intervals cover it, and which rows choose between two models."""

import numpy as np
import oracles as o
import pytest
from conftest import problem

from pegasos import losses
from pegasos.estimators.drawn import Drawn, judged_rows, sampled
from pegasos.problems.base import Point
from pegasos.problems.linear import Weights

LAM, REPEATS = 0.1, 3000


def estimates(p, model, n):
    return [sampled(p, None, n, seed).certify(Point(model)).sampled for seed in range(REPEATS)]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "log", "epsilon_insensitive", "crammer_singer"])
def test_intervals_cover_the_objective_as_often_as_they_say(loss, weighted):
    rng = np.random.default_rng(0)
    loss, m = losses.LOSSES[loss](), 300
    kind = {"joint": "multiclass", "regression": "real", "margin": "binary"}[loss.kind]
    X, y = o.toy(m, 4, kind=kind, seed=1)
    c = rng.uniform(0.5, 1.5, m) if weighted else None
    p = problem(X, y, loss, LAM, weight=c)
    model = Weights(0.3 * rng.standard_normal((p.outputs, 4)), np.zeros(p.outputs))
    P = float(p.penalty(p.squared_norms_of(model.W), model.b).sum() + p.mean_losses(p.scores(*model)).sum())
    found = estimates(p, model, 100)
    values = np.array([e.value for e in found])
    assert values.mean() == pytest.approx(P, abs=4 * values.std() / np.sqrt(REPEATS))
    covered = np.mean([e.low <= P <= e.high for e in found])
    assert 0.935 <= covered <= 0.965  # the standard error of the share is 0.004


def test_no_loss_is_below_zero():
    X, y = o.toy(50, 3, seed=0)
    p = problem(X, y, losses.Hinge(), LAM)
    model = Weights(np.zeros((1, 3)), np.array([0.97 * y[0]]))
    for seed in range(30):
        e = sampled(p, None, 2, seed).certify(Point(model)).sampled
        assert 0 <= e.low <= e.value <= e.high


def test_drawn_rows_stand_for_all():
    """The problem of some rows of others has the λ and weights of all: its estimate is that of all."""
    X, y = o.toy(500, 3, seed=0)
    c = np.random.default_rng(1).uniform(0.5, 2, 500)
    judged = judged_rows(500, 60, seed=4)
    rows = np.concatenate([np.arange(20), judged])
    model = Weights(np.array([[0.5, -1, 0.2]]), np.array([0.1]))
    whole = sampled(problem(X, y, losses.Hinge(), LAM, weight=c), None, 60, 4)
    some = sampled(
        problem(X[rows], y[rows], losses.Hinge(), LAM, weight=c[rows]), Drawn(rows, 20, 500, float(c.sum())), 60, 4
    )
    one, other = (p.certify(Point(model)).sampled for p in (whole, some))
    np.testing.assert_allclose(one, other, rtol=1e-12)
    assert some.digests() != whole.digests()


def test_rows_that_judge_have_not_chosen():
    X, y = o.toy(500, 3, seed=0)
    rows = np.arange(40)
    p = sampled(problem(X[rows], y[rows], losses.Hinge(), LAM), Drawn(rows, 30, 500, 500.0), 10, 0)
    w, b = np.array([[0.5, -1, 0.2]]), np.array([0.1])
    assert p.preference(Weights(w, b)) == pytest.approx(o.primal(X[:30], y[:30], w[0], 0.1, loss="hinge", lam=LAM))
    whole = sampled(problem(X, y, losses.Hinge(), LAM), None, 10, 0)
    assert whole.preference(Weights(w, b)) == pytest.approx(o.primal(X, y, w[0], 0.1, loss="hinge", lam=LAM))
