"""The oracles themselves: conjugates and steps against brute force, certificates against an independent optimum."""

from __future__ import annotations

import numpy as np
import oracles as o
import pytest
from numpy.testing import assert_allclose

SCALAR = [
    o.Hinge(),
    o.SquaredHinge(),
    o.SmoothedHinge(gamma=0.5),
    o.Log(),
    o.EpsilonInsensitive(epsilon=0.2),
    o.EpsilonInsensitive(epsilon=0.0),
    o.SquaredEpsilonInsensitive(epsilon=0.2),
    o.Squared(),
    o.Huber(delta=0.7),
    o.Quantile(tau=0.3),
]
COST = np.array([[0.0, 1.0, 2.0], [0.5, 0.0, 1.0], [3.0, 1.0, 0.0]])
VECTOR = [o.CrammerSinger(COST), o.CrammerSinger(3), o.Multinomial(3)]
NAME = lambda loss: loss.name  # noqa: E731

scalar = pytest.mark.parametrize("loss", SCALAR, ids=NAME)
every = pytest.mark.parametrize("loss", SCALAR + VECTOR, ids=NAME)


def data(loss, m=40, n=4, seed=0):
    kind = "multiclass" if isinstance(loss, o.Vector) else "binary" if loss.classification else "real"
    return o.toy(m, n, kind=kind, seed=seed)


def labels(loss):
    return [1.0, -1.0] if loss.classification else [-0.8, 0.0, 1.3]


def feasible(loss, y, rng):
    """A random dual point inside the domain."""
    if isinstance(loss, o.Vector):
        return loss.onehot(y) - rng.dirichlet(np.ones(loss.classes), len(y))
    lo, hi = loss.domain(y)
    return rng.uniform(np.maximum(lo, -3), np.minimum(hi, 3))


# ------------------------------------------------------------------------------------------------------------- losses


def test_names_and_kinks():
    assert list(o.SCALAR) == [
        "hinge",
        "squared_hinge",
        "smoothed_hinge",
        "log",
        "epsilon_insensitive",
        "squared_epsilon_insensitive",
        "squared",
        "huber",
        "quantile",
    ]
    assert o.as_loss("huber", delta=0.5) == o.Huber(delta=0.5)
    assert o.Hinge().slope(1.0, 1.0) == 0
    assert o.EpsilonInsensitive(0.5).slope(1.0, 1.5) == 0
    assert o.Quantile(0.3).slope(1.0, 1.0) == 0
    z = np.array([0.0, -1.0, -2.0])  # δ + z ties with the true label at zero loss: the true label wins
    assert_allclose(o.CrammerSinger(3).slope(z, 0), 0)
    assert_allclose(o.CrammerSinger(3).slope(np.zeros(3), 2), [-1, 0, 1])  # lowest of the maximisers


@scalar
def test_value_is_convex_and_nonnegative(loss):
    z = np.linspace(-4, 4, 801)
    for y in labels(loss):
        v = loss.value(z, y)
        assert v.min() >= 0
        assert np.diff(v, 2).min() >= -1e-12


@scalar
def test_slope_against_finite_differences(loss):
    z = np.random.default_rng(0).uniform(-4, 4, 300)
    h = 1e-6
    for y in labels(loss):
        fd = -(loss.value(z + h, y) - loss.value(z - h, y)) / (2 * h)
        assert_allclose(loss.slope(z, y), fd, atol=2e-6)


@scalar
def test_conjugate_against_a_grid(loss):
    """−ℓ*(−u) = min_z ℓ(z) + uz, −∞ outside the domain."""
    z = np.linspace(-60, 60, 240_001)
    for y in labels(loss):
        lo, hi = (float(s) for s in loss.domain(y))
        for u in np.linspace(max(lo, -2.5), min(hi, 2.5), 11)[1:-1]:
            assert_allclose(loss.conjugate(u, y), (loss.value(z, y) + u * z).min(), atol=1e-6)
        for u in (lo - 0.1, hi + 0.1):
            if np.isfinite(u):
                assert loss.conjugate(u, y) == -np.inf
                assert (loss.value(z, y) + u * z).min() < -4


@scalar
def test_fenchel_young(loss):
    """ℓ(z) + uz ≥ −ℓ*(−u), with equality at u = g(z)."""
    rng = np.random.default_rng(1)
    for y in labels(loss):
        z = rng.uniform(-4, 4, 200)
        ys = np.full(200, y)
        u = feasible(loss, ys, rng)
        assert (loss.value(z, y) + u * z - loss.conjugate(u, ys)).min() >= -1e-12
        g = loss.slope(z, y)
        assert_allclose(loss.value(z, y) + g * z, loss.conjugate(g, ys), atol=1e-12)


@pytest.mark.parametrize("loss", VECTOR, ids=NAME)
def test_fenchel_young_vector(loss):
    rng = np.random.default_rng(1)
    z, y = rng.normal(0, 2, (200, 3)), rng.integers(0, 3, 200)
    u = feasible(loss, y, rng)
    assert (loss.value(z, y) + o.dot(u, z) - loss.conjugate(u, y)).min() >= -1e-12
    g = loss.slope(z, y)
    assert_allclose(loss.value(z, y) + o.dot(g, z), loss.conjugate(g, y), atol=1e-12)
    assert loss.conjugate(np.array([[0.5, -0.7, 0.2]]), np.array([1])) == -np.inf


@pytest.mark.parametrize("loss", VECTOR, ids=NAME)
def test_vector_slope_against_finite_differences(loss):
    rng = np.random.default_rng(2)
    z, y, h = rng.normal(0, 2, (50, 3)), rng.integers(0, 3, 50), 1e-6
    fd = np.stack([-(loss.value(z + h * e, y) - loss.value(z - h * e, y)) / (2 * h) for e in np.eye(3)], axis=1)
    assert_allclose(loss.slope(z, y), fd, atol=1e-7)


# ---------------------------------------------------------------------------------------------------------- dual steps


@scalar
def test_exact_step_maximises(loss):
    rng = np.random.default_rng(3)
    for _ in range(40):
        y = float(rng.choice(labels(loss)))
        u0, z, q = float(feasible(loss, np.array([y]), rng)[0]), rng.normal(0, 2), 10 ** rng.uniform(-2, 2)
        u, v = o.exact_step(loss, u0, z, y, q), o.brute_step(loss, u0, z, y, q)
        assert_allclose(u, v, atol=2e-6)
        assert o.step_objective(loss, u, u0, z, y, q) >= o.step_objective(loss, v, u0, z, y, q) - 1e-13


@pytest.mark.parametrize("loss", VECTOR, ids=NAME)
def test_exact_step_maximises_vector(loss):
    rng = np.random.default_rng(4)
    for _ in range(30):
        y, z, q = int(rng.integers(3)), rng.normal(0, 2, 3), 10 ** rng.uniform(-1, 1.5)
        u0 = feasible(loss, np.array([y]), rng)[0]
        u = o.exact_step(loss, u0, z, y, q)
        best = o.step_objective(loss, u, u0, z, y, q)
        others = loss.onehot(y) - rng.dirichlet(np.ones(3), 300)
        near = u + 1e-3 * (others - u)
        assert best >= max(o.step_objective(loss, v, u0, z, y, q) for v in np.vstack([others, near])) - 1e-12


def test_step_with_zero_row():
    assert o.exact_step("hinge", 0.0, 0.0, -1.0, 0.0) == -1.0
    assert o.exact_step("squared", 0.0, 0.5, 2.0, 0.0) == 1.5


@every
def test_dual_ascent_is_monotone_and_reaches_the_optimum(loss):
    X, y = data(loss, m=15, n=3)
    c = np.random.default_rng(5).integers(1, 4, len(y))
    best = o.optimum(X, y, loss=loss, lam=0.3, weight=c)
    u = feasible(loss, y, np.random.default_rng(0)) * 0.1
    u = loss.onehot(y) * 0 if isinstance(loss, o.Vector) else u
    D = [o.dual(X, y, u, loss=loss, lam=0.3, weight=c)]
    for e in range(8):
        u = o.dual_epoch(X, y, u, np.random.default_rng(e).permutation(len(y)), loss=loss, lam=0.3, weight=c)
        D.append(o.dual(X, y, u, loss=loss, lam=0.3, weight=c))
    assert np.diff(D).min() >= -1e-13
    assert best.primal - 2e-2 * best.primal <= D[-1] <= best.primal + 1e-12


# ----------------------------------------------------------------------------------------------------------- objectives


@every
def test_weak_duality(loss):
    X, y = data(loss)
    rng = np.random.default_rng(6)
    c = rng.integers(0, 3, len(y))
    for _ in range(20):
        u = feasible(loss, y, rng)
        w = o.dual_weights(X, u, lam=0.1, weight=c)
        v = rng.normal(size=w.shape)
        assert o.primal(X, y, w, loss=loss, lam=0.1, weight=c) >= o.dual(X, y, u, loss=loss, lam=0.1, weight=c) - 1e-12
        assert o.primal(X, y, v, loss=loss, lam=0.1, weight=c) >= o.dual(X, y, u, loss=loss, lam=0.1, weight=c) - 1e-12


@every
@pytest.mark.parametrize("bias", ["none", "feature", "unregularized"])
def test_optimum_is_proven(loss, bias):
    X, y = data(loss)
    c = np.random.default_rng(7).integers(0, 3, len(y))
    c[:3] = 1
    for lam in (0.5, 1e-3):
        r = o.optimum(X, y, loss=loss, lam=lam, weight=c, bias=bias, B=0.5)
        assert -1e-12 <= r.gap <= 1e-8 * r.primal
        penalty = lam / 2 * np.sum((np.asarray(r.b) / 0.5) ** 2) if bias == "feature" else 0.0
        assert_allclose(o.primal(X, y, r.w, r.b, loss=loss, lam=lam, weight=c) + penalty, r.primal, rtol=1e-12)
        if bias == "unregularized":
            assert_allclose(c @ r.u, 0, atol=1e-8 * len(y))


def test_optimum_agrees_with_scikit_learn():
    from sklearn.linear_model import Ridge
    from sklearn.svm import SVC

    X, y = o.toy(50, 4)
    svc = SVC(kernel="linear", C=2.0, tol=1e-8).fit(X, y)
    r = o.optimum(X, y, loss="hinge", lam=o.lam_from_C(2.0, 50), bias="unregularized")
    assert_allclose(r.w, svc.coef_[0], atol=1e-5)
    assert_allclose(o.primal(X, y, svc.coef_[0], svc.intercept_[0], loss="hinge", lam=1 / 100), r.primal, rtol=1e-6)
    X, y = o.toy(50, 4, kind="real")
    ridge = Ridge(alpha=5.0).fit(X, y)
    r = o.optimum(X, y, loss="squared", lam=0.1, bias="unregularized")
    assert_allclose(r.w, ridge.coef_, atol=1e-8)
    assert_allclose(r.b, ridge.intercept_, atol=1e-8)


@every
def test_weight_two_is_the_row_twice(loss):
    X, y = data(loss, m=20)
    c = np.ones(20)
    c[3] = 2
    twice = np.append(np.arange(20), 3)
    a = o.optimum(X, y, loss=loss, lam=0.1, weight=c, bias="unregularized")
    b = o.optimum(X[twice], y[twice], loss=loss, lam=0.1, bias="unregularized")
    assert_allclose(a.primal, b.primal, rtol=1e-8)
    w = np.random.default_rng(0).normal(size=a.w.shape)
    P = o.primal(X, y, w, 0.3, loss=loss, lam=0.1, weight=c)
    assert_allclose(P, o.primal(X[twice], y[twice], w, 0.3, loss=loss, lam=0.1), rtol=1e-13)


@every
def test_radius_holds_the_optimum(loss):
    X, y = data(loss)
    for lam in (1.0, 0.01):
        r = o.optimum(X, y, loss=loss, lam=lam)
        assert np.sqrt((r.w**2).sum()) <= o.radius(y, loss=loss, lam=lam) + 1e-12
    assert_allclose(o.radius(o.toy()[1], loss="hinge", lam=0.25), 2.0)


def test_balance():
    u = o.balance([0.5, 1.0, -0.25], [1.0, 2.0, 4.0])
    assert_allclose(u, [0.2, 0.4, -0.25])
    assert_allclose(o.balance([1.0, 0.5]), 0)


# -------------------------------------------------------------------------------------------------------------- pegasos


def test_pegasos_is_the_printed_recursion():
    """Eq. 5 with k = 1 and Eq. 13: w_{t+1} = (1/(λt)) Σ_{s≤t} y_s 1[y_s⟨w_s, x_s⟩ < 1] x_s."""
    X, y = o.toy(20, 3)
    order = np.random.default_rng(0).integers(0, 20, 60)
    W = o.pegasos(X, y, order, lam=0.1)
    total = np.zeros(3)
    for t, i in enumerate(order, start=1):
        total = total + y[i] * (y[i] * X[i] @ W[t - 1] < 1) * X[i]
        assert_allclose(W[t], total / (0.1 * t), atol=1e-12)


@every
@pytest.mark.parametrize("t0", [0.0, 25.0])
def test_pegasos_is_a_sum_of_gradients(loss, t0):
    """w_{t+1} = (1/(λΩ)) Σ c̃ g x over all rows so far, uneven batches, weights, t0 and ω included."""
    X, y = data(loss, m=13)
    c = np.random.default_rng(1).uniform(0.5, 2, 13)
    batches = o.epochs(13, 3, k=4)
    omega = 1.0 + np.arange(len(batches))
    W = o.pegasos(X, y, batches, lam=0.2, loss=loss, weight=c, t0=t0, omega=omega)
    cert = o.free_certificate(X, y, batches, W, lam=0.2, loss=loss, weight=c, t0=t0, omega=omega)
    assert_allclose(cert.w, W[-1], rtol=1e-9, atol=1e-11 * np.abs(W).max())


def test_label_flip_and_constant_feature():
    X, y = o.toy(20, 3)
    order = o.epochs(20, 2)
    assert_allclose(o.pegasos(X, -y, order, lam=0.1), -o.pegasos(X, y, order, lam=0.1))
    Z = np.column_stack([X, np.full(20, 2.0)])
    assert_allclose(o.pegasos(X, y, order, lam=0.1, B=2.0), o.pegasos(Z, y, order, lam=0.1))


def test_projection_stays_in_the_ball():
    X, y = o.toy(30, 3)
    W = o.pegasos(3 * X, y, o.epochs(30, 3), lam=1e-3, projection=True)
    norms = np.linalg.norm(W, axis=1)
    assert norms.max() <= 1 / np.sqrt(1e-3) + 1e-9
    assert np.isclose(norms, 1 / np.sqrt(1e-3)).any()


def test_two_class_crammer_singer_is_the_hinge():
    """K = 2: w = W_1 − W_0 moves by 2x/(λt), which is the hinge at λ/2; both runs make the same decisions."""
    X, y = o.toy(25, 3)
    order = o.epochs(25, 3)
    W = o.pegasos(X, (y > 0).astype(int), order, lam=0.1, loss=o.CrammerSinger(2))
    w = o.pegasos(X, y, order, lam=0.05)
    assert_allclose(W[:, 1] - W[:, 0], w, atol=1e-12)


def test_two_class_multinomial_is_the_log_loss():
    X, y = o.toy(25, 3)
    a = o.optimum(X, (y > 0).astype(int), loss=o.Multinomial(2), lam=0.1, bias="unregularized")
    b = o.optimum(X, y, loss="log", lam=0.05, bias="unregularized")
    assert_allclose(a.primal, b.primal, rtol=1e-10)
    assert_allclose(a.w[1] - a.w[0], b.w, atol=1e-8)


def test_norma_and_constant_steps():
    X, y = o.toy(20, 3)
    order = np.random.default_rng(0).integers(0, 20, 30)
    W = o.norma(X, y, order, lam=0.1, p=0.5)
    V = o.sgd(X, y, order, lam=0.1, eta=0.3)
    for t, i in enumerate(order, start=1):
        for run, eta in ((W, 0.5 / (0.1 * np.sqrt(t))), (V, 0.3)):
            g = y[i] * (y[i] * X[i] @ run[t - 1] < 1)
            assert_allclose(run[t], run[t - 1] - eta * (0.1 * run[t - 1] - g * X[i]), atol=1e-12)
    assert o.sgd(X, np.zeros(20, int), order, lam=0.1, eta=0.3, loss=o.Multinomial(3)).shape == (31, 3, 3)


@pytest.mark.parametrize("kind", ["uniform", "linear", "suffix"])
@pytest.mark.parametrize("projection", [False, True])
def test_lazy_average_is_the_average(kind, projection):
    X, y = o.toy(20, 3)
    order = np.random.default_rng(0).integers(0, 20, 81)
    W, lam = o.pegasos(2 * X, y, order, lam=0.01, projection=projection), 0.01
    T, pi = len(order), 1.0
    scales, increments = [], []
    for t in range(1, T + 1):  # w_t = π v/(λ(t−1)); a projection multiplies π
        i = order[t - 1]
        g = y[i] * (2 * y[i] * X[i] @ W[t - 1] < 1)
        scales.append(pi / (lam * (t - 1)) if t > 1 else 0.0)
        increments.append(g * 2 * X[i] / pi)
        free = (1 - 1 / t) * W[t - 1] + g * 2 * X[i] / (lam * t)
        pi *= np.linalg.norm(W[t]) / np.linalg.norm(free)
    lazy = o.lazy_average(np.array(increments), scales, o.averaging_weights(T, kind))
    assert_allclose(lazy, o.average(W[:-1], kind), rtol=1e-6, atol=1e-9)


# ---------------------------------------------------------------------------------------------------------- certificate


@every
@pytest.mark.parametrize("sampling", ["iid", "permuted", "batches"])
def test_exact_identity(loss, sampling):
    X, y = data(loss, m=24)
    c = np.random.default_rng(0).uniform(0.5, 2, 24)
    batches = {
        "iid": np.random.default_rng(1).integers(0, 24, 50),
        "permuted": o.epochs(24, 2),
        "batches": o.epochs(24, 4, k=6),
    }[sampling]
    left, right = o.regret_identity(X, y, batches, lam=0.5, loss=loss, weight=c)
    assert_allclose(left, right, rtol=1e-10, atol=1e-10)


@every
@pytest.mark.parametrize("k", [1, 7])
@pytest.mark.parametrize("t0", [0.0, 30.0])
@pytest.mark.parametrize("projection", [False, True])
def test_whole_epochs_bound_the_optimum(loss, k, t0, projection):
    """Full history and window, uneven batches, weights, t0, constant feature, projection: all bound P* from below."""
    X, y = data(loss, m=24)
    c = np.random.default_rng(0).uniform(0.5, 2, 24)
    best = o.optimum(X, y, loss=loss, lam=0.1, weight=c, bias="feature")
    run = {"lam": 0.1, "loss": loss, "weight": c, "t0": t0, "projection": projection, "B": 1.0}
    batches = o.epochs(24, 6, k=k)
    W = o.pegasos(X, y, batches, **run)
    for start in (None, 0, len(batches) // 2):
        cert = o.free_certificate(X, y, batches, W, start=start, **run)
        assert cert.dual <= best.primal + 1e-12 * (1 + abs(best.primal))


@every
def test_window_converges(loss):
    X, y = data(loss, m=24)
    best = o.optimum(X, y, loss=loss, lam=0.3)
    batches = o.epochs(24, 40)
    W = o.pegasos(X, y, batches, lam=0.3, loss=loss, t0=20)
    full = o.free_certificate(X, y, batches, W, lam=0.3, loss=loss, t0=20).dual
    window = o.free_certificate(X, y, batches, W, lam=0.3, loss=loss, t0=20, start=20 * 24).dual
    assert full < window <= best.primal + 1e-12
    assert best.primal - window < 0.02 * best.primal
    assert o.primal(X, y, W[-1], loss=loss, lam=0.3) - window < 0.03 * best.primal


def test_hinge_whole_epochs_are_counts():
    """a_i = violations_i/E ∈ [0, 1], w = w(u), S/Ω = violations/T: D_free is D at that point."""
    X, y = o.toy(24, 4)
    batches = o.epochs(24, 5)
    W = o.pegasos(X, y, batches, lam=0.1)
    a = np.zeros(24)
    for w, [i] in zip(W[:-1], batches, strict=True):
        a[i] += (y[i] * X[i] @ w < 1) / 5
    cert = o.free_certificate(X, y, batches, W, lam=0.1)
    assert_allclose(cert.offset, a.mean())
    assert_allclose(o.dual_weights(X, y * a, lam=0.1), W[-1], atol=1e-12)
    assert_allclose(o.dual(X, y, y * a, loss="hinge", lam=0.1), cert.dual)


@pytest.mark.parametrize("loss", [o.Log(), o.SquaredHinge(), o.Squared(), o.Multinomial(3)], ids=NAME)
def test_mean_slopes_beat_the_free_certificate(loss):
    """Jensen: D_free ≤ D(ū) ≤ P* with ū_i the mean of the slopes met at row i."""
    X, y = data(loss, m=24)
    batches = o.epochs(24, 5)
    W = o.pegasos(X, y, batches, lam=0.2, loss=loss)
    u = 0.0 * loss.slope(X @ W[0].T, y)
    for w, [i] in zip(W[:-1], batches, strict=True):
        u[i] += loss.slope(X[[i]] @ w.T, y[[i]])[0] / 5
    free = o.free_certificate(X, y, batches, W, lam=0.2, loss=loss).dual
    assert free < o.dual(X, y, u, loss=loss, lam=0.2) <= o.optimum(X, y, loss=loss, lam=0.2).primal + 1e-12


def test_partial_epoch_needs_scaling():
    """T = Em + r: the raw formula exceeds P* on some runs; scaled by s ≤ T/(m⌈T/m⌉) it never does."""
    m, exceeded = 24, 0
    for seed in range(40):
        X, y = o.toy(m, 4, seed=seed)
        best = o.optimum(X, y, loss="hinge", lam=0.3).primal
        batches = o.epochs(m, 2, seed=seed)[: m + 5]
        W = o.pegasos(X, y, batches, lam=0.3)
        cert = o.free_certificate(X, y, batches, W, lam=0.3)
        exceeded += cert.dual > best + 1e-9
        assert o.scaled_certificate(cert.offset, cert.w, lam=0.3, s_max=len(batches) / (2 * m)) <= best + 1e-12
    assert exceeded > 0


def test_iid_sampling_needs_scaling():
    """The same with s ≤ T/(m·max count), which is valid and nearly useless."""
    m, exceeded, loss_of_bound = 24, 0, []
    for seed in range(40):
        X, y = o.toy(m, 4, seed=seed)
        best = o.optimum(X, y, loss="hinge", lam=0.3).primal
        order = np.random.default_rng(seed).integers(0, m, 3 * m)
        W = o.pegasos(X, y, order, lam=0.3)
        cert = o.free_certificate(X, y, order, W, lam=0.3)
        exceeded += cert.dual > best + 1e-9
        s_max = len(order) / (m * np.bincount(order).max())
        scaled = o.scaled_certificate(cert.offset, cert.w, lam=0.3, s_max=s_max)
        assert scaled <= best + 1e-12
        loss_of_bound.append(1 - scaled / best)
    assert exceeded > 0
    assert np.mean(loss_of_bound) > 0.2


def test_unregularised_bias_needs_balance():
    """The whole-epoch D of a run without bias can exceed P* of the problem with a free bias; balanced it cannot."""
    X, y = o.toy(40, 3, seed=1)
    y[:34] = 1.0
    best = o.optimum(X, y, loss="hinge", lam=0.1, bias="unregularized").primal
    batches = o.epochs(40, 30)
    W = o.pegasos(X, y, batches, lam=0.1)
    a = np.zeros(40)
    for w, [i] in zip(W[:-1], batches, strict=True):
        a[i] += (y[i] * X[i] @ w < 1) / 30
    assert o.dual(X, y, y * a, loss="hinge", lam=0.1) > best
    assert o.dual(X, y, o.balance(y * a), loss="hinge", lam=0.1) <= best


def test_average_of_epoch_ends_is_a_dual_point_and_weighted_epochs_are_exact():
    X, y = o.toy(24, 4)
    best = o.optimum(X, y, loss="hinge", lam=0.1)
    batches = o.epochs(24, 8)
    W = o.pegasos(X, y, batches, lam=0.1)
    ends = [o.free_certificate(X, y, batches[: 24 * e], W[: 24 * e + 1], lam=0.1) for e in range(1, 9)]
    w = np.mean([c.w for c in ends], axis=0)
    assert_allclose(w, W[24::24].mean(0), atol=1e-12)
    assert np.mean([c.offset for c in ends]) - 0.05 * (w**2).sum() <= best.primal
    omega = np.repeat(np.arange(1.0, 9.0) ** 2, 24)
    W = o.pegasos(X, y, batches, lam=0.1, omega=omega)
    assert o.free_certificate(X, y, batches, W, lam=0.1, omega=omega).dual <= best.primal


# ------------------------------------------------------------------------------------------------- cutting planes, bias


@pytest.mark.parametrize("loss", [o.Hinge(), o.Log(), o.EpsilonInsensitive(0.2), o.CrammerSinger(3)], ids=NAME)
def test_cutting_plane_reaches_the_optimum(loss):
    X, y = data(loss, m=30, n=3)
    c = np.random.default_rng(0).uniform(0.5, 2, 30)
    best = o.optimum(X, y, loss=loss, lam=0.1, weight=c)
    w, P, D = o.cutting_plane(X, y, lam=0.1, loss=loss, weight=c, tol=1e-3)
    assert best.primal >= D - 1e-12
    assert best.dual - 1e-12 <= P <= D + 1e-3 * P
    assert_allclose(o.primal(X, y, w, loss=loss, lam=0.1, weight=c), P)


def test_hinge_bias_by_brute_force():
    rng = np.random.default_rng(0)
    for trial in range(60):
        m = int(rng.integers(2, 9))
        s, y = np.round(rng.normal(0, 1.5, m), 1), rng.choice([-1.0, 1.0], m)
        y[:2] = 1, -1
        c = None if trial % 2 else rng.integers(0, 4, m) + (np.arange(m) < 2)
        w = np.ones(m) if c is None else c

        def f(b, s=s, y=y, w=w):
            return w @ np.maximum(0, 1 - y * (s + b))

        lo, hi = o.hinge_bias_interval(s, y, c)
        least = min(f(b) for b in y - s)  # a piecewise linear convex function is least at a breakpoint
        assert_allclose([f(lo), f(hi), f(o.hinge_bias(s, y, c))], least, atol=1e-12)
        assert min(f(lo - 1e-3), f(hi + 1e-3)) > least + 1e-6
        assert_allclose(f(o.best_bias(s, y, loss="hinge", weight=c)), least, atol=1e-12)


def test_hinge_bias_of_one_class():
    assert o.hinge_bias_interval([0.5, 2.0], [1.0, 1.0]) == (0.5, np.inf)
    assert o.hinge_bias_interval([0.5, 2.0], [-1.0, -1.0]) == (-np.inf, -3.0)
    assert o.hinge_bias([0.5, 2.0], [1.0, 1.0], previous=4.0) == 4.0
    assert o.hinge_bias([0.5, 2.0], [1.0, 1.0]) == 0.5


@scalar
def test_best_bias_minimises(loss):
    X, y = data(loss, m=25)
    s, c = X[:, 0], np.random.default_rng(0).uniform(0.5, 2, 25)
    b = o.best_bias(s, y, loss=loss, weight=c)
    values = [c @ loss.value(s + t, y) for t in np.concatenate([[b], b + np.linspace(-1, 1, 401)])]
    assert values[0] <= min(values) + 1e-12


def test_toy_and_sparse_input():
    from scipy.sparse import csr_array

    X, y = o.toy(20, 3, kind="multiclass", classes=4)
    assert set(y) == {0, 1, 2, 3}
    assert_allclose(o.augment(csr_array(X), 2.0)[:, :3], X)
