"""Functions on a few points: coordinates, the machine on a span, greedy choice."""

import numpy as np
import oracles as o
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel

from pegasos import SVC
from pegasos.experiments.baselines.basis import Basis, kernel_values, refit
from pegasos.experiments.baselines.greedy import SquaredHingeOnBasis, greedy_path
from pegasos.kernels.functions import Kernel
from pegasos.kernels.span import min_outside_share

RBF = Kernel("rbf", 0.5)


def rows(m=60, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d))
    return X, np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=m) > 0, 1.0, -1.0)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_features_are_nystroms(form):
    X, _ = rows()
    basis = Basis(form(X), RBF, 12)
    chosen = np.random.default_rng(1).choice(60, 12, replace=False)
    for part in np.split(chosen, [1, 5, 6]):
        basis.add_rows(part)
    assert set(basis.index) == set(chosen)
    K, S = rbf_kernel(X, gamma=0.5), basis.index
    np.testing.assert_allclose(
        basis.features @ basis.features.T, K[:, S] @ np.linalg.solve(K[np.ix_(S, S)], K[S]), atol=1e-10
    )
    u = np.random.default_rng(2).normal(size=12)
    np.testing.assert_allclose(K[:, S] @ basis.coefficients(u), basis.features @ u, atol=1e-9)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_points_are_like_rows(form):
    X, _ = rows()
    X = form(X)
    one, other = Basis(X, RBF, 10), Basis(X, RBF, 10)
    for first in (0, 3, 7):
        one.add_rows(np.arange(first, first + 3))
        other.add_points(X[first : first + 3])
    np.testing.assert_allclose(one.features, other.features, atol=1e-10)
    difference = one.vectors - other.vectors
    assert abs(difference).max() == 0


def test_what_others_span_is_left_out():
    X, _ = rows()
    X[7] = X[3]
    basis = Basis(X, RBF, 10)
    assert len(basis.add_rows(np.array([3, 5, 7]))) == 2
    assert len(basis.add_rows(np.array([7]))) == 0
    assert len(basis.add_rows(np.array([9, 9]))) == 1
    assert basis.size == 3
    zeros = Basis(np.zeros((4, 2)), Kernel("linear"), 4)  # K(x, x) = 0
    assert len(zeros.add_rows(np.arange(4))) == 0


def test_no_row_is_taken_twice():
    X, _ = rows()
    basis = Basis(X, RBF, 60)
    basis.add_rows(np.arange(40))
    assert all(len(basis.add_rows(np.array([i]))) == 0 for i in range(40))


def test_single_precision_is_good_enough():
    X, _ = rows(m=2500)
    basis = Basis(X, RBF, 200)
    basis.add_rows(np.arange(200))
    assert basis.dtype == np.float32
    S = basis.index
    K = rbf_kernel(X, X[S], gamma=0.5)
    exact = K @ np.linalg.solve(K[S], K.T[:, :50])
    assert np.abs(basis.features @ basis.features[:50].T - exact).max() < 10 * np.sqrt(min_outside_share(np.float32))


def test_kernel_values_of_all_layouts():
    X, _ = rows()
    expected = rbf_kernel(X, X[:7], gamma=0.5)
    for A in (X, sparse.csr_matrix(X)):
        for B in (X[:7], sparse.csr_matrix(X[:7])):
            np.testing.assert_allclose(kernel_values(RBF, A, B), expected, atol=1e-12)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_on_all_rows_a_refit_is_the_full_machine(loss, C):
    X, y = rows()
    basis = Basis(X, RBF, 60)
    basis.add_rows(np.arange(60))
    fit = refit(basis, y, C, loss, 1e-8)
    best = o.kernel_optimum(rbf_kernel(X, gamma=0.5), y, loss=loss, C=C)
    assert fit.objective == pytest.approx(best, rel=1e-6)
    if loss == "hinge":
        model = SVC(C=C, gamma=0.5, tol=1e-8).fit(X, y)
        np.testing.assert_allclose(basis.features @ fit.u + fit.bias, model.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_newton_finds_the_optimum_on_a_basis(C):
    X, y = rows()
    basis = Basis(X, RBF, 20)
    basis.add_rows(np.arange(20))
    lam = 1 / (C * 60)
    best = o.optimum(basis.features, y, loss="squared_hinge", lam=lam, bias="unregularized").primal / lam
    assert SquaredHingeOnBasis(basis, y, C).objective == pytest.approx(best, rel=1e-6)


def test_the_promise_is_the_fall_along_a_point():
    X, y = rows()
    basis = Basis(X, RBF, 5)
    basis.add_rows(np.arange(5))
    machine = SquaredHingeOnBasis(basis, y, 0.01)  # so that all rows stay active, and F is quadratic
    K = rbf_kernel(X, gamma=0.5)
    for j, promised in zip([10, 20], machine.promise(np.array([10, 20])), strict=True):
        steps = np.linspace(-1, 1, 4001)
        slack = np.maximum(0, 1 - y * (machine.scores + machine.bias + steps[:, None] * K[j]))
        norm = machine.u @ machine.u + 2 * steps * machine.scores[j] + steps**2 * K[j, j]
        values = 0.5 * norm + 0.01 * (slack**2).sum(axis=1)
        assert promised == pytest.approx(machine.objective - values.min(), rel=1e-3)


def test_greedy_choice_is_better_than_chance_and_ends_where_rows_do():
    X, y = rows(m=150)
    basis = Basis(X, RBF, 150)
    path = list(greedy_path(basis, y, 1.0, [5, 10, 400], np.arange(150), 59, np.random.default_rng(0)))
    assert [size for size, _ in path[:2]] == [5, 10]
    assert path[2][0] == basis.size <= 150
    drawn = []
    for seed in range(20):
        other = Basis(X, RBF, 10)
        other.add_rows(np.random.default_rng(seed).choice(150, 10, replace=False))
        drawn.append(refit(other, y, 1.0).objective)
    assert path[1][1].objective < min(drawn)
    best = o.kernel_optimum(rbf_kernel(X, gamma=0.5), y, loss="squared_hinge", C=1.0)
    assert path[2][1].objective == pytest.approx(best, rel=1e-6)
