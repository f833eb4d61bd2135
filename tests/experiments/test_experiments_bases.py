"""Machines on a basis of rows or of new points: random, greedy, from cutting planes, from the reference's w."""

from itertools import pairwise

import numpy as np
import oracles as o
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from pegasos.experiments import Task, cpsp, random_basis, reduced_set, spsvm
from pegasos.experiments.baselines.basis import Basis, refit
from pegasos.experiments.baselines.cpsp import HingePlanes
from pegasos.sparse.preimage import Rows, Vector


def noisy(m=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 3))
    return X, np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=m) > 0, 1.0, -1.0)


@pytest.fixture(scope="module")
def task():
    return Task(*noisy(), gamma=0.5, C=2.0)


def objective(found, X, y, C, power):
    """½‖w‖² + CΣ max(0, 1 − yf)^power, from the expansion alone."""
    norm = found.coef @ rbf_kernel(found.vectors, gamma=0.5) @ found.coef
    return 0.5 * norm + C * (np.maximum(0, 1 - y * found.decision_function(X)) ** power).sum()


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_random_basis_of_all_rows_is_the_exact_machine(task, loss):
    X, y = noisy()
    found = random_basis(task, [150], candidates="all", loss=loss, tol=1e-8)[0]
    assert found.details["objective"] == pytest.approx(
        o.kernel_optimum(rbf_kernel(X, gamma=0.5), y, loss=loss, C=2.0), rel=1e-6
    )
    assert objective(found, X, y, 2.0, 1 + (loss != "hinge")) == pytest.approx(found.details["objective"], rel=1e-5)
    if loss == "hinge":
        np.testing.assert_allclose(found.decision_function(X), task.reference.decision_function(X), atol=5e-3)


def test_random_bases_are_nested_and_of_candidates(task):
    found = random_basis(task, [5, 20, 40])
    assert [r.size for r in found] == [5, 20, 40]
    assert set(found[0].rows) < set(found[1].rows) < set(found[2].rows) <= set(task.reference.support_)
    values = [r.details["objective"] for r in found]
    assert values == sorted(values, reverse=True)


def test_spsvm_falls_with_every_point_to_the_full_machine(task):
    X, y = noisy()
    found = spsvm(task, [*range(1, 30), 150])
    values = [r.details["objective"] for r in found]
    assert [r.size for r in found[:-1]] == list(range(1, 30))
    assert all(b < a for a, b in pairwise(values))
    assert values[-1] == pytest.approx(
        o.kernel_optimum(rbf_kernel(X, gamma=0.5), y, loss="squared_hinge", C=2.0), rel=1e-6
    )
    assert objective(found[10], X, y, 2.0, 2) == pytest.approx(values[10], rel=1e-6)


def test_spsvm_is_optimal_on_its_basis(task):
    (found,) = spsvm(task, [12])
    basis = Basis(task.X, task.kernel, 12)
    basis.add_rows(found.rows)
    best = refit(basis, task.y, 2.0, "squared_hinge", 1e-8).objective
    assert found.details["objective"] == pytest.approx(best, rel=1e-5)


def test_a_preimage_is_a_maximum():
    rng = np.random.default_rng(0)
    V, r = rng.normal(size=(40, 2)), rng.normal(size=40)
    vector = Vector([(Rows.of(V[:30], 0.5), r[:30]), (Rows.of(V[30:], 0.5), r[30:])])
    points, values = vector.preimages(V[:8])
    assert np.all(np.abs(values) >= np.abs(vector.at(V[:8])[0]) * (1 - 1e-12))
    for z, value in zip(points, values, strict=True):
        assert value == pytest.approx((r @ rbf_kernel(V, z[None], gamma=0.5))[0])
        around = z + 0.05 * rng.normal(size=(200, 2))
        assert np.abs(r @ rbf_kernel(V, around, gamma=0.5)).max() <= abs(value) * 1.01


def test_the_preimage_of_one_point_is_the_point():
    vector = Vector([(Rows.of(np.array([[1.0, 2.0]]), 0.5), np.array([-3.0]))])
    (z,), (value,) = vector.preimages(np.array([[0.5, 1.0]]))
    np.testing.assert_allclose(z, [1.0, 2.0])
    assert value == pytest.approx(-3.0)


def test_a_reduced_set_comes_nearer_with_every_point(task):
    X, y = noisy()
    reference = task.expansion
    found = reduced_set(task, [1, 2, 5, 10, 30, 60])
    distances = [r.details["distance"] for r in found]
    assert all(b < a for a, b in pairwise(distances))
    for r in found:
        both = np.concatenate([reference.vectors, r.vectors])
        coef = np.concatenate([reference.coef, -r.coef])
        by_hand = coef @ rbf_kernel(both, gamma=0.5) @ coef
        assert by_hand == pytest.approx(r.details["distance"], abs=1e-6 * r.details["norm"])
        # The projection: no coefficient could be better.
        lacking = rbf_kernel(r.vectors, both, gamma=0.5) @ coef
        assert np.abs(lacking).max() < 1e-6
    assert found[-1].details["distance"] < 0.05 * found[-1].details["norm"]
    # The bias is the best for the hinge loss.
    scores = found[2].decision_function(X)
    loss = [np.maximum(0, 1 - y * (scores + shift)).sum() for shift in (-0.01, 0.0, 0.01)]
    assert loss[1] == min(loss)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_reduced_set_fitted_anew_is_optimal_on_its_points(task, loss):
    X, y = noisy()
    plain, found = reduced_set(task, [8, 20]), reduced_set(task, [8, 20], loss=loss, tol=1e-6)
    power = 1 + (loss != "hinge")
    for one, two in zip(plain, found, strict=True):
        order = np.lexsort(one.vectors.T), np.lexsort(two.vectors.T)
        np.testing.assert_allclose(one.vectors[order[0]], two.vectors[order[1]])
        basis = Basis(X, task.kernel, 20)
        basis.add_points(two.vectors)
        best = refit(basis, y, 2.0, loss, 1e-6).objective
        assert objective(two, X, y, 2.0, power) == pytest.approx(best, rel=1e-4)
        assert best < objective(one, X, y, 2.0, power)


def test_a_reduced_set_of_two_points():
    X = np.array([[0.0, 0.0], [3.0, 0.0]])
    found = reduced_set(Task(X, [0, 1], gamma=1.0), [1, 2])
    assert found[-1].details["distance"] < 1e-6 * found[-1].details["norm"]


def test_cpsp_is_optimal_on_its_points_and_nears_the_full_machine(task):
    X, y = noisy()
    best = o.kernel_optimum(rbf_kernel(X, gamma=0.5), y, loss="hinge", C=2.0)
    found = cpsp(task, [5, 20, 80], tol=1e-6)
    values = [r.details["objective"] for r in found]
    assert best <= values[2] < values[1] < values[0]
    assert values[2] < 1.01 * best
    for r in found:
        assert objective(r, X, y, 2.0, 1) == pytest.approx(r.details["objective"], rel=1e-5)
        basis = Basis(X, task.kernel, 100)
        basis.add_points(r.vectors)
        assert r.details["objective"] == pytest.approx(refit(basis, y, 2.0, "hinge", 1e-6).objective, rel=1e-4)


def test_cpsp_needs_fewer_points_than_chance(task):
    drawn = [random_basis(task, [10], loss="hinge", random_state=s)[0].details["objective"] for s in range(10)]
    assert cpsp(task, [10])[0].details["objective"] < min(drawn)


def test_planes_stay_below_and_their_minimum_reaches_the_optimum(task):
    """Cutting planes on a fixed basis: within ε of the restricted optimum after a few."""
    basis = Basis(task.X, task.kernel, 20)
    basis.add_rows(np.arange(20))
    lam = 1 / (2.0 * task.m)
    best = lam * refit(basis, task.y, 2.0, "hinge", 1e-8).objective
    planes, u, lower = HingePlanes(basis, task.y), np.zeros(20), 0.0
    values = []
    for _ in range(90):
        _, loss = planes.cut(u)
        values.append(0.5 * lam * float(u @ u) + loss)
        u, height = planes.minimum(lam, 1e-6)
        assert height <= best * (1 + 1e-6)
        lower = max(lower, height)
    assert min(values) - lower < 0.01 * best
    assert lower > 0.99 * best
