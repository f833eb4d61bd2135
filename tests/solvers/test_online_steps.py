"""Proximal steps, dual averaging and passive-aggressive steps: their iterates, and the bounds of their papers."""

from __future__ import annotations

import numpy as np
import oracles as o
import pytest
import step_oracles as online
from conftest import CASES, advance, oracle, problem, toy
from numpy.testing import assert_allclose

from pegasos import (
    DualAveraging,
    LinearSVC,
    LinearSVR,
    PassiveAggressive,
    Pegasos,
    Proximal,
    SequenceSVC,
    _core,
    losses,
)
from pegasos.fit.engine import Options
from pegasos.theory import projection_radius

TIGHT = {"rtol": 1e-10, "atol": 1e-11}
#: Losses with unbounded slopes explode from steps as long as the first of these methods.
BOUNDED = [loss for loss in CASES if not loss.name.startswith("squared")]
PASSIVE = [losses.Hinge(), losses.EpsilonInsensitive(0.2), losses.Quantile(0.3), losses.CrammerSinger()]

bounded = pytest.mark.parametrize("loss", BOUNDED, ids=repr)


def batches(m, epochs, k=1, seed=0):
    orders = [_core.epoch_order(m, "permutation", seed, e) for e in range(epochs)]
    return [order[s : s + k] for order in orders for s in range(0, m, k)]


def run(p, solver, epochs, intercept="none"):
    return advance(solver.engine(p, Options(intercept, 0)), epochs)


def weights_of(engine, B=None):
    W, b = engine.model()
    W = W if B is None else np.column_stack([W, b / B])
    return W if len(W) > 1 else W[0]


def row_weights(m):
    c = np.random.default_rng(0).uniform(0.2, 3, m)
    c[:3] = 0.0
    return c


def objective(loss, X, y, w, A, lam):
    return lam / 2 * float(np.sum(w * w)) + float(np.mean(oracle(loss).value(X[A] @ w.T, y[A])))


# ----------------------------------------------------------------------------------------------------- dual averaging


@bounded
@pytest.mark.parametrize("k", [1, 8])
@pytest.mark.parametrize("gamma", [0.0, 0.3])
@pytest.mark.parametrize("projection", [False, True])
def test_dual_averaging_is_its_definition(loss, k, gamma, projection):
    X, y = toy(loss)
    c, B, lam = row_weights(len(y)), 0.7, 0.03
    p = problem(X, y, loss, lam, weight=c, bias="feature", feature=B)
    engine = run(p, DualAveraging(gamma=gamma, batch_size=k, projection=projection), 3, "feature")
    radius = o.radius(y, loss=oracle(loss), lam=lam, weight=c) if projection else np.inf
    expected = online.dual_averaging(
        X, y, batches(len(y), 3, k), lam=lam, gamma=gamma, loss=oracle(loss), weight=c, B=B, radius=radius
    )
    assert_allclose(weights_of(engine, B), expected[-1], **TIGHT)


@bounded
def test_without_gamma_it_is_pegasos_bit_by_bit(loss):
    X, y = toy(loss)
    p = problem(X, y, loss, 0.1)
    one, two = (run(p, solver, 5) for solver in (DualAveraging(), Pegasos(t0=0.0)))
    assert (one.model()[0] == two.model()[0]).all()
    assert (one.duals() == two.duals()).all()


@pytest.mark.parametrize("gamma", [0.0, 0.2, 2.0])
@pytest.mark.parametrize("lam", [0.2, 1e-3])
def test_the_regret_of_dual_averaging(gamma, lam):
    loss = losses.Hinge()
    X, y = toy(loss)
    order = batches(len(y), 3)
    W = online.dual_averaging(X, y, order, lam=lam, gamma=gamma)
    u = o.optimum(X, y, loss=oracle(loss), lam=lam, bias="none").w
    regret = sum(
        objective(loss, X, y, w, A, lam) - objective(loss, X, y, u, A, lam) for w, A in zip(W, order, strict=False)
    )
    t = np.arange(1, len(order) + 1)
    gradients = [lam * w - online._slopes(oracle(loss), X, y, w, A)[0] @ X[A] for w, A in zip(W, order, strict=False)]
    squares = np.sum(np.square(gradients), axis=1)
    bound = gamma * np.sqrt(len(t)) / 2 * float(u @ u) + float(np.sum(squares / (lam * t + gamma * np.sqrt(t - 1)))) / 2
    assert 0 < regret <= bound
    assert_allclose(weights_of(run(problem(X, y, loss, lam), DualAveraging(gamma=gamma), 3)), W[-1], **TIGHT)


def test_the_mean_of_dual_averaging_nears_the_optimum_where_pegasos_is_far_away():
    loss, lam = losses.Hinge(), 1e-4
    X, y = toy(loss)
    star = o.optimum(X, y, loss=oracle(loss), lam=lam, bias="none").primal
    p = problem(X, y, loss, lam)
    values = []
    for solver in (DualAveraging(gamma=0.5, output="average"), Pegasos(t0=0.0, output="average")):
        w = run(p, solver, 50).model()[0][0]
        values.append(objective(loss, X, y, w, np.arange(len(y)), lam))
    assert star <= values[0] < 1.2 * star
    assert values[1] > 2 * star


# ----------------------------------------------------------------------------------------------------- proximal steps


@bounded
@pytest.mark.parametrize("k", [1, 8])
@pytest.mark.parametrize("projection", [False, True])
def test_proximal_steps_are_their_definition(loss, k, projection):
    X, y = toy(loss)
    c, B, lam = row_weights(len(y)), 0.7, 0.01
    p = problem(X, y, loss, lam, weight=c, bias="feature", feature=B)
    rho = o.radius(y, loss=oracle(loss), lam=lam, weight=c)
    expected, taus = online.proximal(
        X,
        y,
        batches(len(y), 3, k),
        lam=lam,
        D=2 * rho,
        loss=oracle(loss),
        weight=c,
        B=B,
        radius=rho if projection else np.inf,
    )
    engine = run(p, Proximal(batch_size=k, projection=projection), 3, "feature")
    assert_allclose(weights_of(engine, B), expected[-1], rtol=1e-8, atol=1e-9)
    assert engine.lanes.solvers[0].state()["tau"][0] == pytest.approx(taus.sum(), rel=1e-9)


def test_proximal_steps_of_several_classes_are_separate_runs():
    loss = losses.Hinge()
    X, y = toy(loss, classes=3)
    bound = 4.0
    W = run(problem(X, y, loss, 0.01), Proximal(bound=bound), 3).model()[0]
    assert W.shape == (3, X.shape[1])
    for k, w in enumerate(W):
        t = np.where(y == k, 1.0, -1.0)
        expected, _ = online.proximal(X, t, batches(len(y), 3), lam=0.01, D=2 * bound, radius=bound)
        assert_allclose(w, expected[-1], rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("lam", [0.2, 1e-3, 1e-5])
def test_the_regret_of_proximal_steps(lam):
    """At most D² Στ, which is at most twice what any constant τ would promise."""
    loss = losses.Hinge()
    X, y = toy(loss)
    order, rho = batches(len(y), 3), projection_radius(lam)
    W, taus = online.proximal(X, y, order, lam=lam, D=2 * rho, radius=rho)
    optimum = o.optimum(X, y, loss=oracle(loss), lam=lam, bias="none").w
    for u in (optimum, np.zeros(X.shape[1]), rho * W[-1] / np.linalg.norm(W[-1])):
        regret = sum(
            objective(loss, X, y, w, A, lam) - objective(loss, X, y, u, A, lam) for w, A in zip(W, order, strict=False)
        )
        assert regret <= 4 * rho**2 * taus.sum()
    t = np.arange(1, len(order) + 1)
    squares = np.array(
        [
            (lam * np.linalg.norm(w) + np.linalg.norm(online._slopes(oracle(loss), X, y, w, A)[0] @ X[A])) ** 2
            for w, A in zip(W, order, strict=False)
        ]
    )
    for first in np.geomspace(1e-6, 10, 30):
        other = 0.5 * 4 * rho**2 * first + 0.5 * float(np.sum(squares / (lam * t + first)))
        assert 4 * rho**2 * taus.sum() <= 2 * other


def test_proximal_steps_for_small_lam_stay_where_pegasos_goes_far_out():
    loss, lam = losses.Hinge(), 1e-5
    X, y = toy(loss)
    p, everything = problem(X, y, loss, lam), np.arange(len(y))
    near = run(p, Proximal(bound=10.0, output="average"), 5).model()[0][0]
    far = run(p, Pegasos(t0=0.0, output="average"), 5).model()[0][0]
    assert 100 * objective(loss, X, y, near, everything, lam) < objective(loss, X, y, far, everything, lam)


# ------------------------------------------------------------------------------------------- passive-aggressive steps


@pytest.mark.parametrize("loss", PASSIVE, ids=repr)
@pytest.mark.parametrize("variant", ["PA", "PA-I", "PA-II"])
@pytest.mark.parametrize("C", [0.05, 2.0])
def test_passive_aggressive_steps_are_their_definition(loss, variant, C):
    X, y = toy(loss)
    c, B = row_weights(len(y)), 0.7
    p = problem(X, y, loss, 0.1, weight=c, bias="feature", feature=B)
    order = [int(A[0]) for A in batches(len(y), 3)]
    W, _ = online.passive_aggressive(X, y, order, variant=variant, C=C, loss=oracle(loss), weight=c, B=B)
    for output, expected in (("auto", W[-1]), ("average", W[:-1].mean(axis=0))):
        engine = run(p, PassiveAggressive(C=C, variant=variant, output=output), 3, "feature")
        assert_allclose(weights_of(engine, B), expected, rtol=1e-9, atol=1e-10)


def test_several_classes_are_separate_runs():
    loss = losses.Hinge()
    X, y = toy(loss, classes=3)
    W = run(problem(X, y, loss, 0.1), PassiveAggressive(C=0.3), 2).model()[0]
    order = [int(A[0]) for A in batches(len(y), 2)]
    for k, w in enumerate(W):
        expected, _ = online.passive_aggressive(X, np.where(y == k, 1.0, -1.0), order, C=0.3)
        assert_allclose(w, expected[-1], **TIGHT)


def test_a_step_ends_the_loss_of_its_row_where_nothing_stops_it():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1, 4)), np.array([1.0])
    w = run(problem(X, y, losses.Hinge(), 0.1), PassiveAggressive(variant="PA"), 1).model()[0][0]
    assert X[0] @ w == pytest.approx(1.0, rel=1e-12)
    w = run(problem(X, y, losses.Hinge(), 0.1), PassiveAggressive(C=1e-3), 1).model()[0][0]
    assert_allclose(w, 1e-3 * X[0], rtol=1e-12)


def separable(m=200, seed=0):
    rng = np.random.default_rng(seed)
    X, u = rng.normal(size=(m, 5)), rng.normal(size=5)
    X = X[np.abs(X @ u) > 0.5]
    y = np.sign(X @ u)
    return X, y, u / (y * (X @ u)).min()


def test_the_loss_bound_of_the_separable_case():
    """Σ ℓ_t² ≤ R²‖u‖² for every u that separates with margin 1 (Theorem 2)."""
    X, y, u = separable()
    order = [int(A[0]) for A in batches(len(y), 20)]
    _, values = online.passive_aggressive(X, y, order, variant="PA")
    R2 = float((X**2).sum(axis=1).max())
    assert 0 < float(values @ values) <= R2 * float(u @ u)


@pytest.mark.parametrize("C", [0.01, 0.1, 1.0])
def test_the_bounds_of_the_other_case(C):
    """PA-I: mistakes ≤ max{R², 1/C}(‖u‖² + 2CΣℓ*). PA-II: Σℓ² ≤ (R² + 1/2C)(‖u‖² + 2CΣ(ℓ*)²). Theorems 4 and 5."""
    X, y, u = separable()
    y = np.where(np.random.default_rng(1).random(len(y)) < 0.1, -y, y)
    order = [int(A[0]) for A in batches(len(y), 2)]
    R2 = float((X**2).sum(axis=1).max())
    for scale in (0.1, 0.3, 1.0):
        v = scale * u
        best = np.maximum(0, 1 - y[order] * (X[order] @ v))
        _, first = online.passive_aggressive(X, y, order, variant="PA-I", C=C)
        assert 0 < np.sum(first >= 1) <= max(R2, 1 / C) * float(v @ v + 2 * C * best.sum())
        _, second = online.passive_aggressive(X, y, order, variant="PA-II", C=C)
        assert 0 < float(second @ second) <= (R2 + 1 / (2 * C)) * float(v @ v + 2 * C * best @ best)


def test_scikit_learn_makes_the_same_steps():
    linear_model = pytest.importorskip("sklearn.linear_model")
    X, y, _ = separable()
    order = _core.epoch_order(len(y), "fixed", 0, 0)
    try:
        theirs = linear_model.SGDClassifier(
            learning_rate="pa1", penalty=None, eta0=0.2, shuffle=False, fit_intercept=False, max_iter=3, tol=None
        ).fit(X[order], y[order])
    except ValueError:
        pytest.skip("this scikit-learn has no such steps in SGDClassifier")
    solver = PassiveAggressive(C=0.2, sampling="fixed")
    ours = run(problem(X, y, losses.Hinge(), 0.1), solver, 3).model()[0]
    assert_allclose(ours, theirs.coef_, rtol=1e-9)


# ------------------------------------------------------------------------------------------------------------ in a fit


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DualAveraging(gamma=-1.0), "DualAveraging: gamma=-1.0"),
        (lambda: DualAveraging(gamma=float("nan")), "DualAveraging: gamma=nan"),
        (lambda: Proximal(bound=0.0), "Proximal: bound=0.0"),
        (lambda: Proximal(bound="none"), "Proximal: bound='none'"),
        (lambda: PassiveAggressive(variant="PA-III"), "PassiveAggressive: variant='PA-III'"),
        (lambda: PassiveAggressive(output="random"), "PassiveAggressive: output='random'"),
        (lambda: PassiveAggressive(C=0.0), "PassiveAggressive: C=0.0"),
    ],
)
def test_parameters_are_checked(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_what_the_steps_are_not_for_is_refused():
    with pytest.raises(ValueError, match="cannot minimise loss 'log'"):
        LinearSVC(solver="passive_aggressive", loss="log", fit_intercept=False).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="cannot learn intercept='unregularized'"):
        LinearSVC(solver="passive_aggressive").fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="variant='PA-II' is not offered for sequences"):
        SequenceSVC(solver=PassiveAggressive(variant="PA-II")).fit([["a", "b"]], [["A", "B"]])
    with pytest.raises(ValueError, match="sampling='chunked'"):
        SequenceSVC(solver=PassiveAggressive(sampling="chunked")).fit([["a", "b"]], [["A", "B"]])


def test_regression_by_name():
    X = np.linspace(-1, 1, 60)[:, None]
    y = 2 * X[:, 0] + 0.3
    model = LinearSVR(solver="passive_aggressive", intercept="feature", epsilon=0.05, max_iter=30, tol=0.999, lam=1e-3)
    model.fit(X, y)
    assert np.abs(model.predict(X) - y).max() < 0.06
    assert model.certificate_.dual <= model.certificate_.primal


@pytest.mark.parametrize("solver", [Proximal(), DualAveraging(gamma=0.2), PassiveAggressive()], ids=lambda s: s.name)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_warm_start_goes_on_with_the_steps(solver):
    X, y, _ = separable()
    settings = {"solver": solver, "intercept": "feature", "lam": 0.01, "tol": 0.0}
    whole = LinearSVC(max_iter=6, **settings).fit(X, y)
    halves = LinearSVC(max_iter=3, warm_start=True, **settings).fit(X, y)
    assert not (halves.coef_ == whole.coef_).all()
    np.testing.assert_array_equal(halves.set_params(max_iter=6).fit(X, y).coef_, whole.coef_)


@pytest.mark.parametrize("output", ["auto", "average"])
@pytest.mark.parametrize("variant", ["PA", "PA-I", "PA-II"])
def test_a_stream_of_pieces(variant, output):
    X, y, _ = separable()
    solver = PassiveAggressive(C=0.3, variant=variant, sampling="fixed", output=output)
    model = LinearSVC(solver=solver, fit_intercept=False, lam=0.1, random_state=0)
    for first in range(0, 90, 30):
        model.partial_fit(X[first : first + 30], y[first : first + 30], classes=[-1, 1])
    order = np.concatenate([_core.epoch_order(30, "fixed", first, 0) + first for first in range(0, 90, 30)])
    W, _ = online.passive_aggressive(X, y, order, variant=variant, C=0.3)
    assert_allclose(model.coef_[0], W[-1] if output == "auto" else W[:-1].mean(axis=0), rtol=1e-9)
    assert not model.certificate_.converged
