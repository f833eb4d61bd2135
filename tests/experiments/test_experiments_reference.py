"""Machines made from the reference: regression on its scores, and the ramp loss."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from pegasos.experiments import Task, osuna_girosi, ramp
from pegasos.experiments.baselines.ramp import ShiftedPart, _solve
from pegasos.kernels.gram import PartRows
from pegasos.losses import Hinge


def noisy(m=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 3))
    return X, np.where(X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=m) > 0, 1.0, -1.0)


@pytest.fixture(scope="module")
def task():
    return Task(*noisy(), gamma=0.5, C=2.0)


@pytest.mark.parametrize("rows", ["all", "support"])
def test_regression_keeps_within_its_tube_with_fewer_points(task, rows):
    reference = task.expansion
    found = osuna_girosi(task, [200], epsilons=[0.125, 0.5], C=1e4, rows=rows, tol=1e-4)
    assert [r.details["epsilon"] for r in found] == [0.5, 0.125]
    index = np.arange(200) if rows == "all" else reference.rows
    for r in found:
        error = np.abs(r.decision_function(task.X[index]) - reference.decision_function(task.X[index]))
        assert error.max() <= r.details["epsilon"] * (1 + 1e-3)
    assert found[0].size < found[1].size < reference.size


def test_rows_outside_the_tube_have_the_largest_coefficients(task):
    (found,) = osuna_girosi(task, [200], epsilons=[0.25], C=0.5, tol=1e-5)
    error = np.abs(found.decision_function(task.X) - task.expansion.decision_function(task.X))
    outside = np.flatnonzero(error > 0.25 * 1.01)
    coef = dict(zip(found.rows.tolist(), np.abs(found.coef), strict=True))
    assert len(outside)
    assert all(coef[i] == pytest.approx(0.5) for i in outside)


def test_the_limit_ends_the_row_of_tubes(task):
    every = osuna_girosi(task, [200])
    limit = every[1].size
    some = osuna_girosi(task, [3, limit])
    assert [r.size for r in some] == [r.size for r in every[:2]]


def ramp_objective(found, X, y, C, s):
    norm = found.coef @ rbf_kernel(found.vectors, gamma=0.5) @ found.coef
    return 0.5 * norm + C * np.minimum(1 - s, np.maximum(0, 1 - y * found.decision_function(X))).sum()


@pytest.mark.parametrize("s", [-1.0, -0.3, 0.0, 0.5])
def test_the_ramp_objective_falls(task, s):
    X, y = noisy()
    (found,) = ramp(task, s=[s], tol=1e-5)
    values = found.details["objectives"]
    assert len(values) > 1
    assert all(b < a for a, b in pairwise(values))
    assert ramp_objective(task.expansion, X, y, 2.0, s) == pytest.approx(values[0], rel=1e-6)
    assert ramp_objective(found, X, y, 2.0, s) == pytest.approx(values[-1], rel=1e-6)


def test_rows_beyond_the_ramp_are_no_support_vectors(task):
    X, y = noisy()
    for found in ramp(task, tol=1e-5):
        margin = y * found.decision_function(X)
        beyond = np.flatnonzero(margin < found.details["s"] - 1e-3)
        assert len(beyond)
        assert not set(beyond) & set(found.rows)
        assert found.size < task.expansion.size


def test_a_ramp_that_never_becomes_level_is_the_hinge(task):
    (found,) = ramp(task, s=[-1e6])
    np.testing.assert_array_equal(found.rows, task.expansion.rows)
    assert len(found.details["objectives"]) == 1


def test_a_round_is_optimal():
    """The convex problem of a round: feasible, and primal and dual meet."""
    X, y = noisy(40)
    rng = np.random.default_rng(1)
    shift = np.where(rng.random(40) < 0.3, 2.0, 0.0)
    task = Task(X, y, gamma=0.5, C=2.0)
    rows = PartRows(task.X, task.kernel, [None], 10.0, 1)
    gamma, scores, bias = _solve(task, rows, np.zeros(40), np.zeros(40), shift, 1e-9)
    part = ShiftedPart(None, y, np.ones(40), Hinge(), 2.0, shift)
    a = y * gamma
    assert (a >= -shift - 1e-12).all()
    assert (a <= 2.0 - shift + 1e-12).all()
    assert (part.lo <= part.hi).all()
    K = rbf_kernel(X, gamma=0.5)
    np.testing.assert_allclose(scores, K @ gamma, atol=1e-9)
    margin = y * (scores + bias)
    primal = 0.5 * gamma @ scores + (2.0 * np.maximum(0, 1 - margin) + shift * margin).sum()
    dual = (a + shift).sum() - 0.5 * gamma @ scores
    assert abs(gamma.sum()) < 1e-9
    # Strong duality: −ℓ*(−a) of 2·hinge(z) + βz is a + β on its domain, for a = −ℓ′.
    assert primal == pytest.approx(dual, rel=1e-6)


def test_s_is_checked(task):
    with pytest.raises(ValueError, match=r"s has 1\.0, which is not below 1"):
        ramp(task, s=[1.0])
