"""The lemmas of the 2013 paper: lower bounds on their own construction, upper ones on runs of the published variant."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import make_moons
from sklearn.metrics.pairwise import rbf_kernel

from pegasos import SVC, LinearSVC, sparsify, theory


def ties_half(margin):
    """0/1 loss where a score of zero is wrong one time in two."""
    return np.where(margin > 0, 0.0, np.where(margin < 0, 1.0, 0.5))


# ------------------------------------------------------------------------------------------------------- Lemma 3.1


@pytest.mark.parametrize("loss", [0.0, 0.1, 0.2])
def test_least_support_on_its_own_construction(loss):
    """Machines of our solver on every subset size: none with fewer than ‖u‖²/2 vectors comes below L(u) + ε."""
    X, y, weight, u = theory.least_support_problem(4.0, loss)
    assert_allclose(np.linalg.norm(u), 4.0)
    assert_allclose(weight.sum(), 1.0)
    assert_allclose(weight @ np.maximum(0, 1 - y * (X @ u)), loss, atol=1e-12)
    eps, rng = 0.25 - loss, np.random.default_rng(0)
    least = theory.least_support(4.0, loss, eps)
    enough = False
    for k in (1, 4, 7, 8, 12, 16):
        chosen = rng.choice(16, k, replace=False)
        seen = np.isin(np.arange(32) % 16, chosen) & (weight > 0)
        fit = LinearSVC(lam=1e-3, fit_intercept=False, tol=1e-6)
        if len(set(y[seen])) < 2:
            w = np.where(np.isin(np.arange(16), chosen), u, 0.0)
        else:
            w = fit.fit(X[seen], y[seen], sample_weight=weight[seen]).coef_[0]
        support = int(np.sum(np.abs(w) > 1e-12))
        error = float(weight @ ties_half(y * (X @ w)))
        assert error >= theory.support_error(support, 4.0, loss) - 1e-12
        assert support >= least or error > loss + eps
        enough |= error <= loss + eps
    assert enough  # with more vectors it can be done: the bound is not about bad machines


def published(X, y, C, gamma=None, **options):
    """The machine without a bias, and what the algorithm of the paper makes of it; with ‖w‖."""
    kernel = {"kernel": "linear"} if gamma is None else {"kernel": "rbf", "gamma": gamma}
    model = SVC(C=C, fit_intercept=False, solver="sdca", tol=1e-5, max_iter=2000, **kernel).fit(X, y)
    path = sparsify(model, X, y, **({"variant": "basic", "bias": "keep", "refit": False, "step": 0.5} | options))
    norm = math.sqrt(float(model.dual_coef_[0] @ model.decision_function(X)[model.support_]))
    return model, path, norm


def test_compression_obeys_the_lower_bound():
    """What sparsify makes of the full machine needs as many vectors as the lemma says, and at most four ‖w‖²."""
    X, y, weight, _ = theory.least_support_problem(5.0)
    X, y = X[weight > 0], y[weight > 0]
    _, path, norm = published(X, y, 100.0)
    small = path.at()
    assert float(np.mean(ties_half(y * small.decision_function(X)))) <= 0.25
    assert theory.least_support(5.0, 0.0, 0.25) <= len(small.support_) <= theory.sparse_steps(norm) + 1e-6


def test_least_support_refuses_what_the_lemma_does_not_cover():
    for name, arguments in (("norm", (1.5,)), (r"loss \+ eps", (2.0, 0.2, 0.1)), ("loss", (2.0, -0.1))):
        with pytest.raises(ValueError, match=f"^{name} must"):
            theory.least_support(*arguments)
    with pytest.raises(ValueError, match=r"^n_support must"):
        theory.support_error(-1, 2.0)


# ------------------------------------------------------------------------------------------------------- Lemma 4.2


def moons(m, noise=0.25, seed=0):
    X, y = make_moons(m, noise=noise, random_state=seed)
    return X, np.where(y == 1, 1.0, -1.0)


@pytest.mark.parametrize(("eps", "step"), [(0.5, 0.5), (0.5, 0.25), (0.25, 0.25), (0.5, 0.9)])
def test_steps_of_the_published_variant(eps, step):
    X, y = moons(150)
    for C in (1.0, 10.0):
        for variant in ("basic", "aggressive"):
            _, path, norm = published(X, y, C, 1.0, tol=eps, step=step, variant=variant)
            run, bound = path.runs[0], theory.sparse_steps(norm, eps, step=step)
            assert run.reason == "f <= tol"
            assert path.n_support <= run.iterations <= bound * (1 + 1e-6)
            assert_allclose(run.iteration_bound, bound, rtol=1e-3)


def test_steps_of_the_lemma_are_not_vacuous():
    """On the orthonormal basis, where rows do not help each other, half as many steps would not do."""
    X, y, weight, _ = theory.least_support_problem(6.0)
    _, path, norm = published(X[weight > 0], y[weight > 0], 1e3, tol=0.5, step=0.5)
    assert 0.2 * theory.sparse_steps(norm) < path.runs[0].iterations <= theory.sparse_steps(norm) + 1e-6
    assert_allclose(theory.sparse_steps(3.0, 0.5, step=0.5), 4 * 9)
    assert_allclose(theory.sparse_steps(3.0, 0.25, radius=2.0), 4 * 9 * 16)


def test_kernel_values_of_compressing():
    X, y = moons(150)
    _, path, norm = published(X, y, 1.0, 1.0)
    assert path.n_support * 150 <= theory.sparsification_evaluations(150, norm)
    assert_allclose(theory.sparsification_evaluations(150, norm), 150 * theory.sparse_steps(norm))


# ------------------------------------------------------------------------------------------- Lemma 4.3, Theorem 4.4


def slant(margin):
    return np.clip(0.5 - margin, 0, 1)


def test_compression_bound_on_samples_of_a_known_distribution():
    """Expected slant loss of compressed machines: at most delta of the samples break the bound, which is below ½."""
    from_all = moons(20_000, 0.15, seed=99)
    n, broken, delta = 3000, 0, 0.1
    for seed in range(5):
        X, y = moons(n, 0.15, seed)
        path = published(X, y, 0.1, 0.5)[1]
        T = path.runs[0].iterations
        assert n >= 8 * T
        small = path.at()
        seen = float(slant(y * small.decision_function(X)).mean())
        bound = theory.compression_bound(seen, T, n, delta)
        expected = float(slant(from_all[1] * small.decision_function(from_all[0])).mean())
        assert bound < 0.5
        broken += expected > bound
    assert broken <= 1


def test_compression_bound_pays_for_the_choice():
    """The best of all sums of T rows with random labels is right on those rows, and wrong half of the time elsewhere.

    The loss that it shows is below the one it has by more than a bound for a single machine allows.
    """
    n, T = 8000, 1000
    shown, delta = 0.5 * (1 - T / n), 0.05  # rows are a basis: T margins of 1, all others 0
    single = math.sqrt(2 * 0.5 * math.log(1 / delta) / n)
    assert shown + single < 0.5 <= theory.compression_bound(shown, T, n, delta)


def test_compression_bound_is_its_formula():
    loss, T, n, delta = 0.2, 7, 500, 0.1
    a = (math.log(math.comb(n + T, T)) + math.log(1 / delta)) / (n - T)
    seen = loss * n / (n - T)
    assert_allclose(theory.compression_bound(loss, T, n, delta), seen + a + math.sqrt(a * a + 2 * a * seen))
    order = (T * math.log(n) + math.log(1 / delta)) / n  # the paper's
    assert theory.compression_bound(loss, T, n, delta) - loss < 4 * (math.sqrt(loss * order) + order)


def test_theorem_4_4_on_samples_of_a_known_distribution():
    """Rows of a basis with noisy labels, where u and L(u) are known: the randomised classifier is within ε."""
    X, y, weight, u = theory.least_support_problem(2.0, 0.05)
    n, delta = 20_000, 0.05
    bound = theory.sparse_error(n, 2.0, 0.05, delta, factor=1.0)
    assert bound < 0.25
    drawn = np.random.default_rng(0).choice(8, n, p=weight)
    rows, counts = np.unique(drawn, return_counts=True)
    fit = LinearSVC(lam=1e-4, fit_intercept=False, tol=1e-7).fit(X[rows], y[rows], sample_weight=counts)
    w = fit.coef_[0] * min(1.0, 2.0 / np.linalg.norm(fit.coef_))  # no longer than u
    hinge = counts @ np.maximum(0, 1 - y[rows] * (X[rows] @ w)) / n
    assert hinge <= counts @ np.maximum(0, 1 - y[rows] * (X[rows] @ u)) / n + 1e-3
    compressed, right = np.zeros(4), y[rows] * (X[rows] @ w) > 0
    target = np.minimum(1, y[rows] * (X[rows] @ w))
    steps = 0
    while (worst := np.where(right, target - y[rows] * (X[rows] @ compressed), -1)).max() > 0.5:
        compressed += 0.5 * y[rows][worst.argmax()] * X[rows][worst.argmax()]
        steps += 1
    assert steps <= theory.sparse_steps(2.0)
    assert weight @ slant(y * (X @ compressed)) <= bound


def test_sample_size_inverts_the_error_and_grows_as_printed():
    for eps, loss in ((0.1, 0.05), (0.02, 0.0)):
        n = theory.sparse_sample_size(eps, 2.0, loss, 0.05)
        assert theory.sparse_error(n, 2.0, loss, 0.05) <= loss + eps
        assert n == 512 or theory.sparse_error(n - 1, 2.0, loss, 0.05) > loss + eps
    # (L + ε)/ε · ‖u‖²/ε, up to a logarithm: 1/ε for L = 0, 1/ε² for L ≫ ε, and ‖u‖²
    sizes = {loss: [theory.sparse_sample_size(eps, 2.0, loss, 0.05) for eps in (0.01, 0.001)] for loss in (0.0, 0.2)}
    assert 10 <= sizes[0.0][1] / sizes[0.0][0] < 20
    assert 60 < sizes[0.2][1] / sizes[0.2][0] < 200
    assert 3.5 < theory.sparse_sample_size(0.01, 4.0, 0.1, 0.05) / theory.sparse_sample_size(0.01, 2.0, 0.1, 0.05) < 5


def test_corollary_1_is_the_sample_times_the_iterations():
    eps, norm, loss, delta = 0.05, 3.0, 0.1, 0.1
    sample = (loss + eps) / eps * norm**2 / eps * math.log(1 / delta)
    iterations = ((loss + eps) / eps) ** 2 * norm**2
    assert_allclose(theory.sparse_kernel_evaluations(eps, norm, loss, delta), sample * iterations)
    assert theory.sparsification_evaluations(math.ceil(sample), 2 * norm) < 16 * sample * norm**2 + 16 * norm**2


def test_corollary_1_on_a_run_of_the_whole_procedure():
    """SBP, then compression, on a sample: fewer kernel values than the order says with a constant of one."""
    n = 400
    X, y = moons(n, 0.2)
    reference = SVC(C=1.0, gamma=1.0, tol=1e-4).fit(X, y)
    first = SVC(C=1.0, gamma=1.0, solver="sbp", tol=0.05, random_state=0).fit(X, y)
    path = sparsify(first, X, y, variant="basic", bias="keep", refit=False, step=0.5)
    plain = (rbf_kernel(X, X[reference.support_], gamma=1.0) @ reference.dual_coef_[0])[reference.support_]
    norm = math.sqrt(float(reference.dual_coef_[0] @ plain))
    loss = float(np.maximum(0, 1 - y * reference.decision_function(X)).mean())
    spent = first.n_kernel_evaluations_ + path.at().n_kernel_evaluations_
    assert spent < theory.sparse_kernel_evaluations(0.05, norm, loss, 0.05)


@pytest.mark.parametrize(
    ("name", "function", "arguments"),
    [
        ("norm", theory.sparse_steps, (-1.0,)),
        ("eps", theory.sparse_steps, (1.0, 0.0)),
        ("loss", theory.compression_bound, (1.5, 1, 100, 0.1)),
        ("T", theory.compression_bound, (0.5, 0, 100, 0.1)),
        ("n", theory.compression_bound, (0.5, 10, 79, 0.1)),
        ("delta", theory.compression_bound, (0.5, 1, 100, 1.0)),
        ("loss", theory.sparse_error, (10_000, 1.0, -0.1, 0.1)),
        ("norm", theory.sparse_error, (10_000, 0.0, 0.1, 0.1)),
        ("n", theory.sparse_error, (10, 1.0, 0.1, 0.1)),
        ("eps", theory.sparse_sample_size, (0.0, 1.0, 0.1, 0.1)),
        ("n", theory.sparsification_evaluations, (0, 1.0)),
        ("eps", theory.sparse_kernel_evaluations, (-1.0, 1.0, 0.1, 0.1)),
    ],
)
def test_bad_parameters_are_named(name, function, arguments):
    with pytest.raises(ValueError, match=rf"^{name} must"):
        function(*arguments)


def test_other_bad_parameters_are_named():
    with pytest.raises(ValueError, match=r"^step must be below 2 eps/radius² = 1, got 1.0"):
        theory.sparse_steps(1.0, step=1.0)
    with pytest.raises(ValueError, match=r"^eps must be larger than excess"):
        theory.sparse_sample_size(0.1, 1.0, 0.1, 0.1, excess=0.1)
