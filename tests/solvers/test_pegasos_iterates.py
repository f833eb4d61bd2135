"""The iterates of Pegasos, NORMA and SGD against the printed recursions, their averages, and exact resumption."""

from __future__ import annotations

import numpy as np
import oracles as o
import pytest
from batch_oracles import batches
from conftest import CASES, JOINT, MARGIN, SCALAR, advance, kind_of, oracle, problem, standard, toy
from numpy.testing import assert_allclose

from pegasos import _core, losses
from pegasos.fit.engine import Options
from pegasos.problems.base import Point
from pegasos.problems.linear import Weights
from pegasos.solvers import (
    LBFGS,
    SDCA,
    SGD,
    SOLVERS,
    CuttingPlane,
    DualAveraging,
    InteriorPoint,
    Norma,
    PassiveAggressive,
    Pegasos,
    Proximal,
    SmoothedNewton,
)

SAMPLINGS = ("iid", "fixed", "permutation", "streams", "subset")
TIGHT = {"rtol": 1e-12, "atol": 1e-12}

every = pytest.mark.parametrize("loss", CASES, ids=repr)
samplings = pytest.mark.parametrize("sampling", SAMPLINGS)


def safe_t0(loss):
    """Losses with unbounded slopes explode from t0 = 0; the recursion is compared where numbers stay sane."""
    return 60.0 if loss.name.startswith("squared") else 0.0


def weights_of(engine, B=None):
    """The weights, with the constant feature's weight appended."""
    W, b = engine.model()
    W = W if B is None else np.column_stack([W, b / B])
    return W if len(W) > 1 else W[0]


def run(p, solver, epochs, *, intercept="none", seed=0):
    return advance(solver.engine(p, Options(intercept, seed)), epochs)


def row_weights(m, seed=0):
    c = np.random.default_rng(seed).uniform(0.2, 3, m)
    c[:3] = 0.0
    return c


# --------------------------------------------------------------------------------------------------------- iterates


@every
@samplings
def test_textbook_iterates(loss, sampling):
    X, y = toy(loss)
    t0 = safe_t0(loss)
    engine = run(problem(X, y, loss, 0.1), Pegasos(t0=t0, sampling=sampling), 3, seed=5)
    order = batches(len(y), 3, sampling=sampling, seed=5)
    expected = o.pegasos(X, y, order, lam=0.1, loss=oracle(loss), t0=t0)[-1]
    assert_allclose(weights_of(engine), expected, **TIGHT)


@every
@pytest.mark.parametrize("k", [1, 8, 7, 40])
@pytest.mark.parametrize("projection", [False, True])
def test_batches_projection_weights_and_constant_feature(loss, k, projection):
    """All at once; 7 does not divide the 40 rows: a batch then begins in one epoch and ends in the next."""
    X, y = toy(loss)
    c, t0, B = row_weights(len(y)), safe_t0(loss), 0.7
    p = problem(X, y, loss, 0.03, weight=c, bias="feature", feature=B)
    engine = run(p, Pegasos(batch_size=k, projection=projection, t0=t0), 3, intercept="feature")
    expected = o.pegasos(
        X, y, batches(len(y), 3, k=k), lam=0.03, loss=oracle(loss), weight=c, t0=t0, projection=projection, B=B
    )[-1]
    assert_allclose(weights_of(engine, B), expected, **TIGHT)


def test_projection_matters_here():
    X, y = toy(losses.Hinge())
    plain, projected = (
        o.pegasos(X, y, batches(len(y), 1), lam=0.03, loss="hinge", projection=flag) for flag in (False, True)
    )
    assert np.linalg.norm(projected, axis=1).max() <= 1 / np.sqrt(0.03) + 1e-9
    assert np.abs(plain - projected).max() > 0.1


@every
@pytest.mark.parametrize("k", [1, 7])
def test_partial_epochs(loss, k):
    X, y = toy(loss)
    p, t0 = problem(X, y, loss, 0.1), safe_t0(loss)
    solver = Pegasos(t0=t0, batch_size=k).engine(p, Options("none", 0)).lanes.solvers[0]
    expected = o.pegasos(X, y, batches(len(y), 2, k=k), lam=0.1, loss=oracle(loss), t0=t0)
    for t in range(1, len(expected)):
        solver.advance(1)
        W = solver.weights()[0]
        assert_allclose(W if len(W) > 1 else W[0], expected[t], **TIGHT)


def test_advance_never_passes_the_end_of_an_epoch():
    X, y = toy(losses.Hinge())
    solver = Pegasos(batch_size=7).engine(problem(X, y, losses.Hinge(), 0.1), Options("none", 0)).lanes.solvers[0]
    solver.advance(10**6)
    assert solver.epochs == 1.0
    assert solver.epoch_ended
    solver.advance(1)
    assert solver.epochs == 49 / 40  # the sixth batch ran two rows into the second epoch
    assert not solver.epoch_ended


@pytest.mark.parametrize("loss", SCALAR, ids=repr)
def test_norma_and_sgd(loss):
    X, y = toy(loss)
    p, order = problem(X, y, loss, 0.1), [int(b[0]) for b in batches(len(y), 3)]
    eta = 0.05
    expected = o.sgd(X, y, order, lam=0.1, eta=eta, loss=oracle(loss))[-1]
    assert_allclose(weights_of(run(p, SGD(eta=eta), 3)), expected, **TIGHT)
    if loss.name.startswith("squared") or loss.name == "huber":
        return  # the first steps of NORMA, 1/λ long, are not for these
    expected = o.norma(X, y, order, lam=0.1, p=0.5, loss=oracle(loss))[-1]
    assert_allclose(weights_of(run(p, Norma(p=0.5), 3)), expected, **TIGHT)


@pytest.mark.parametrize("loss", JOINT, ids=repr)
def test_norma_and_sgd_joint(loss):
    X, y = toy(loss)
    p, order = problem(X, y, loss, 0.1), [int(b[0]) for b in batches(len(y), 2)]
    for solver, expected in (
        (SGD(eta=0.05), o.sgd(X, y, order, lam=0.1, eta=0.05, loss=oracle(loss))),
        (Norma(p=0.5), o.norma(X, y, order, lam=0.1, p=0.5, loss=oracle(loss))),
    ):
        assert_allclose(weights_of(run(p, solver, 2)), expected[-1], **TIGHT)


def test_folding_a_vanishing_scale_changes_nothing():
    """(1 − ηλ)^t passes 1e-9 many times here."""
    X, y = toy(losses.Hinge())
    p, order = problem(X, y, losses.Hinge(), 0.5), [int(b[0]) for b in batches(len(y), 8)]
    W = o.sgd(X, y, order, lam=0.5, eta=1.0, loss="hinge")
    assert_allclose(weights_of(run(p, SGD(eta=1.0), 8)), W[-1], **TIGHT)
    # What the lazy average subtracts is up to 1e9 times what is left.
    assert_allclose(weights_of(run(p, SGD(eta=1.0, output="average"), 8)), W[:-1].mean(0), rtol=1e-6, atol=1e-7)
    assert_allclose(p.dual_weights(run(p, SGD(eta=1.0), 8).duals())[0], W[-1], rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("loss", MARGIN, ids=repr)
@pytest.mark.parametrize("solver", [Pegasos(), Norma(p=0.3), SGD(), SDCA()], ids=lambda s: s.name)
def test_flipped_labels_flip_the_weights(loss, solver):
    X, y = toy(loss)
    W, b = (run(problem(X, t, loss, 0.1, bias="feature"), solver, 3, intercept="feature").model() for t in (y, -y))
    assert (W[0] == -b[0]).all()
    assert (W[1] == -b[1]).all()


def test_weight_two_is_the_row_twice_in_the_objective():
    """In the objective, not in the trajectory."""
    for loss in SCALAR:
        X, y = toy(loss)
        c = np.ones(len(y))
        c[:5] = 2.0
        double = problem(np.vstack([X, X[:5]]), np.concatenate([y, y[:5]]), loss, 0.1)
        weighted = problem(X, y, loss, 0.1, weight=c)
        W, b = np.full((1, 4), 0.3), np.array([0.1])
        assert_allclose(
            weighted.certify(Point(Weights(W, b))).primal, double.certify(Point(Weights(W, b))).primal, rtol=1e-13
        )


@pytest.mark.parametrize("classes", [3, 8, 11])
@pytest.mark.parametrize("loss", MARGIN[:4], ids=repr)
def test_lanes_equal_separate_runs(loss, classes):
    """One-vs-rest side by side is so many binary runs; 8 classes fill a group, 11 make two."""
    X, y = toy(loss, 60, 5, classes=classes)
    c = row_weights(60)
    for solver, epochs in (
        (Pegasos(batch_size=7, projection=True), 3),
        (Pegasos(output="average"), 2),
        (Norma(p=0.3), 2),
        (SDCA(shrinking=False, precision="double"), 3),
    ):
        p = problem(X, y, loss, 0.05, weight=c, bias="feature")
        engine = run(p, solver, epochs, intercept="feature", seed=3)
        W, b = engine.model()
        u = engine.duals()
        for k in range(classes):
            single = problem(X, np.where(y == k, 1.0, -1.0), loss, 0.05, weight=c, bias="feature")
            alone = run(single, solver, epochs, intercept="feature", seed=3)
            assert_allclose(W[k], alone.model()[0][0], **TIGHT)
            assert_allclose(b[k], alone.model()[1][0], **TIGHT)
            assert_allclose(u[:, k], alone.duals()[:, 0], **TIGHT)


# ---------------------------------------------------------------------------------------------------------- outputs


@every
@pytest.mark.parametrize("k", [1, 7])
@pytest.mark.parametrize("projection", [False, True])
def test_averages_are_explicit_averages(loss, k, projection):
    X, y = toy(loss)
    p, t0, E = problem(X, y, loss, 0.03), safe_t0(loss), 5
    W = o.pegasos(X, y, batches(40, E, k=k), lam=0.03, loss=oracle(loss), t0=t0, projection=projection)
    steps = len(W) // E
    common = {"batch_size": k, "projection": projection, "t0": t0}
    close = {"rtol": 1e-10, "atol": 1e-10}
    assert_allclose(weights_of(run(p, Pegasos(output="average", **common), E)), W[:-1].mean(0), **close)
    # After five epochs the suffix begins behind the second.
    assert_allclose(weights_of(run(p, Pegasos(output="suffix", **common), E)), W[2 * steps : -1].mean(0), **close)


def test_average_in_the_middle_of_an_epoch():
    X, y = toy(losses.Hinge())
    W = o.pegasos(X, y, batches(40, 2), lam=0.1, loss="hinge")
    solver = (
        Pegasos(t0=0.0, output="average")
        .engine(problem(X, y, losses.Hinge(), 0.1), Options("none", 0))
        .lanes.solvers[0]
    )
    solver.advance(40)
    solver.advance(13)
    assert_allclose(solver.weights()[0][0], W[:53].mean(0), **TIGHT)


@pytest.mark.parametrize("epochs", [1, 2, 3, 4, 6, 8, 9])
def test_suffix_is_the_last_half_to_three_quarters(epochs):
    X, y = toy(losses.Hinge())
    W = o.pegasos(X, y, batches(40, epochs), lam=0.1, loss="hinge")
    got = weights_of(run(problem(X, y, losses.Hinge(), 0.1), Pegasos(t0=0.0, output="suffix"), epochs))
    fits = [s for s in range(epochs) if np.allclose(got, W[40 * s : -1].mean(0), rtol=1e-10, atol=1e-10)]
    assert len(fits) == 1
    assert 0.5 <= 1 - fits[0] / epochs <= (1.0 if epochs == 1 else 0.75)


def test_average_of_a_subgradient_bias():
    """The average is of the pairs (w, b)."""
    X, y = toy(losses.Hinge())
    p = problem(X, y, losses.Hinge(), 0.1, bias="free")
    last = Pegasos().engine(p, Options("subgradient", 0)).lanes.solvers[0]
    pairs = []
    for _ in range(40):
        pairs.append([a.copy() for a in last.weights()])
        last.advance(1)
    W, b = run(p, Pegasos(output="average"), 1, intercept="subgradient").model()
    assert_allclose(W, np.mean([w for w, _ in pairs], axis=0), **TIGHT)
    assert_allclose(b, np.mean([v for _, v in pairs], axis=0), **TIGHT)


def drawn(which, seed, T=12):
    """Which of w_1 … w_T was drawn."""
    X, y = toy(losses.Log(), T)
    W = o.pegasos(X, y, batches(T, 1, seed=seed), lam=0.1, loss="log")
    solver = (
        Pegasos(t0=0.0, output="random")
        .engine(problem(X, y, losses.Log(), 0.1), Options("none", seed))
        .lanes.solvers[0]
    )
    solver.advance(T)
    solver.select(which)
    distance = np.abs(W[:T] - solver.weights()[0][0]).max(1)
    assert distance.min() < 1e-12
    return int(distance.argmin())


def test_random_iterates_are_iterates_and_uniform():
    """χ² over 12 cells and 600 runs, at the 1e-4 quantile; the two draws of a run are independent."""
    T, runs = 12, 600
    first, second = (np.array([drawn(w, s, T) for s in range(runs)]) for w in ("first_random", "second_random"))
    for draws in (first, second):
        counts = np.bincount(draws, minlength=T)
        assert ((counts - runs / T) ** 2 / (runs / T)).sum() < 37.4
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.16


def test_random_output_is_the_better_of_two():
    p, _ = standard(losses.Hinge(), "none")
    engine = run(p, Pegasos(output="random"), 3, seed=4)
    W, b = engine.model()
    values = []
    for which in ("first_random", "second_random"):
        engine.lanes.solvers[0].select(which)
        values.append(p.certify(Point(Weights(*engine.lanes.weights()))).primal[0])
    assert p.certify(Point(Weights(W, b))).primal[0] == min(values)


# ------------------------------------------------------------------------------- the dual point and the exact identity


@every
@pytest.mark.parametrize("projection", [False, True])
def test_dual_point_reproduces_the_weights(loss, projection):
    """After one epoch from t0 = 0 the window is the whole history, and w = w(u)."""
    X, y = toy(loss)
    c = row_weights(40)
    p = problem(X, y, loss, 0.03, weight=c)
    engine = run(p, Pegasos(t0=0.0, projection=projection, batch_size=8), 1)
    assert_allclose(p.dual_weights(engine.duals()), engine.model()[0], rtol=1e-10, atol=1e-10)


@every
def test_window_is_a_difference_of_histories(loss):
    """After E epochs u is the mean slope of the epochs behind the window's start."""
    X, y = toy(loss)
    p, t0 = problem(X, y, loss, 0.05), safe_t0(loss)
    ref, order = oracle(loss), batches(40, 6)
    W = o.pegasos(X, y, order, lam=0.05, loss=ref, t0=t0)
    total = np.zeros((40, *np.shape(W[0])[:-1]))
    for A, w in zip(order[80:], W[80:-1], strict=True):  # behind epoch 2
        total[A] += ref.slope(X[A] @ w.T, y[A])
    u = run(p, Pegasos(t0=t0), 6).duals()
    assert_allclose(u, (total / 4).reshape(u.shape), rtol=1e-11, atol=1e-11)


@every
@samplings
def test_exact_identity(loss, sampling):
    """S/T − (λ/2)‖w‖² = mean f_s(w_s) − (1/2λT) Σ ‖∇_s‖²/s with w_s, u and w as the engine has them (t0 = 0)."""
    X, y = toy(loss, 30)
    lam, T, m = 0.5, 30, 30
    p, ref = problem(X, y, loss, lam), oracle(loss)
    solver = Pegasos(t0=0.0, sampling=sampling).engine(p, Options("none", 2)).lanes.solvers[0]
    order = [int(b[0]) for b in batches(m, 1, sampling=sampling, seed=2)]
    S = right = 0.0
    for s, i in enumerate(order, start=1):
        W = solver.weights()[0]
        w = W if p.outputs > 1 else W[0]
        z = X[[i]] @ w.T
        before = solver.state()["U"]
        solver.advance(1)
        g = (solver.state()["U"] - before).reshape(m, -1)[i, : p.outputs]  # the slope the engine added
        value = float(ref.value(z, y[[i]])[0])
        S += value + float(np.sum(g * z))
        grad = lam * W - np.outer(g, X[i])
        right += lam / 2 * (W**2).sum() + value - (grad**2).sum() / (2 * lam * s)
    left = S / T - lam / 2 * (solver.weights()[0] ** 2).sum()
    assert_allclose(left, right / T, rtol=1e-9)
    both = o.regret_identity(X, y, order, lam=lam, loss=ref)
    assert_allclose(left, both, rtol=1e-9)


# ------------------------------------------------------------------------------------------------ seeds and resumption


def engines():
    """(name, solver, loss, intercept, classes): every engine and the forms in which it runs."""
    hinge, log, cs = losses.Hinge(), losses.Log(), losses.CrammerSinger()
    yield from (
        (f"pegasos-{name}", Pegasos(**options), hinge, "none", None)
        for name, options in {
            "plain": {},
            "batch": {"batch_size": 7},
            "iid": {"sampling": "iid"},
            "fixed": {"sampling": "fixed"},
            "projection": {"projection": True, "t0": 0.0},
            "average": {"output": "average", "projection": True, "t0": 0.0},
            "suffix": {"output": "suffix"},
            "random": {"output": "random"},
        }.items()
    )
    yield "pegasos-subgradient", Pegasos(output="average"), hinge, "subgradient", None
    yield "pegasos-batch-bias", Pegasos(batch_size=8), hinge, "batch", None
    yield "pegasos-feature", Pegasos(), log, "feature", None
    yield "pegasos-lanes", Pegasos(), hinge, "unregularized", 11
    yield "pegasos-joint", Pegasos(), cs, "none", 3
    yield "norma", Norma(p=0.3), hinge, "none", None
    yield "sgd", SGD(eta=1.0), hinge, "none", None
    yield "proximal", Proximal(output="average"), hinge, "none", None
    yield "proximal-lanes", Proximal(batch_size=7), hinge, "feature", 11
    yield "proximal-joint", Proximal(), cs, "none", 3
    yield "dual-averaging", DualAveraging(gamma=0.3, projection=True, output="suffix"), hinge, "none", None
    yield "passive-aggressive", PassiveAggressive(C=0.3), hinge, "none", None
    yield "passive-aggressive-joint", PassiveAggressive(variant="PA-II", output="average"), cs, "feature", 3
    yield "sdca", SDCA(), hinge, "none", None
    yield "sdca-free", SDCA(), hinge, "unregularized", None
    yield "sdca-iid", SDCA(sampling="iid"), log, "feature", None
    yield "sdca-blocks", SDCA(blocks=4), hinge, "unregularized", None
    yield "sdca-lanes", SDCA(), hinge, "unregularized", 11
    yield "sdca-joint", SDCA(), cs, "unregularized", 3
    yield "search", SDCA(), hinge, "search", None
    yield "search-lanes", SDCA(), hinge, "search", 3
    yield "search-pegasos", Pegasos(t0=0), hinge, "search", None
    yield "search-pegasos-lanes", Pegasos(), hinge, "search", 3
    yield "interior-point", InteriorPoint(), hinge, "unregularized", None
    yield "interior-point-lanes", InteriorPoint(), hinge, "feature", 3
    yield "smoothed-newton", SmoothedNewton(), hinge, "unregularized", None
    yield "smoothed-newton-lanes", SmoothedNewton(), hinge, "feature", 3
    yield "newton", InteriorPoint(), log, "unregularized", None
    yield "newton-joint", InteriorPoint(), losses.Multinomial(), "unregularized", 3
    yield "lbfgs", LBFGS(), log, "unregularized", None
    yield "lbfgs-lanes", LBFGS(), losses.SquaredHinge(), "feature", 3
    yield "cutting-plane", CuttingPlane(max_planes=5), hinge, "unregularized", None
    yield "cutting-plane-lanes", CuttingPlane(), hinge, "feature", 3


ENGINES = {name: rest for name, *rest in engines()}
every_engine = pytest.mark.parametrize("name", ENGINES)


def fresh(name, seed=7):
    solver, loss, intercept, classes = ENGINES[name]
    X, y = toy(loss, 50, 5, classes=classes)
    p = problem(X, y, loss, 0.02, bias=kind_of(intercept))
    solver.check(p, intercept)
    return p, solver.engine(p, Options(intercept, seed))


def small_steps(engine, count):
    """So many pieces of work, a few rows each where the engine goes by rows."""
    for _ in range(count):
        lanes = getattr(getattr(engine, "inner", engine), "lanes", None)
        if lanes is not None:
            lanes.rows_a_call = 13
        engine.advance()


def turns(p, engine, count):
    """What the fitting loop does, so many times."""
    for _ in range(count):
        small_steps(engine, 1)
        if engine.due(1e-12) and engine.stuck is None:
            engine.learn(p.certify(engine.point()))


def same(one, other):
    for a, b in zip((*one.model(), one.duals()), (*other.model(), other.duals()), strict=True):
        assert (a is None and b is None) or np.array_equal(a, b)
    assert one.epochs == other.epochs


def test_every_solver_is_resumed():
    assert {solver.name for solver, *_ in ENGINES.values()} | {"auto"} == set(SOLVERS)


@every_engine
def test_same_seed_same_bits(name):
    one, other = fresh(name)[1], fresh(name)[1]
    small_steps(one, 9)
    small_steps(other, 9)
    same(one, other)


@every_engine
@pytest.mark.parametrize("before", [2, 5, 8])
def test_resumed_is_straight(name, before):
    """Pieces of 13 of 50 rows: most stops are in the middle of an epoch."""
    straight, first, second = (fresh(name)[1] for _ in range(3))
    small_steps(straight, before + 11)
    small_steps(first, before)
    state = {key: value.copy() for key, value in first.state().items()}
    small_steps(first, 3)  # the state is a copy: going on does not change it
    second.restore(state)
    small_steps(second, 11)
    same(straight, second)


@every_engine
def test_resumed_is_straight_in_the_loop(name):
    """With certificates on the way, which make some engines change course."""
    (p, straight), (_, first), (_, second) = (fresh(name) for _ in range(3))
    turns(p, straight, 60)
    turns(p, first, 27)
    second.restore(first.state())
    turns(p, second, 33)
    same(straight, second)


@every_engine
def test_states_are_arrays_of_numbers(name):
    engine = fresh(name)[1]
    small_steps(engine, 3)
    for value in engine.state().values():
        assert isinstance(value, np.ndarray)
        assert value.dtype.kind in "fi"


def test_restore_refuses_foreign_states():
    solver = fresh("pegasos-plain")[1].lanes.solvers[0]
    state = solver.state()
    with pytest.raises(ValueError, match="'v'"):
        solver.restore({k: v for k, v in state.items() if k != "v"})
    with pytest.raises(ValueError, match="'v'"):
        solver.restore(state | {"v": np.zeros(3)})


# ------------------------------------------------------------------------------------------------------------- orders


@pytest.mark.parametrize("m", [1, 2, 40, 5000])
def test_orders(m):
    everyone = np.arange(m)
    for epoch in range(3):
        assert np.array_equal(np.sort(_core.epoch_order(m, "permutation", 9, epoch)), everyone)
        assert np.array_equal(_core.epoch_order(m, "fixed", 9, epoch), _core.epoch_order(m, "fixed", 9, 0))
        assert np.array_equal(np.sort(_core.epoch_order(m, "fixed", 9, epoch)), everyone)
        drawn = _core.epoch_order(m, "iid", 9, epoch)
        assert drawn.shape == (m,)
        assert drawn.min() >= 0
        assert drawn.max() < m
    if m >= 40:
        assert not np.array_equal(_core.epoch_order(m, "permutation", 9, 0), _core.epoch_order(m, "permutation", 9, 1))
        assert not np.array_equal(_core.epoch_order(m, "permutation", 9, 0), _core.epoch_order(m, "permutation", 8, 0))
        assert len(np.unique(_core.epoch_order(m, "iid", 9, 0))) < m


def test_the_generator_is_pinned():
    """The same seed gives the same order on every platform, for ever."""
    assert _core.epoch_order(8, "permutation", 0, 0).tolist() == [5, 7, 0, 3, 2, 4, 6, 1]
    assert _core.epoch_order(8, "iid", 1, 2).tolist() == [4, 1, 4, 2, 6, 4, 0, 2]


@pytest.mark.parametrize("m", [1000, 8192, 70_000])
def test_neighbours_in_a_file_are_no_neighbours_in_an_epoch(m):
    """The distance in time of rows that lie together is that of any two rows: m/3 on average."""
    order = np.asarray(_core.epoch_order(m, "permutation", 9, 0))
    when = np.empty(m)
    when[order] = np.arange(m)
    for apart in (1, 8, 32):
        assert abs(np.abs(when[apart:] - when[:-apart]).mean() / m - 1 / 3) < 4 / np.sqrt(m)


def grouped(kind, m, rng):
    """Rows and ±1 targets, and the order in which a file would hold them."""
    y = rng.choice([-1.0, 1.0], m)
    if kind == "class":
        return rng.normal(size=(m, 6)) + 0.7 * y[:, None] + 2.0, y, np.argsort(y, kind="stable")
    if kind == "time":  # the border turns
        angle = np.linspace(0, np.pi, m)
        X = rng.normal(size=(m, 2))
        return X, np.sign(np.cos(angle) * X[:, 0] + np.sin(angle) * X[:, 1] + 1e-9), np.arange(m)
    # Groups, be they clusters or documents of a few paragraphs, with as many rows of either class in each.
    group = rng.integers(0, 64 if kind == "cluster" else m // 16, m)
    centres, differences = 2 * rng.normal(size=(2, group.max() + 1, 64))
    X = centres[group] + 0.3 * y[:, None] * differences[group] + 0.2 * rng.normal(size=(m, 64))
    return X, y, np.argsort(group, kind="stable")


@pytest.mark.parametrize("kind", ["class", "cluster", "document", "time"])
@pytest.mark.parametrize("solver", [Pegasos(), SDCA(), SDCA(blocks=16), Pegasos(sampling="chunked")])
def test_no_order_of_a_file_costs_progress(kind, solver):
    """An epoch over rows that lie in groups comes as near the optimum as one over shuffled rows, up to chance."""
    m = 8192
    rng = np.random.default_rng(0)
    X, y, in_groups = grouped(kind, m, rng)
    found = []
    for rows in (rng.permutation(m), in_groups):
        p = problem(X[rows], y[rows], losses.Hinge(), 1e-2)
        values = []
        for seed in range(8):
            engine = run(p, solver, 1, seed=seed)
            values.append(p.certify(Point(Weights(*engine.model()))).primal[0])
        found.append(values)
    optimum = p.certify(Point(Weights(*run(p, SDCA(), 60).model()))).primal[0]
    shuffled, as_filed = np.array(found) - optimum
    chance = (np.std(shuffled) + np.std(as_filed)) / np.sqrt(8)
    assert as_filed.mean() < 1.05 * shuffled.mean() + 2.5 * chance


def test_many_short_rows_in_clusters_cost_no_progress():
    """Neighbours are fetched together here, and still are mixed with rows from all over the file."""
    m, rng = 600_000, np.random.default_rng(0)
    y, cluster = rng.choice([-1.0, 1.0], m), np.arange(m) // 10_000
    centres, differences = 2 * rng.normal(size=(2, 60, 8))
    X = centres[cluster] + 0.3 * y[:, None] * differences[cluster] + 0.2 * rng.normal(size=(m, 8))
    X = X.astype(np.float32)
    mixed, found = rng.permutation(m), []
    for rows in (mixed, np.arange(m)):
        p = problem(X[rows], y[rows], losses.Hinge(), 1e-4)
        found.append(
            [p.certify(Point(Weights(*run(p, Pegasos(), 1, seed=seed).model()))).primal[0] for seed in range(4)]
        )
    optimum = p.certify(Point(Weights(*run(p, SDCA(), 15).model()))).primal[0]
    assert np.mean(found[1]) - optimum < 3 * (np.mean(found[0]) - optimum)  # it was eleven times as much


@pytest.mark.parametrize(
    ("m", "columns", "chunk"), [(300_000, 16, 16), (120_000, 39, 6), (110_000, 40, 1), (20_000, 16, 1)]
)
def test_neighbours_are_fetched_together_where_rows_are_short_and_many(m, columns, chunk):
    """The order of the core's solver, from the iterates: after one step of Pegasos only the first row has moved."""
    X = np.ones((m, columns), dtype=np.float32)
    engine = Pegasos().engine(problem(X, np.ones(m), losses.Hinge(), 1.0), Options("none", 7))
    solver = engine.lanes.solvers[0]
    solver.advance(1)
    moved = np.flatnonzero(solver.state()["U"])
    assert moved.tolist() == [_core.epoch_order(m, "streams", 7, 0, chunk)[0]]


@pytest.mark.parametrize("m", [5000, 70_000])
def test_a_file_sorted_by_class_is_learnt_as_well_as_a_mixed_one(m):
    """After three epochs of Pegasos: the window certificate."""
    rng = np.random.default_rng(0)
    y = rng.choice([-1.0, 1.0], m)
    X = (rng.normal(size=(m, 6)) + 0.7 * y[:, None] + 2.0).astype(np.float32)
    gaps = []
    for order in (np.arange(m), np.argsort(y, kind="stable")):
        p = problem(X[order], y[order], losses.Hinge(), 1e-3)
        engine = run(p, Pegasos(), 3)
        bounds = p.certify(engine.point())
        gaps.append(bounds.gap[0] / bounds.primal[0])
    assert gaps[1] < 2 * gaps[0]
