"""Perceptrons: the loop in blocks against one row at a time, and what their papers promise."""

import numpy as np
import oracles as o
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel

from pegasos.experiments import Task, budget_perceptron, forgetron, perceptron
from pegasos.experiments.baselines.forgetron import REMOVAL_COST_SHARE, Tuner
from pegasos.experiments.baselines.online import BLOCK_ROWS, OnlineMachine, orders


def noisy(m=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 3))
    return X, np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=m) > 0, 1.0, -1.0)


def separable(m=400, seed=0):
    """Two clouds apart, and the least ‖u‖² with margins of at least 1 that their means give."""
    rng = np.random.default_rng(seed)
    y = rng.choice([-1.0, 1.0], m)
    X = 0.6 * rng.normal(size=(m, 2))
    X[:, 0] = y * (0.4 + np.abs(X[:, 0]))
    K = rbf_kernel(X, gamma=0.5)
    margin = (y * (K @ y)).min()
    assert margin > 0
    return X, y, float(y @ K @ y) / margin**2


@settings(max_examples=25, deadline=None)
@given(m=st.integers(2, 60), budget=st.integers(1, 20), epochs=st.integers(1, 3), seed=st.integers(0, 99))
def test_blocks_are_one_row_at_a_time(m, budget, epochs, seed):
    X, y = noisy(m, seed)
    y[0], y[1] = 1.0, -1.0
    task, order = Task(X, y, gamma=0.5), orders(m, epochs, seed)
    K = rbf_kernel(X, gamma=0.5)
    for limit in (budget, None):
        expected = o.forgetron(K, y, order, limit)
        machine = OnlineMachine(task, limit, Tuner())
        machine.run(order)
        assert machine.mistakes == expected.mistakes
        assert machine.rows.tolist() == expected.rows
        np.testing.assert_allclose(machine.coef, expected.coef, rtol=1e-6, atol=1e-9)


def test_more_rows_than_a_block():
    X, y = noisy(2 * BLOCK_ROWS + 40)
    task, order = Task(X, y, gamma=0.5), orders(len(y), 1, 0)
    expected = o.forgetron(rbf_kernel(X, gamma=0.5), y, order, 50)
    (found,) = forgetron(task, [50])
    assert found.details["mistakes"] == expected.mistakes
    assert found.details["cost"] == pytest.approx(expected.costs[-1])
    assert sorted(found.rows) == sorted(expected.rows)


@pytest.mark.parametrize("method", [forgetron, budget_perceptron])
def test_the_budget_is_never_exceeded(method, monkeypatch):
    seen = []
    block = OnlineMachine._block

    def watched(self, rows):
        self.on_mistake = lambda machine: seen.append((len(machine.rows), machine.budget)) and False
        return block(self, rows)

    monkeypatch.setattr(OnlineMachine, "_block", watched)
    X, y = noisy()
    results = method(Task(X, y, gamma=0.5), [1, 7, 30], epochs=2)
    assert all(size <= budget for size, budget in seen)
    assert {budget for _, budget in seen} == {1, 7, 30}
    assert [r.size <= b for r, b in zip(results, [1, 7, 30], strict=True)] == [True] * 3


def test_the_forgetrons_shrinking_is_the_least_that_its_condition_allows():
    X, y = noisy()
    task, steps = Task(X, y, gamma=0.5), []

    class Watched(Tuner):
        def __call__(self, machine):
            before = self.cost
            scale, at = super().__call__(machine)
            steps.append((scale, before, self.cost, machine.mistakes))
            assert machine.rows[at] == machine.rows[0]  # the oldest
            return scale, at

    OnlineMachine(task, 8, Watched()).run(orders(len(y), 2, 0))
    assert len(steps) > 50
    for scale, _, after, mistakes in steps:
        assert 0 < scale <= 1
        assert after <= REMOVAL_COST_SHARE * mistakes * (1 + 1e-12)
        # Where it shrinks at all, it spends what it may.
        assert scale == 1 or after == pytest.approx(REMOVAL_COST_SHARE * mistakes)
    assert any(scale < 1 for scale, *_ in steps)


def test_the_perceptrons_mistake_bound():
    X, y, norm = separable()
    found = perceptron(Task(X, y, gamma=0.5), [len(y)], epochs=50)[-1]
    assert found.details["mistakes"] <= norm
    assert found.score(X, y) == 1.0  # it has come to rest


def test_the_forgetrons_mistake_bound():
    """M ≤ 2‖u‖² + 4 Σ hinge(u) for every u that the budget allows, far beyond the budget's first points."""
    X, y, _ = separable(2000)
    y = np.where(np.random.default_rng(1).random(2000) < 0.1, -y, y)
    K = rbf_kernel(X, gamma=0.5)
    (found,) = forgetron(Task(X, y, gamma=0.5), [83])
    assert found.details["mistakes"] > 3 * 83
    for length in (0.5, 1.0):
        assert length <= 0.25 * np.sqrt(84 / np.log(84))
        u = length * y / np.sqrt(y @ K @ y)
        hinge = np.maximum(0, 1 - y * (K @ u)).sum()
        assert found.details["mistakes"] <= 2 * length**2 + 4 * hinge


def test_the_perceptron_is_seen_at_every_size():
    X, y = noisy()
    found = perceptron(Task(X, y, gamma=0.5), [3, 10, 20], epochs=3)
    assert [r.size for r in found] == [3, 10, 20]
    alone = perceptron(Task(X, y, gamma=0.5), [10], epochs=3)[0]
    np.testing.assert_array_equal(alone.coef, found[1].coef)


def test_random_removal_spares_the_newest_point():
    X, y = noisy(60)
    task = Task(X, y, gamma=0.5)
    newest = []

    def watch(machine):
        newest.append(machine.rows[-1])
        return False

    rng = np.random.default_rng(0)
    machine = OnlineMachine(task, 1, lambda m: (1.0, int(rng.integers(len(m.rows) - 1))), watch)
    order = orders(60, 1, 0)
    machine.run(order)
    assert [row for row in order if row in newest] == newest  # with one place, each mistake takes it
