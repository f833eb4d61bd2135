"""The 2011 bounds hold on real runs, invert consistently, move the right way and refuse nonsense by name."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import oracles as o
import pytest
from numpy.testing import assert_allclose
from online_oracles import gradients, instantaneous, many_runs, problem

from pegasos import theory


@pytest.mark.parametrize("projection", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "log"])
def test_gradients_stay_below_their_bound(projection, loss):
    at_zero = {"hinge": 1.0, "log": np.log(2)}[loss]
    for seed, lam, R in ((0, 1e-3, 2.0), (1, 0.1, 1.0), (2, 1.0, 0.5)):
        X, y = problem(seed, radius=R)
        batches = o.epochs(30, 4, seed=seed)
        W = o.pegasos(X, y, batches, lam=lam, loss=loss, projection=projection)[:-1]
        G = max(np.linalg.norm(g) for g in gradients(X, y, batches, W, lam, loss))
        bound = theory.gradient_bound(R, lam, projection=projection, loss_at_zero=at_zero)
        assert 0.1 * bound < G <= bound + 1e-12


def test_gradient_bound_of_crammer_singer():
    X, y = o.toy(30, 4, kind="multiclass")
    X /= np.linalg.norm(X, axis=1).max()
    loss, batches = o.CrammerSinger(3), o.epochs(30, 4)
    W = o.pegasos(X, y, batches, lam=0.01, loss=loss)[:-1]
    norms = [np.linalg.norm(0.01 * w - loss.slope(X[A] @ w.T, y[A]).T @ X[A]) for w, A in zip(W, batches, strict=True)]
    assert max(norms) <= theory.gradient_bound(1.0, 0.01, lipschitz=np.sqrt(2)) + 1e-12


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "log", "huber"])
def test_projection_radius_holds_the_optimum(loss):
    X, y = problem(3, radius=2.0)
    for lam in (1.0, 0.1, 0.001):
        at_zero = float(np.mean(o.as_loss(loss).value(np.zeros(30), y)))
        rho = theory.projection_radius(lam, at_zero)
        assert np.linalg.norm(o.optimum(X, y, loss=loss, lam=lam).w) <= rho
        assert_allclose(rho, o.radius(y, loss=loss, lam=lam))


@pytest.mark.parametrize("t0", [0.0, 20.0])
@pytest.mark.parametrize("loss", ["hinge", "log", "squared"])
def test_lemma_1(loss, t0):
    """Any order (here sorted, the worst), any u, the largest gradient met; with and without t0."""
    X, y = problem(4)
    lam, batches = 0.1, [np.array([i]) for i in np.tile(np.argsort(y), 6)]
    W = o.pegasos(X, y, batches, lam=lam, loss=loss, t0=t0)[:-1]
    G = max(np.linalg.norm(g) for g in gradients(X, y, batches, W, lam, loss))
    met = instantaneous(X, y, batches, W, lam, loss)
    best = o.optimum(X, y, loss=loss, lam=lam).w
    for u in (best, 0 * best, np.random.default_rng(0).normal(size=4)):
        bound = theory.average_regret(len(batches), lam, G, t0=t0, norm=float(np.linalg.norm(u)))
        assert met - instantaneous(X, y, batches, u, lam, loss) <= bound


def test_lemma_1_sums():
    """The closed form is above the harmonic sum it stands for, and close."""
    for T, t0 in ((1, 0.0), (100, 0.0), (100, 7.5), (1000, 300.0)):
        exact = np.sum(1 / (np.arange(1, T + 1) + t0)) / (2 * 0.5 * T)
        assert exact <= theory.average_regret(T, 0.5, 1.0, t0=t0) * (1 + 1e-12) <= 1.5 * exact


@pytest.mark.parametrize("projection", [False, True])
@pytest.mark.parametrize("k", [1, 5])
@pytest.mark.parametrize("loss", ["hinge", "log"])
def test_theorem_1(projection, k, loss):
    for seed in range(3):
        X, y = problem(seed, radius=1.5)
        for lam in (0.5, 0.02):
            best = o.optimum(X, y, loss=loss, lam=lam).w
            batches = np.random.default_rng(seed).integers(0, 30, (120, k))
            W = o.pegasos(X, y, batches, lam=lam, loss=loss, projection=projection)[:-1]
            for T in (1, 3, 120):
                regret = instantaneous(X, y, batches[:T], W[:T], lam, loss)
                regret -= instantaneous(X, y, batches[:T], best, lam, loss)
                assert regret <= theory.instantaneous_regret(T, lam, 1.5, projection=projection)


@pytest.mark.parametrize("projection", [False, True])
def test_corollary_1(projection):
    X, y = problem(5, radius=2.0)
    for lam in (0.5, 0.02):
        best = o.optimum(X, y, loss="hinge", lam=lam).dual
        W = o.pegasos(X, y, [np.arange(30)] * 300, lam=lam, projection=projection)
        for T in (3, 30, 300):
            excess = o.primal(X, y, o.average(W[:T]), loss="hinge", lam=lam) - best
            assert excess <= theory.batch_suboptimality(T, lam, 2.0, projection=projection)


def test_random_rows_in_expectation_and_in_probability():
    """Theorem 1 in expectation; Lemma 2 and Corollary 2: at most δ of the runs fail; Lemma 3: at least (1 − δ)/2 hold.

    T is large enough for the bounds to say more than that w̄ beats w = 0.
    """
    X, y = o.toy(20, 4, noise=0.1)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    lam, T, delta, runs = 0.25, 20_000, 0.2, 40
    rng = np.random.default_rng(0)
    order, pick = rng.integers(0, 20, (runs, T)), rng.integers(0, T, runs)
    first = np.array([w[0] for w in many_runs(X, y, order[:1, :50], lam)])
    assert_allclose(first, o.pegasos(X, y, order[0, :49], lam=lam), atol=1e-12)

    best = o.optimum(X, y, loss="hinge", lam=lam).dual
    total, mean, drawn = 0.0, np.zeros(runs), np.zeros(runs)
    for t, w in enumerate(many_runs(X, y, order, lam)):
        f = lam / 2 * (w**2).sum(1) + np.maximum(0, 1 - y * (w @ X.T)).mean(1) - best
        total, mean, drawn = total + w / T, mean + f / T, np.where(pick == t, f, drawn)
    average = np.array([o.primal(X, y, w, loss="hinge", lam=lam) for w in total]) - best
    bound = theory.average_suboptimality(T, lam, 1.0, delta)
    assert bound < 1 - best  # f(0) = 1
    assert (average <= mean).all()
    assert mean.mean() <= theory.instantaneous_regret(T, lam, 1.0)
    assert np.mean(mean > bound) <= delta
    assert np.mean(drawn <= theory.random_iterate_suboptimality(T, lam, 1.0, delta)) >= (1 - delta) / 2


def test_printed_formulas():
    assert_allclose(theory.constant(3.0, 0.04), 36.0)
    assert_allclose(theory.constant(3.0, 0.04, projection=True), 3.2**2)
    c, T, lam, delta = 36.0, 500, 0.04, 0.1
    assert_allclose(theory.instantaneous_regret(T, lam, 3.0), c * (1 + np.log(T)) / (2 * lam * T))
    assert theory.batch_suboptimality(T, lam, 3.0) == theory.instantaneous_regret(T, lam, 3.0)
    assert_allclose(theory.average_suboptimality(T, lam, 3.0, delta), 21 * c * np.log(T / delta) / (lam * T))
    assert_allclose(theory.random_iterate_suboptimality(T, lam, 3.0, delta), 42 * c * np.log(T / delta) / (lam * T))


def test_bounds_move_the_right_way():
    def falls(values):
        return all(a > b for a, b in pairwise(values))

    steps = [3, 4, 10, 100, 10**4, 10**8]
    assert falls([theory.batch_suboptimality(T, 0.1, 1.0) for T in steps])
    assert falls([theory.average_suboptimality(T, 0.1, 1.0, 0.5) for T in steps])
    assert falls([theory.average_suboptimality(100, lam, 1.0, 0.5) for lam in (0.001, 0.01, 0.25)])
    assert falls([theory.average_suboptimality(100, 0.1, 1.0, delta) for delta in (0.01, 0.1, 0.9)])
    assert falls([theory.average_suboptimality(100, 0.1, R, 0.1) for R in (9.0, 2.0, 1.0)])
    assert falls([theory.iterations(eps, 0.1, 1.0) for eps in (0.001, 0.01, 0.1)])
    assert theory.iterations(0.01, 0.1, 1.0, projection=True) < theory.iterations(0.01, 0.1, 1.0)
    assert theory.iterations(0.01, 0.1, 1.0) < theory.iterations(0.01, 0.1, 1.0, delta=0.05)


@pytest.mark.parametrize("delta", [None, 0.05])
@pytest.mark.parametrize("projection", [False, True])
@pytest.mark.parametrize("eps", [1e-9, 1e-3, 0.5, 1e9])
def test_iterations_inverts_the_bound(delta, projection, eps):
    def bound(T):
        if delta is None:
            return theory.batch_suboptimality(T, 0.01, 1.0, projection=projection)
        return theory.average_suboptimality(T, 0.01, 1.0, delta, projection=projection)

    steps, least = theory.iterations(eps, 0.01, 1.0, delta, projection), 1 if delta is None else 3
    assert isinstance(steps, int)
    assert bound(steps) <= eps
    assert steps == least or bound(steps - 1) > eps


def test_minibatch_factor_over_all_batches():
    """The exact expectation over every batch of k of m rows, random g_i ∈ [−1, 1]."""
    rng = np.random.default_rng(0)
    m = 7
    for X in (rng.normal(size=(m, 3)), np.ones((m, 1)), np.eye(m)):
        R2 = (X**2).sum(1).max()
        sigma2 = np.linalg.norm(X, 2) ** 2 / (m * R2)
        for k in (1, 2, 4, 7):
            factor = theory.minibatch_factor(k, m, sigma2)
            for g in (np.ones(m), rng.uniform(-1, 1, m), rng.choice([-1, 1], m)):
                mean = np.mean([((g[list(A)] @ X[list(A)] / k) ** 2).sum() for A in combinations(range(m), k)])
                assert mean <= R2 * factor + 1e-12
    assert_allclose([theory.minibatch_factor(k, 7, 1.0) for k in (1, 3, 7)], 1)
    assert_allclose([theory.minibatch_factor(k, 7, 1 / 7) for k in (1, 3, 7)], [1, 1 / 3, 1 / 7])


def test_minibatches_in_expectation():
    """E f(w̄) − f(w*) ≤ factor × Theorem 1 on nearly orthogonal rows."""
    rng = np.random.default_rng(0)
    m, k, lam, T = 40, 8, 0.05, 60
    X = np.eye(m) + 0.05 * rng.normal(size=(m, m))
    y = rng.choice([-1.0, 1.0], m)
    R = np.linalg.norm(X, axis=1).max()
    factor = theory.minibatch_factor(k, m, np.linalg.norm(X, 2) ** 2 / (m * R**2))
    best = o.optimum(X, y, loss="hinge", lam=lam).dual
    excess = []
    for _ in range(20):
        W = o.pegasos(X, y, [rng.choice(m, k, replace=False) for _ in range(T)], lam=lam)
        excess.append(o.primal(X, y, o.average(W[:-1]), loss="hinge", lam=lam) - best)
    assert factor < 0.3
    assert np.mean(excess) <= factor * theory.instantaneous_regret(T, lam, float(R))


@pytest.mark.parametrize("loss", ["hinge", "log", "squared_hinge"])
def test_consequences_of_a_gap(loss):
    """‖w − w*‖ and signs of predictions, from the gap of a Pegasos run with its own window certificate."""
    X, y = problem(7, m=40)
    lam, m = 0.1, 40
    best = o.optimum(X, y, loss=loss, lam=lam)
    new = np.random.default_rng(0).normal(size=(500, 4))
    norms = np.linalg.norm(new, axis=1)
    certified = []
    for epochs in (2, 8, 40):
        batches = o.epochs(m, epochs)
        W = o.pegasos(X, y, batches, lam=lam, loss=loss, t0=1 / lam)
        bound = o.free_certificate(X, y, batches, W, lam=lam, loss=loss, t0=1 / lam, start=epochs // 2 * m).dual
        gap = o.primal(X, y, W[-1], loss=loss, lam=lam) - bound
        assert np.linalg.norm(W[-1] - best.w) <= theory.distance_to_optimum(gap, lam)
        sure = np.abs(new @ W[-1]) > theory.certified_sign_margin(norms, gap, lam)
        assert (np.sign(new @ W[-1]) == np.sign(new @ best.w))[sure].all()
        certified.append(sure.mean())
    assert certified[-1] > max(0.5, certified[0])
    assert isinstance(theory.certified_sign_margin(2.0, 0.1, 0.1), float)
    assert_allclose(theory.certified_sign_margin(np.array([1.0, 2.0], np.float32), 0.05, 0.1), [1, 2])


BAD = [
    ("lam", theory.projection_radius, (0.0,)),
    ("loss_at_zero", theory.projection_radius, (0.1, -1.0)),
    ("radius", theory.gradient_bound, (0.0, 0.1)),
    ("lam", theory.gradient_bound, (1.0, float("nan"))),
    ("lam", theory.constant, (1.0, -1.0)),
    ("T", theory.average_regret, (0, 0.1, 1.0)),
    ("T", theory.average_regret, (10.0, 0.1, 1.0)),
    ("gradient_norm", theory.average_regret, (10, 0.1, -1.0)),
    ("lam", theory.instantaneous_regret, (10, float("inf"), 1.0)),
    ("radius", theory.batch_suboptimality, (10, 0.1, -1.0)),
    ("T", theory.average_suboptimality, (2, 0.1, 1.0, 0.1)),
    ("lam", theory.average_suboptimality, (10, 0.3, 1.0, 0.1)),
    ("radius", theory.average_suboptimality, (10, 0.1, 0.5, 0.1)),
    ("delta", theory.average_suboptimality, (10, 0.1, 1.0, 0.0)),
    ("delta", theory.random_iterate_suboptimality, (10, 0.1, 1.0, 1.0)),
    ("eps", theory.iterations, (0.0, 0.1, 1.0)),
    ("lam", theory.iterations, (0.1, 0.0, 1.0)),
    ("radius", theory.iterations, (0.1, 0.1, 0.0)),
    ("delta", theory.iterations, (0.1, 0.1, 1.0, 2.0)),
    ("k", theory.minibatch_factor, (11, 10, 0.5)),
    ("m", theory.minibatch_factor, (1, 0, 0.5)),
    ("sigma2", theory.minibatch_factor, (2, 10, 0.01)),
    ("gap", theory.distance_to_optimum, (-1e-9, 0.1)),
    ("lam", theory.distance_to_optimum, (0.1, 0.0)),
    ("norm", theory.certified_sign_margin, (np.array([1.0, -1.0]), 0.1, 0.1)),
    ("gap", theory.certified_sign_margin, (1.0, float("nan"), 0.1)),
]


@pytest.mark.parametrize(("name", "function", "arguments"), BAD, ids=[f"{f.__name__}-{n}" for n, f, _ in BAD])
def test_bad_parameters_are_named(name, function, arguments):
    with pytest.raises(ValueError, match=rf"^{name} must"):
        function(*arguments)


def test_bad_keywords_are_named():
    for name, keywords in (("t0", {"t0": -1.0}), ("norm", {"norm": float("inf")})):
        with pytest.raises(ValueError, match=rf"^{name} must"):
            theory.average_regret(10, 0.1, 1.0, **keywords)
    with pytest.raises(ValueError, match=r"^lipschitz must"):
        theory.gradient_bound(1.0, 0.1, lipschitz=0.0)


def test_stopping_time_is_uniform():
    """Every step is as likely as any other, and a seed says which."""
    drawn = np.array([theory.stopping_time(10, seed) for seed in range(4000)])
    counts = np.bincount(drawn, minlength=11)
    assert counts[0] == 0
    assert len(counts) == 11
    assert np.abs(counts[1:] - 400).max() < 5 * np.sqrt(400)
    assert theory.stopping_time(10**6, 3) == theory.stopping_time(10**6, 3) != theory.stopping_time(10**6, 4)
    assert theory.stopping_time(1) == 1


def test_attempts_bound_the_chance_of_failure():
    for failure in (0.5, 0.1, 1e-6):
        for delta in (1e-6, 0.1, 0.5):
            j, chance = theory.stopping_attempts(failure, delta), (1 + delta) / 2
            assert chance**j <= failure * (1 + 1e-5)
            assert j == 1 or chance ** (j - 1) > failure * (1 + 1e-9)


@pytest.mark.parametrize("name", [name for name in theory.__all__ if not isinstance(getattr(theory, name), type)])
def test_every_public_name_is_documented_with_an_example(name):
    doc = getattr(theory, name).__doc__
    assert "Parameters" in doc
    assert ">>>" in doc


def test_all_is_sorted():
    assert theory.__all__ == sorted(theory.__all__)
