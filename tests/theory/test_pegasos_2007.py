"""The bounds of the 2007 paper on runs with its projection."""

from __future__ import annotations

import numpy as np
import oracles as o
import pytest
from numpy.testing import assert_allclose
from online_oracles import instantaneous, many_runs, problem

from pegasos import theory


def test_printed_formulas():
    c, T, lam, delta = (np.sqrt(0.04) + 3) ** 2, 500, 0.04, 0.1
    assert_allclose(theory.projected_regret(T, lam, 3.0), c * np.log(T) / (lam * T))
    assert theory.projected_expectation(T, lam, 3.0) == theory.projected_regret(T, lam, 3.0)
    assert_allclose(theory.projected_suboptimality(T, lam, 3.0, delta), c * np.log(T) / (delta * lam * T))


def test_three_steps_make_the_logarithm_large_enough():
    """1 + ln T ≤ 2 ln T from T = 3 on: the bound of 2007 is never below that of 2011, and within twice of it."""
    for T in (3, 4, 100, 10**9):
        tight = theory.instantaneous_regret(T, 0.1, 1.0, projection=True)
        assert tight <= theory.projected_regret(T, 0.1, 1.0) <= 2 * tight
    with pytest.raises(ValueError, match=r"^T must be an integer of at least 3"):
        theory.projected_regret(2, 0.1, 1.0)


@pytest.mark.parametrize("start", [0.0, 0.5, 1.0])
def test_theorem_1_from_any_start_in_the_ball(start):
    """Sorted rows, the worst order; a start of any norm up to 1/√lam. A hundredth of the bound would not do."""
    worst = 0.0
    for seed, lam in ((0, 0.5), (1, 0.02), (2, 0.1)):
        X, y = problem(seed, radius=1.5)
        order = np.tile(np.argsort(y), 6)
        first = np.random.default_rng(seed).normal(size=4)
        first *= start / np.sqrt(lam) / np.linalg.norm(first)
        W = np.array([w[0] for w in many_runs(X, y, order[None], lam, 1 / np.sqrt(lam), first)])
        assert np.linalg.norm(W, axis=1).max() <= 1 / np.sqrt(lam) + 1e-12
        batches, best = order[:, None], o.optimum(X, y, loss="hinge", lam=lam).w
        for T in (3, 30, 180):
            regret = instantaneous(X, y, batches[:T], W[:T], lam, "hinge")
            regret -= instantaneous(X, y, batches[:T], best, lam, "hinge")
            bound = theory.projected_regret(T, lam, 1.5)
            assert regret <= bound
            worst = max(worst, regret / bound)
    assert worst > 0.01


def test_random_iterate_in_expectation_and_with_confidence():
    """The expectation, and Markov's inequality: at most delta of the runs are worse."""
    X, y = o.toy(20, 4, noise=0.1)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    lam, T, runs = 0.25, 3000, 200
    rng = np.random.default_rng(0)
    order, pick = rng.integers(0, 20, (runs, T)), rng.integers(0, T, runs)
    best, drawn = o.optimum(X, y, loss="hinge", lam=lam).dual, np.zeros(runs)
    for t, w in enumerate(many_runs(X, y, order, lam, 1 / np.sqrt(lam))):
        now = pick == t
        drawn[now] = lam / 2 * (w[now] ** 2).sum(1) + np.maximum(0, 1 - y * (w[now] @ X.T)).mean(1) - best
    expected = theory.projected_expectation(T, lam, 1.0)
    assert expected < 0.1 * (1 - best)  # says far more than that w_r beats w = 0
    assert 0.01 * expected < drawn.mean() <= expected
    for delta in (0.05, 0.2, 0.5):
        assert np.mean(drawn > theory.projected_suboptimality(T, lam, 1.0, delta)) <= delta


def test_iterations_invert_the_bound():
    for eps in (1e-3, 0.5, 1e9):
        steps = theory.projected_iterations(eps, 0.01, 1.0, 0.05)
        assert theory.projected_suboptimality(steps, 0.01, 1.0, 0.05) <= eps
        assert steps == 3 or theory.projected_suboptimality(steps - 1, 0.01, 1.0, 0.05) > eps
    # Õ(1/(δλε)): each factor of ten in one of them costs a little more than ten
    base = theory.projected_iterations(0.1, 0.1, 1.0, 0.1)
    for eps, lam, delta in ((0.01, 0.1, 0.1), (0.1, 0.1, 0.01)):
        assert 10 < theory.projected_iterations(eps, lam, 1.0, delta) / base < 20


@pytest.mark.parametrize(
    ("name", "function", "arguments"),
    [
        ("T", theory.projected_regret, (10.0, 0.1, 1.0)),
        ("lam", theory.projected_regret, (10, 0.0, 1.0)),
        ("radius", theory.projected_expectation, (10, 0.1, -1.0)),
        ("delta", theory.projected_suboptimality, (10, 0.1, 1.0, 1.0)),
        ("eps", theory.projected_iterations, (0.0, 0.1, 1.0, 0.1)),
        ("delta", theory.projected_iterations, (0.1, 0.1, 1.0, 0.0)),
    ],
)
def test_bad_parameters_are_named(name, function, arguments):
    with pytest.raises(ValueError, match=rf"^{name} must"):
        function(*arguments)
