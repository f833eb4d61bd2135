"""The slips in print that change numbers: what is printed is wrong, and what is in the code is right."""

from __future__ import annotations

import numpy as np
import oracles as o
from numpy.testing import assert_allclose
from scipy.optimize import linprog

from pegasos import _core, theory


def test_eq_12_has_the_wrong_sign():
    """w_{t+1} = (1 − 1/t) w_t + v_t/(lam t): with the printed minus the first step leads away from its row."""
    X, y = o.toy(20, 3)
    order, lam = [3, 7, 3, 11], 0.1
    W = o.pegasos(X, y, order, lam=lam)
    for t, i in enumerate(order, start=1):
        v = (y[i] * (X[i] @ W[t - 1]) < 1) * y[i] * X[i]
        assert_allclose(W[t], (1 - 1 / t) * W[t - 1] + v / (lam * t), atol=1e-12)
    printed = -y[3] * X[3] / lam
    assert y[3] * (printed @ X[3]) < 0 < y[3] * (W[1] @ X[3])


def test_the_sum_of_lemma_1_collapses_to_half_of_lam_T():
    """On quadratics all else is equal, so that −lam (T + 1)‖w_{T+1} − u‖² cannot be right."""
    rng = np.random.default_rng(0)
    lam, T, u, w, met, norms = 0.3, 10, rng.normal(size=2), np.zeros(2), 0.0, []
    for t in range(1, T + 1):
        a = rng.normal(size=2)
        met += lam / 2 * (np.sum((w - a) ** 2) - np.sum((u - a) ** 2))
        norms.append(lam * np.linalg.norm(w - a))
        w = w - (w - a) / t
    squares = np.sum(np.square(norms) / np.arange(1, T + 1)) / (2 * lam)
    distance = np.sum((w - u) ** 2)
    assert_allclose(met, squares - lam * T / 2 * distance, rtol=1e-10)
    assert_allclose(met / T, theory.regret_of_steps(norms, lam, np.sqrt(distance)), rtol=1e-10)
    assert met > squares - lam * (T + 1) * distance + 0.1  # the printed term would make it a false bound


def test_kernel_pegasos_divides_by_the_steps_before():
    """The notes test ⟨w_t, φ⟩ with 1/(lam t) for the 1/(lam (t − 1)) of w_t: a few decisions then differ."""
    lam, differ = 0.2, {0: 0, 1: 0}
    for seed in range(5):
        X, y = o.toy(60, 3, noise=0.2, seed=seed)
        order = np.concatenate([_core.epoch_order(60, "permutation", seed, epoch) for epoch in range(10)])
        K, W = X @ X.T, o.pegasos(X, y, order, lam=lam)
        for late in differ:
            alpha = np.zeros(60)
            for t, i in enumerate(order, start=1):
                steps = t - 1 + late
                violated = steps == 0 or y[i] * (K[i] @ (alpha * y)) / (lam * steps) < 1
                differ[late] += violated != (y[i] * (X[i] @ W[t - 1]) < 1)
                alpha[i] += violated
    assert differ[0] == 0
    assert differ[1] > 0


def test_eq_25_needs_its_regulariser():
    """As printed J(b) is the least mean hinge loss, here zero for every b; with the regulariser it has a minimum."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(8, 12))
    y = rng.choice([-1.0, 1.0], 8)
    printed, meant = [], []
    for b in (-3.0, 0.0, 3.0):
        # min Σ ξ  with  ξ ≥ 1 − y (⟨w, x⟩ + b), ξ ≥ 0
        found = linprog(
            np.r_[np.zeros(12), np.ones(8) / 8],
            A_ub=np.c_[-y[:, None] * X, -np.eye(8)],
            b_ub=y * b - 1,
            bounds=[(None, None)] * 12 + [(0, None)] * 8,
        )
        printed.append(found.fun)
        shifted = np.c_[X, np.full(8, b)]  # a column of weight 1, which the penalty must not see
        w = np.zeros(12)
        for t in range(1, 20_000):
            violated = y * (shifted[:, :12] @ w + b) < 1
            w = (1 - 1 / t) * w + (y * violated) @ X / (8 * 0.3 * t)
        meant.append(0.15 * w @ w + np.maximum(0, 1 - y * (X @ w + b)).mean())
    assert_allclose(printed, 0, atol=1e-9)
    assert max(meant) > min(meant) + 0.1


def test_the_weights_of_the_kernel_experiments_are_one_over_m():
    """Section 7.2: C = 1 in all four problems."""
    for m, lam in ((7770, 1.29e-4), (32_562, 3.07e-5), (7329, 1.36e-4), (60_000, 1.67e-5)):
        assert_allclose(lam * m, 1, rtol=5e-3)
    for m, lam, product in ((781_265, 1e-4, 78), (29_882, 5e-5, 1.5), (522_911, 1e-6, 0.52)):
        assert_allclose(lam * m, product, rtol=0.01)
