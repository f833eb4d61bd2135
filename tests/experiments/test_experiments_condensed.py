"""RSVM with its own penalty, condensed machines, and support vectors left out by curvature."""

import condensing_oracles as slow
import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_moons
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.svm import LinearSVC as TheirLinearSVC
from test_experiments_online import noisy

from pegasos import SVC
from pegasos.experiments import Expansion, Task, csvm, osuna_girosi, random_basis, rsvm, zhan_shen
from pegasos.experiments.baselines.combination import Condensed, between
from pegasos.experiments.baselines.curvature import curvature_at, curvatures, projected
from pegasos.kernels.functions import Kernel
from pegasos.sparse.preimage import Rows, Vector


def hinge_objective(task, expansion):
    """½‖w‖² + C Σ hinge of an expansion, from its definition."""
    V = expansion.vectors
    V = V.toarray() if sparse.issparse(V) else V
    gamma = task.kernel.gamma
    scores = rbf_kernel(task.X, V, gamma=gamma) @ expansion.coef + expansion.bias
    norm = expansion.coef @ rbf_kernel(V, gamma=gamma) @ expansion.coef
    return 0.5 * norm + task.C * np.maximum(0, 1 - task.y * scores).sum()


# -------------------------------------------------------------------------------------------------------------- RSVM


@pytest.mark.parametrize("m", [150, 2100])  # kernel values in double and in single precision
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_rsvm_is_the_minimum(m, C):
    X, y = noisy(m)
    task = Task(X, y, gamma=0.5)
    small, large = rsvm(task, [7, 30], C=C)
    assert set(small.rows) <= set(large.rows)
    for found in (small, large):
        G = np.column_stack([rbf_kernel(X, X[found.rows], gamma=0.5), np.ones(m)])
        theta, value = slow.rsvm(G, y, C)
        assert found.details["objective"] == pytest.approx(value, rel=1e-5)
        np.testing.assert_allclose(np.append(found.coef, found.bias), theta, rtol=2e-2, atol=1e-3 * np.abs(theta).max())
    theirs = TheirLinearSVC(C=C, loss="squared_hinge", dual=False, tol=1e-8, max_iter=10_000)
    theirs.fit(rbf_kernel(X, X[large.rows], gamma=0.5), y)
    slack = np.maximum(0, 1 - y * (rbf_kernel(X, X[large.rows], gamma=0.5) @ theirs.coef_[0] + theirs.intercept_[0]))
    value = 0.5 * (theirs.coef_[0] @ theirs.coef_[0] + theirs.intercept_[0] ** 2) + C * slack @ slack
    assert large.details["objective"] == pytest.approx(value, rel=1e-5)


def test_rsvm_with_an_indefinite_kernel_and_with_sparse_rows():
    X, y = noisy(120)
    (found,) = rsvm(Task(X, y, kernel="sigmoid", gamma=0.7, coef0=-0.5), [20])
    K = np.tanh(0.7 * X @ X[found.rows].T - 0.5)
    _, value = slow.rsvm(np.column_stack([K, np.ones(120)]), y, 1.0)
    assert found.details["objective"] == pytest.approx(value, rel=1e-5)
    (thin,) = rsvm(Task(sparse.csr_matrix(X), y, kernel="poly", gamma=0.7, degree=2, coef0=1.0), [20])
    K = polynomial_kernel(X, X[thin.rows], gamma=0.7, degree=2, coef0=1.0)
    _, value = slow.rsvm(np.column_stack([K, np.ones(120)]), y, 1.0)
    assert thin.details["objective"] == pytest.approx(value, rel=1e-5)


def test_the_two_penalties_differ():
    """‖β‖² + b² is not βᵀKβ: each machine is the better one by its own measure."""
    X, y = noisy(200)
    task = Task(X, y, gamma=0.5)
    own = rsvm(task, [25], C=1.0)[0]
    basis = random_basis(task, [25], candidates="all", C=1.0, tol=1e-8)[0]
    assert set(own.rows) == set(basis.rows)

    def values(machine):
        slack = np.maximum(0, 1 - y * machine.decision_function(X))
        K = rbf_kernel(machine.vectors, gamma=0.5)
        return (
            0.5 * (machine.coef @ machine.coef + machine.bias**2) + slack @ slack,
            0.5 * machine.coef @ K @ machine.coef + slack @ slack,
        )

    assert values(own)[0] < 0.9 * values(basis)[0]
    assert values(basis)[1] < 0.999 * values(own)[1]


# -------------------------------------------------------------------------------------------------- condensed machines


@pytest.mark.parametrize("seed", range(20))
def test_two_vectors_as_one(seed):
    rng = np.random.default_rng(seed)
    x, z = rng.normal(size=(2, 3))
    a, b, gamma = rng.uniform(0.1, 5), rng.uniform(0.1, 5), 10.0 ** rng.uniform(-2, 1)
    point, coef, lost = slow.combine(x, z, a, b, gamma)
    t = between(a / (a + b), float(np.exp(-gamma * np.sum((x - z) ** 2))))
    np.testing.assert_allclose(t * x + (1 - t) * z, point, atol=1e-4)
    pair = Condensed(np.array([x, z]), np.ones(2), np.array([a, b]), np.ones(2), gamma)
    pair.to(1)
    assert pair.alpha[pair.alive][0] == pytest.approx(coef, rel=1e-6)
    assert pair.lost == pytest.approx(lost, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("size", [2, 5, 20])
def test_condensing_is_one_pair_after_the_other(size):
    rng = np.random.default_rng(size)
    Z, y = rng.normal(size=(30, 2)), np.where(np.arange(30) < 13, 1.0, -1.0)
    alpha, weight = rng.uniform(0.1, 3, 30), rng.integers(1, 5, 30).astype(float)
    expected, lost = slow.condensed(Z, y, alpha, weight, 0.8, size)
    found = Condensed(Z, y, alpha, weight, 0.8)
    found.to(size)
    assert found.size == len(expected) == size
    assert found.lost == pytest.approx(lost, rel=1e-6)
    for point, sign, coef, heavy, members in expected:
        (i,) = {int(found.into[k]) for k in members}
        assert found.alive[i]
        assert found.y[i] == sign
        assert found.alpha[i] == pytest.approx(coef, rel=1e-6)
        assert found.weight[i] == heavy
        np.testing.assert_allclose(found.Z[i], point, atol=1e-5)
    # No more is lost than Σ of the losses: the triangle inequality.
    V, c = found.Z[found.alive], (found.alpha * found.y)[found.alive]
    both, coefs = np.concatenate([Z, V]), np.concatenate([alpha * y, -c])
    assert np.sqrt(max(0.0, coefs @ rbf_kernel(both, gamma=0.8) @ coefs)) <= found.lost * (1 + 1e-6)


def test_classes_are_never_combined():
    Z = np.array([[0.0], [0.1], [0.2]])
    found = Condensed(Z, np.array([1.0, -1.0, 1.0]), np.ones(3), np.ones(3), 1.0)
    found.to(1)
    assert found.size == 2
    assert sorted(found.y[found.alive]) == [-1.0, 1.0]


@pytest.mark.parametrize("batch", [1, 20, 1000])
def test_with_room_for_all_support_vectors_it_is_the_optimum(batch):
    X, y = make_moons(160, noise=0.25, random_state=0)
    task = Task(X, y, gamma=1.0)
    (found,) = csvm(task, [160], batch=batch, max_rounds=1000, tol=1e-4)
    certificate = task.reference.certificate_  # of (λ/2)‖w‖² + mean loss, λ = 1/(Cm)
    assert found.details["objective"] == pytest.approx(hinge_objective(task, found), rel=1e-9)
    assert certificate.dual * task.m * (1 - 1e-9) <= found.details["objective"] <= certificate.primal * task.m * 1.002
    assert np.mean(found.predict(X) == task.reference.predict(X)) > 0.99


@pytest.mark.parametrize("size", [2, 5, 12])
def test_condensed_machines(size):
    X, y = noisy(300)
    task = Task(X, y, gamma=0.5, C=10.0)
    (found,) = csvm(task, [size], max_rounds=20)
    assert 1 <= found.size <= size
    assert found.details["objective"] == pytest.approx(hinge_objective(task, found), rel=1e-9)
    assert found.details["objective"] >= task.reference.certificate_.dual * task.C * task.m * (1 - 1e-9)
    (longer,) = csvm(task, [size], max_rounds=40)
    assert longer.details["objective"] <= found.details["objective"]  # the best round counts


def test_condensed_machines_of_separated_classes_need_few_vectors():
    X, y = make_moons(400, noise=0.1, random_state=0)
    task = Task(X, y, gamma=1.0, C=10.0)
    (found,) = csvm(task, [10])
    assert found.size <= 10 < task.expansion.size
    assert found.score(X, y) > 0.97


def test_a_condensed_machine_needs_a_vector_of_each_class():
    X, y = noisy(60)
    with pytest.raises(ValueError, match="sizes has 1, but csvm keeps a vector of each class"):
        csvm(Task(X, y, gamma=0.5), [1, 5])


# ----------------------------------------------------------------------------------------------------------- curvature


def expansion(V, coef, bias, gamma):
    return Expansion("", Kernel("rbf", gamma), V, coef, bias, np.array([0, 1]), len(V))


@pytest.mark.parametrize("n", [2, 3, 7])
@pytest.mark.parametrize("copies", [1, 12])
def test_a_sphere_is_as_curved_as_its_radius_says(n, copies):
    """f = Σ K(0, x)/copies − exp(−γr²): n − 1 principal curvatures of 1/r."""
    gamma, r = 0.8, 0.7
    rng = np.random.default_rng(0)
    start = 1e-3 * rng.normal(size=(copies, n))
    centre = expansion(np.zeros((copies, n)), np.full(copies, 1 / copies), -float(np.exp(-gamma * r * r)), gamma)
    rows = Rows.of(centre.vectors, gamma)
    Z = projected(start + 0.3 * np.eye(n)[0], Vector([(rows, centre.coef)]), centre.bias, gamma)
    np.testing.assert_allclose(np.linalg.norm(Z, axis=1), r, rtol=1e-6)
    np.testing.assert_allclose(curvature_at(Z, centre, rows), np.sqrt(n - 1) / r, rtol=1e-6)


@pytest.mark.parametrize("shape", [(12, 3), (4, 6)])  # fewer and more columns than vectors
def test_curvature_is_that_of_finite_differences(shape):
    rng = np.random.default_rng(1)
    V, coef, gamma = rng.normal(size=shape), rng.normal(size=shape[0]), 0.3
    machine = expansion(V, coef, float(-(rbf_kernel(V, gamma=gamma) @ coef).mean()), gamma)
    Z = projected(V, Vector([(Rows.of(V, gamma), coef)]), machine.bias, gamma)
    found = curvatures(machine)

    def f(x):
        return float(rbf_kernel(x[None], V, gamma=gamma)[0] @ coef) + machine.bias

    reached = 0
    for z, v, k in zip(Z, V, found, strict=True):
        assert abs(f(z)) <= abs(f(v))
        reached += abs(f(z)) < 1e-8
        if abs(f(z)) < 1e-8:
            assert k == pytest.approx(slow.curvature(f, z), rel=1e-3)
    assert reached >= len(V) // 2


def test_without_an_exclusion_it_is_osuna_and_girosi():
    X, y = noisy(200)
    task = Task(X, y, gamma=0.5, C=5.0)
    one, two = zhan_shen(task, [150], exclude=0.0), osuna_girosi(task, [150])
    assert len(one) == len(two) > 0
    for a, b in zip(one, two, strict=True):
        assert len(a.details["excluded"]) == 0
        np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=0.05)


def test_the_most_curved_are_left_out_and_the_rest_is_trained_anew():
    X, y = noisy(200)
    task = Task(X, y, gamma=0.5, C=5.0)
    found = zhan_shen(task, [150], exclude=0.4)
    support, out = task.expansion.rows, found[0].details["excluded"]
    assert len(out) == int(0.4 * len(support))
    assert set(out) <= set(support)
    bend = dict(zip(support, curvatures(task.expansion), strict=True))
    assert min(bend[row] for row in out) >= max(bend[row] for row in set(support) - set(out))
    kept = np.setdiff1d(np.arange(200), out)
    again = SVC(C=5.0, gamma=0.5).fit(X[kept], y[kept])
    assert found[0].details["retrained"] == len(again.support_)
    for machine in found:
        assert not set(machine.rows) & set(out)
        epsilon = machine.details["epsilon"]
        free = np.abs(machine.decision_function(X[kept]) - again.decision_function(X[kept])) <= epsilon + 0.05
        assert free.mean() > 0.9
    assert found[-1].size < len(support)
