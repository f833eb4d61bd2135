"""Kernel machines of passive-aggressive steps and of NORMA: one row at a time, and what their papers promise."""

import numpy as np
import oracles as o
import pytest
import step_oracles as online
from conftest import advance, features, problem
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel
from test_experiments_online import noisy, separable

from pegasos import Norma, PassiveAggressive, _core, losses
from pegasos.experiments import Task, norma, passive_aggressive
from pegasos.experiments.baselines.norma import NormaMachine
from pegasos.experiments.baselines.online import BLOCK_ROWS, OnlineMachine, orders
from pegasos.experiments.baselines.passive_aggressive import _Step
from pegasos.fit.engine import Options
from pegasos.solvers.linear.passive_aggressive import step_limits


def dense(expansion, m):
    coef = np.zeros(m)
    coef[expansion.rows] = expansion.coef
    return coef


# ------------------------------------------------------------------------------------------- passive-aggressive steps


@pytest.mark.parametrize("variant", ["PA", "PA-I", "PA-II"])
@pytest.mark.parametrize("m", [60, 2 * BLOCK_ROWS + 40])
@pytest.mark.parametrize("C", [0.2, 5.0])
def test_passive_aggressive_steps(variant, m, C):
    X, y = noisy(m)
    task = Task(X, y, gamma=0.5)
    (found,) = passive_aggressive(task, [m + 1], variant=variant, C=C, epochs=3, random_state=1)
    order = orders(m, 3, 1)
    coef, values = online.kernel_passive_aggressive(rbf_kernel(X, gamma=0.5), y, order, variant=variant, C=C)
    np.testing.assert_allclose(dense(found, m), coef, rtol=1e-8, atol=1e-9)
    assert found.details["squared_losses"] == pytest.approx(values @ values)
    assert found.details["mistakes"] == np.sum(values >= 1)


def test_a_kernel_machine_with_the_linear_kernel_is_the_linear_machine():
    X, y = noisy()
    order = np.concatenate([_core.epoch_order(len(y), "permutation", 0, e) for e in range(2)])
    task, p = Task(X, y, kernel="linear"), problem(X, y, losses.Hinge(), 0.1)
    for variant in ("PA", "PA-I", "PA-II"):
        w = advance(PassiveAggressive(C=0.3, variant=variant).engine(p, Options("none", 0)), 2).model()[0][0]
        machine = OnlineMachine(task, step=_Step(task, *step_limits(variant, 0.3)))
        machine.run(order)
        np.testing.assert_allclose(machine.coef @ X[machine.rows], w, rtol=1e-8, atol=1e-9)


def test_the_bounds_of_passive_aggressive_steps():
    X, y, norm = separable()
    found = passive_aggressive(Task(X, y, gamma=0.5), [len(y)], variant="PA", epochs=10)[-1]
    assert 0 < found.details["squared_losses"] <= norm  # R = 1
    noise = np.random.default_rng(1).random(len(y)) < 0.1
    t = np.where(noise, -y, y)
    K = rbf_kernel(X, gamma=0.5)
    u = y * np.sqrt(norm / (y @ K @ y))
    best = np.maximum(0, 1 - t * (K @ u))
    for C in (0.05, 1.0):
        # The bounds are of the rows that were seen: all of them.
        first, second = (
            online.kernel_passive_aggressive(K, t, orders(len(t), 1, 0), variant=v, C=C)[1] for v in ("PA-I", "PA-II")
        )
        assert 0 < np.sum(first >= 1) <= max(1, 1 / C) * (norm + 2 * C * best.sum())
        assert 0 < second @ second <= (1 + 1 / (2 * C)) * (norm + 2 * C * best @ best)


def test_passive_aggressive_machines_are_seen_at_every_size():
    X, y = noisy()
    found = passive_aggressive(Task(X, y, gamma=0.5), [3, 10, 20], epochs=3)
    assert [r.size for r in found] == [3, 10, 20]
    alone = passive_aggressive(Task(X, y, gamma=0.5), [10], epochs=3)[0]
    np.testing.assert_array_equal(alone.coef, found[1].coef)


# ------------------------------------------------------------------------------------------------------------- NORMA


@settings(max_examples=40, deadline=None)
@given(
    m=st.integers(2, 60),
    size=st.integers(1, 80),
    epochs=st.integers(1, 3),
    nu=st.sampled_from([None, 0.2, 0.8]),
    bias=st.booleans(),
    block=st.sampled_from([1, 7, 256]),
)
def test_norma_is_one_row_at_a_time(m, size, epochs, nu, bias, block):
    X, y = noisy(m, m)
    y[0], y[1] = 1.0, -1.0
    order, K = orders(m, epochs, 3), rbf_kernel(X, gamma=0.5)
    coef, b, rho, dropped, wrong = online.norma(K, y, order, size=size, p=0.6, lam=0.02, nu=nu, bias=bias)
    machine = NormaMachine(Task(X, y, gamma=0.5), size, 0.6, 0.02, nu, bias)
    for first in range(0, len(order), block):
        machine._block(order[first : first + block])
    found = machine.expansion()
    np.testing.assert_allclose(dense(found, m), coef, rtol=1e-8, atol=1e-9)
    assert found.bias == pytest.approx(b, abs=1e-9)
    assert found.details["rho"] == pytest.approx(rho, rel=1e-9)
    assert found.details["violations"] == sum(violated for _, violated in wrong)
    assert found.details["dropped"] >= dropped * (1 - 1e-9)  # a bound of the norm


def test_norma_in_blocks_of_a_file_is_norma():
    X, y = noisy(2 * BLOCK_ROWS + 40)
    K = rbf_kernel(X, gamma=0.5)
    for size in (30, 300, 3000):
        coef, *_ = online.norma(K, y, orders(len(y), 2, 0), size=size, p=0.71, lam=1 / len(y))
        (found,) = norma(Task(X, y, gamma=0.5), [size], epochs=2)
        np.testing.assert_allclose(dense(found, len(y)), coef, rtol=1e-7, atol=1e-8)


def test_what_norma_drops_is_within_its_bound():
    """A bound of the norm of what is gone, which the closed form for a constant share of shrinking bounds in turn."""
    X, y = noisy(200)
    K = rbf_kernel(X, gamma=0.5)
    p, lam, order = 0.5, 0.05, orders(len(y), 2, 0)
    for size in (5, 20, 100):
        *_, dropped, _ = online.norma(K, y, order, size=size, p=p, lam=lam)
        (found,) = norma(Task(X, y, gamma=0.5), [size], p=p, lam=lam, epochs=2)
        assert dropped <= found.details["dropped"]
        # With steps η ≥ p/(λ√T) every term has shrunk by (1 − p/√T)^size, and no step is above the first.
        shrinking = 1 - p / np.sqrt(len(order))
        assert found.details["dropped"] <= shrinking**size / (lam * (1 - shrinking)) * p
    (everything,) = norma(Task(X, y, gamma=0.5), [len(order)], p=p, lam=lam, epochs=2)
    assert everything.details["dropped"] == 0


def test_norma_with_all_terms_is_the_linear_solver():
    X, y = noisy(120)
    task, order = (
        Task(X, y, kernel="linear"),
        np.concatenate([_core.epoch_order(120, "permutation", 0, e) for e in range(3)]),
    )
    machine = NormaMachine(task, 10**6, 0.4, 0.1, None, False)
    machine.run(order)
    w = advance(Norma(p=0.4).engine(problem(X, y, losses.Hinge(), 0.1), Options("none", 0)), 3).model()[0][0]
    found = machine.expansion()
    np.testing.assert_allclose(found.coef @ X[found.rows], w, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("nu", [0.1, 0.4, 0.7])
def test_nu_is_the_share_of_margin_errors(nu):
    X, y = noisy(400)
    (found,) = norma(Task(X, y, gamma=0.5), [10**6], nu=nu, lam=0.01, epochs=10)
    *_, wrong = online.norma(rbf_kernel(X, gamma=0.5), y, orders(400, 2, 0), size=10**6, p=0.71, lam=0.01, nu=nu)
    eta, violated = (np.array(values, dtype=float) for values in zip(*wrong, strict=True))
    assert abs(eta @ violated / eta.sum() - nu) < 0.1
    assert abs(found.details["violations"] / 4000 - nu) < 0.05


def test_norma_nears_the_optimum():
    """Its bound is O(1/(λ√T)): λ is not small here."""
    X, y = noisy(200)
    lam, K = 0.2, rbf_kernel(X, gamma=0.5)
    (found,) = norma(Task(X, y, gamma=0.5), [10**6], lam=lam, epochs=100, p=0.3)
    coef = dense(found, 200)
    P = lam / 2 * coef @ K @ coef + np.maximum(0, 1 - y * (K @ coef)).mean()
    star = o.optimum(features(K), y, loss="hinge", lam=lam, bias="none").primal
    assert star * (1 - 1e-9) <= P <= 1.05 * star
