"""Lemma 2.1 and Eq. 6 of the notes on runs of Pegasos."""

from __future__ import annotations

import numpy as np
import oracles as o
import pytest
from numpy.testing import assert_allclose
from online_oracles import gradients, instantaneous, problem

from pegasos import theory


def test_lemma_2_1_and_the_step_before_it():
    """Any rows, any u; sharper by every gradient, and by the distance to u; not even half of it would do."""
    share = 0.0
    for seed, lam, k in ((0, 0.5, 1), (1, 0.05, 1), (2, 0.1, 4)):
        X, y = problem(seed)
        rng = np.random.default_rng(seed)
        batches = [rng.integers(0, 30, k) for _ in range(150)]
        W = o.pegasos(X, y, batches, lam=lam)
        norms = [np.linalg.norm(g) for g in gradients(X, y, batches, W[:-1], lam, "hinge")]
        met = instantaneous(X, y, batches, W[:-1], lam, "hinge")
        for u in (o.optimum(X, y, loss="hinge", lam=lam).w, np.zeros(4), rng.normal(size=4)):
            regret = met - instantaneous(X, y, batches, u, lam, "hinge")
            sharp = theory.regret_of_steps(norms, lam, float(np.linalg.norm(W[-1] - u)))
            every, largest = theory.regret_of_steps(norms, lam), theory.regret_of_gradients(norms, lam)
            assert regret <= sharp + 1e-12
            assert sharp <= every <= largest <= theory.regret_of_batches(150, lam, 1.0)
            share = max(share, regret / sharp if sharp > 0 else 0.0)
    assert share > 0.5


def test_quadratics_make_it_an_equation():
    """f_t(w) = (lam/2)‖w − a_t‖²: nothing is lost before the last two inequalities."""
    rng = np.random.default_rng(0)
    lam, T, u = 0.3, 40, rng.normal(size=3)
    w, met, norms = rng.normal(size=3), 0.0, []
    for t in range(1, T + 1):
        a = rng.normal(size=3)
        met += lam / 2 * (np.sum((w - a) ** 2) - np.sum((u - a) ** 2)) / T
        norms.append(np.linalg.norm(lam * (w - a)))
        w = w - (w - a) / t
    assert_allclose(theory.regret_of_steps(norms, lam, float(np.linalg.norm(w - u))), met, rtol=1e-10)
    assert theory.regret_of_gradients(norms, lam) > 1.5 * abs(met)


def test_eq_6_is_theorem_1_without_projection():
    for T in (1, 10, 1000):
        assert_allclose(theory.regret_of_batches(T, 0.05, 1.5), theory.instantaneous_regret(T, 0.05, 1.5))


@pytest.mark.parametrize("norms", [[], [1.0, -1.0], [np.nan], [[1.0]]])
def test_bad_gradients_are_refused(norms):
    for function in (theory.regret_of_gradients, theory.regret_of_steps):
        with pytest.raises(ValueError, match=r"^gradient_norms must"):
            function(norms, 0.1)


def test_bad_parameters_are_named():
    for name, function, arguments in (
        ("lam", theory.regret_of_gradients, ([1.0], 0.0)),
        ("distance", theory.regret_of_steps, ([1.0], 0.1, -1.0)),
        ("T", theory.regret_of_batches, (0, 0.1, 1.0)),
        ("lam", theory.regret_of_batches, (1, -0.1, 1.0)),
        ("radius", theory.regret_of_batches, (1, 0.1, 0.0)),
    ):
        with pytest.raises(ValueError, match=rf"^{name} must"):
            function(*arguments)
