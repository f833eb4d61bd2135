"""Solvers of structured machines, against enumeration of all labellings, the textbook's recursion and the core's."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import structured_oracles as so
from conftest import COST, advance
from conftest import problem as linear_problem

from pegasos import BlockFrankWolfe, CuttingPlane, Pegasos, _core
from pegasos.fit import loop
from pegasos.fit.engine import Options
from pegasos.losses import CrammerSinger
from pegasos.problems.base import Point
from pegasos.problems.oracle import CheckedOracle, Plane
from pegasos.problems.planes import Planes
from pegasos.problems.structured import OracleProblem
from pegasos.solvers import METHODS, TABLES, resolve
from pegasos.solvers.structured.base import OracleSolver
from pegasos.solvers.structured import auto, window
from pegasos.solvers.structured.block import Block
from pegasos.solvers.structured.window import Counted, Window, merged
from pegasos.util.random import uniform

LAM = 0.05

FORMS = {
    "auto": "auto",
    "pegasos": Pegasos(),
    "pegasos as published": Pegasos(t0=0, sampling="iid"),
    "pegasos batches": Pegasos(batch_size=3, output="average"),
    "pegasos suffix": Pegasos(output="suffix", sampling="fixed"),
    "pegasos random": Pegasos(output="random"),
    "pegasos projection": Pegasos(projection=True, t0=0),
    "block_frank_wolfe": BlockFrankWolfe(),
    "block_frank_wolfe plain": BlockFrankWolfe(cached_passes=0, unused_passes=1),
    "block_frank_wolfe batches": BlockFrankWolfe(batch_size=3, cached_passes=2),
    "cutting_plane": CuttingPlane(),
    "cutting_plane few": CuttingPlane(max_planes=6),
}

#: Those that reach small gaps.
FAST = ["auto", "block_frank_wolfe", "block_frank_wolfe plain", "block_frank_wolfe batches", "cutting_plane"]


@cache
def oracle(seed=0, rows=8, **how):
    return so.Tags(**how).bind(*so.toy(rows=rows, seed=seed))


@cache
def weights(seed=0, rows=8):
    found = np.random.default_rng(seed).uniform(0.2, 2, rows)
    found[3] = 0.0
    return found


@cache
def star(seed, weighted, lam):
    return so.optimum(oracle(seed).planes, lam, weights(seed) if weighted else None)


def problem(bound=None, weight=None, lam=LAM):
    return OracleProblem(CheckedOracle(oracle() if bound is None else bound), lam, weight)


def engine(form, p=None, *, seed=0, tol=1e-3):
    return resolve(FORMS.get(form, form), "oracle").engine(problem() if p is None else p, Options("none", seed, tol))


def solve(form, p, *, tol=1e-3, max_iter=300, seed=0):
    return loop.run(p, engine(form, p, seed=seed, tol=tol), loop.Limits(tol, max_iter), loop.Watch())


# --- all of them -----------------------------------------------------------------------------------------------------


def test_every_solver_is_here():
    assert {resolve(form, "oracle").name for form in FORMS.values()} == {"auto", *TABLES["oracle"]}
    assert all(isinstance(resolve(form, "oracle"), OracleSolver) for form in FORMS.values())
    assert {name for name, _ in [(cls.name, k) for cls, k in METHODS if k == "oracle"]} == set(TABLES["oracle"])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("limits", [{"tol": 1e-9, "max_iter": 3}, {"tol": 1e-2, "max_iter": 60}], ids=["short", "long"])
@pytest.mark.parametrize("form", FORMS)
def test_bounds_enclose_the_optimum(form, limits, weighted):
    for seed, lam in ((0, LAM), (1, 0.5), (2, 0.005)):
        weight = weights(seed) if weighted else None
        bound = oracle(seed)
        c = solve(form, problem(bound, weight, lam), **limits)
        best, P = star(seed, weighted, lam), so.objective(bound.planes, c.model, lam, weight)
        assert c.certificate.primal == pytest.approx(P, rel=1e-12)
        assert c.certificate.dual <= best * (1 + 1e-9)
        assert best * (1 - 1e-9) <= P
        assert c.certificate.converged == (c.certificate.gap <= limits["tol"] * P)
        if form in FAST and limits["max_iter"] > 3:
            assert c.certificate.converged


@pytest.mark.parametrize("form", FAST)
def test_the_optimum_is_reached(form):
    for seed in range(3):
        c = solve(form, problem(oracle(seed), lam=0.1), tol=1e-7, max_iter=3000).certificate
        assert c.converged, c
        assert c.primal == pytest.approx(star(seed, False, 0.1), rel=2e-7)


@pytest.mark.parametrize("form", FORMS)
def test_a_row_of_weight_two_is_two_rows(form):
    X, y = so.toy(rows=6)
    twice = so.Tags().bind([*X, X[2]], [*y, y[2]])
    weight = np.ones(6)
    weight[2] = 2.0
    star = so.optimum(twice.planes, LAM)
    for p in (problem(twice), problem(so.Tags().bind(X, y), weight)):
        c = solve(form, p, tol=1e-6 if form in FAST else 5e-2, max_iter=300).certificate
        assert c.dual <= star * (1 + 1e-9) <= c.primal * (1 + 2e-9)
        assert c.converged or form not in FAST


@pytest.mark.parametrize("form", FORMS)
def test_the_same_seed_gives_the_same_bits(form):
    one, two, other = (solve(form, problem(), seed=seed, tol=1e-9, max_iter=5) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.model, two.model)
    assert one.certificate.dual == two.certificate.dual
    if "cutting" not in form:  # those have no order
        assert not np.array_equal(one.model, other.model)


@pytest.mark.parametrize("form", FORMS)
def test_layouts_do_not_matter(form):
    csr, dense = (solve(form, problem(oracle(layout=layout)), tol=1e-9, max_iter=4) for layout in ("csr", "dense"))
    np.testing.assert_array_equal(csr.model, dense.model)


def same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


@pytest.mark.parametrize("form", FORMS)
def test_a_resumed_engine_goes_on_to_the_same_bits(form):
    """A new engine after every piece of work, as if every piece were a life of its own."""
    p = problem(oracle(first=1.7), weights())
    p.at_zero()
    straight, resumed = engine(form, p), engine(form, p)
    for k in range(60):
        for each in (straight, resumed):
            each.advance()
            if each.due(0.5):
                each.learn(p.certify(each.point()))
        state = {name: np.array(array) for name, array in resumed.state().items()}
        assert all(array.dtype == np.float64 for array in state.values())
        resumed = engine(form, p)
        resumed.restore(state)
        same(resumed.state(), straight.state())
        if k % 20 == 0:
            a, b = resumed.point(), straight.point()
            np.testing.assert_array_equal(a.model, b.model)
            assert p.dual_value(a.duals) == p.dual_value(b.duals)
    assert resumed.epochs == straight.epochs > 2


@pytest.mark.parametrize("form", FORMS)
def test_forged_states_are_refused(form):
    p = problem()
    fresh = engine(form, p)
    advance(fresh, 3)
    for name, array in fresh.state().items():
        for bad in (array[..., None], array.astype(np.float32), np.append(np.ravel(array), 1.0)):
            with pytest.raises(ValueError, match="state"):
                engine(form, p).restore(fresh.state() | {name: bad})
        if name.split(".")[-1] in ("columns", "place", "at", "counts", "begin", "epoch", "decodes", "stage"):
            for number in (-1.0, 0.5, 1e17):
                with pytest.raises(ValueError, match="state"):
                    engine(form, p).restore(fresh.state() | {name: np.full_like(array, number)})
        with pytest.raises(ValueError, match="state"):
            engine(form, p).restore({key: value for key, value in fresh.state().items() if key != name})


# --- Pegasos ---------------------------------------------------------------------------------------------------------


def orders(n, sampling, seed, epochs):
    return [_core.epoch_order(n, {"iid": 0, "fixed": 1, "permutation": 2}[sampling], seed, e) for e in range(epochs)]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sampling", ["iid", "fixed", "permutation"])
@pytest.mark.parametrize(
    ("batch", "t0", "projection"), [(1, 0.0, False), (1, 0.0, True), (3, 4.0, False), (8, 0.0, True)]
)
def test_pegasos_takes_the_steps_of_the_paper(batch, t0, projection, sampling, weighted):
    bound, weight = oracle(), weights() if weighted else None
    n, p = bound.n_rows, problem(bound, weight)
    radius = np.sqrt(so.objective(bound.planes, np.zeros(bound.size), LAM, weight) / LAM) if projection else None
    naive = {"weight": weight, "batch": batch, "t0": t0, "radius": radius}
    iterates, _ = so.pegasos(bound.planes, orders(n, sampling, 5, 4), LAM, **naive)
    method = {"batch_size": batch, "t0": t0, "projection": projection, "sampling": sampling}
    e = engine(Pegasos(**method), p, seed=5)
    for w in iterates[1:]:
        e.advance()
        np.testing.assert_allclose(e.point().model, w, rtol=1e-10, atol=1e-12)
    assert e.epochs == 4
    if projection and not weighted:
        assert any(np.linalg.norm(w) == pytest.approx(radius) for w in iterates)  # it was used
    # Averages: of all, and of those since the window began, at epoch 2.
    steps = len(iterates) - 1
    for output, some in {"average": iterates[:steps], "suffix": iterates[steps // 2 : steps]}.items():
        e = advance(engine(Pegasos(output=output, **method), p, seed=5), 4)
        np.testing.assert_allclose(e.point().model, np.mean(some, axis=0), rtol=1e-10, atol=1e-12)


def test_pegasos_begins_as_if_it_had_seen_every_row():
    e = engine("pegasos")
    assert e.t0 == 8
    first = int(e.order[0])
    e.advance()
    psi, loss = oracle().planes[first]
    np.testing.assert_allclose(e.point().model, psi[int(np.argmax(loss))] / (LAM * 9))


def test_the_window_is_a_dual_point():
    """D = mean of the decoded losses − (λ/2)‖w_d‖², w_d = Σψ/(λnE), over the epochs of the window."""
    bound = oracle()
    p, n = problem(bound), bound.n_rows
    _, found = so.pegasos(bound.planes, orders(n, "permutation", 0, 8), LAM, t0=n)
    e = engine("pegasos", p)
    for done, first in {1: 0, 2: 1, 3: 1, 4: 2, 5: 2, 6: 2, 7: 2, 8: 4}.items():
        advance(e, done)
        some = [(i, k) for step in found[first * n : done * n] for i, k in step]
        w = sum(bound.planes[i][0][k] for i, k in some) / (LAM * n * (done - first))
        loss = sum(bound.planes[i][1][k] for i, k in some) / (n * (done - first))
        planes = e.point().duals
        np.testing.assert_allclose(np.bincount(planes.row, planes.alpha, n).max(), 1.0)
        assert p.dual_value(planes) == pytest.approx(loss - LAM / 2 * w @ w, rel=1e-12)


def test_merged_planes_change_no_bound(monkeypatch):
    p = problem(oracle(rows=5))
    apart = [p.dual_value(advance(engine("pegasos", p), k).point().duals) for k in (3, 6, 8, 15)]
    monkeypatch.setattr(window, "MOST_PLANES", 1)
    e, together = engine("pegasos", p), []
    for k in (3, 6, 8, 15):
        planes = advance(e, k).point().duals
        together.append(p.dual_value(planes))
    np.testing.assert_allclose(together, apart, rtol=1e-12)
    assert all(len(of_row) <= 1 for half in (e.window.older, e.window.newer) for of_row in half.values())


def test_planes_are_counted():
    one, two = Plane(np.array([0, 2]), np.array([1.0, -1.0]), 1.0), Plane(np.array([1, 2]), np.array([1.0, 2.0]), 4.0)
    found = Window()
    for plane in (one, two, one, Plane(np.zeros(0, dtype=int), np.zeros(0), 0.0)):
        found.add(7, plane)
    found.move()
    found.add(7, one)
    planes = found.planes(0.25, 3)
    np.testing.assert_array_equal(planes.alpha, [0.75, 0.25])
    np.testing.assert_array_equal(planes.psi.toarray(), [[1, 0, -1], [0, 1, 2]])
    mean = merged(Counted(one, 2), Counted(two, 1))
    np.testing.assert_allclose(mean.plane.loss, 2.0)
    np.testing.assert_array_equal(mean.plane.columns, [0, 1])  # the third is zero
    np.testing.assert_allclose(mean.plane.values, [2 / 3, 1 / 3])


def test_the_generator_is_the_core_s():
    """By what the core draws of a stream: the first number below n."""
    for seed, stream in ((0, 0), (7, 3), (2**64 - 1, 12345)):
        drawn = _core.epoch_order(10**6, 0, seed, stream)[0]
        assert int(uniform(seed, stream) * 10**6 - 1e-9) == drawn


class Classes:
    """Crammer–Singer's problem as an oracle."""

    def __init__(self, X, y, cost):
        self.X, self.y, self.cost = X, y, cost
        self.n_rows, self.size = len(X), len(cost) * X.shape[1]

    def decode(self, w, rows):
        psi, loss = np.zeros((len(rows), *w.reshape(len(self.cost), -1).shape)), np.zeros(len(rows))
        for k, i in enumerate(rows):
            augmented = self.cost[self.y[i]] + w.reshape(len(self.cost), -1) @ self.X[i]
            best = int(np.argmax(augmented))
            psi[k, self.y[i]] += self.X[i]
            psi[k, best] -= self.X[i]
            loss[k] = self.cost[self.y[i], best]
        return psi.reshape(len(rows), -1), loss


@pytest.mark.parametrize("output", ["last", "average", "suffix", "random"])
@pytest.mark.parametrize("batch", [1, 4])
def test_pegasos_is_the_core_s(output, batch):
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((20, 3)), rng.integers(0, 3, 20)
    weight = rng.uniform(0.5, 2, 20)
    method = Pegasos(output=output, batch_size=batch, t0=3.0)
    ours = engine(method, problem(Classes(X, y, np.array(COST)), weight), seed=9)
    theirs = method.engine(linear_problem(X, y, CrammerSinger(COST), LAM, weight=weight), Options("none", 9))
    for epochs in (1, 2, 3, 5, 8):
        W, _ = advance(theirs, epochs).model()
        np.testing.assert_allclose(advance(ours, epochs).point().model, W.ravel(), rtol=1e-9, atol=1e-12)


# --- block Frank–Wolfe -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["block_frank_wolfe", "block_frank_wolfe plain", "block_frank_wolfe batches"])
def test_the_dual_never_falls(form):
    p = problem(oracle(), weights())
    e, before = engine(form, p), 0.0
    for _ in range(200):
        e.advance()
        point = e.point()
        value = p.dual_value(point.duals)
        assert value >= before * (1 - 1e-12) - 1e-15
        np.testing.assert_allclose(point.model, p.dual_weights(point.duals), rtol=1e-9, atol=1e-11)
        assert np.bincount(point.duals.row, point.duals.alpha).max() <= 1 + 1e-12
        before = value


def random_block(rng, size, count):
    block, scratch = Block.fresh(), np.zeros(size)
    for _ in range(count):
        psi = np.where(rng.random(size) < 0.6, rng.standard_normal(size), 0.0)
        columns = np.flatnonzero(psi)
        block = block.with_plane(Plane(columns, psi[columns], float(rng.uniform(0, 3))), scratch)
        assert not scratch.any()
    return block


@pytest.mark.parametrize("seed", range(5))
def test_a_block_is_mixed_as_well_as_can_be(seed):
    """No plane is above the mixture, which is the condition of an optimum, and no other mixture is better."""
    rng = np.random.default_rng(seed)
    size, s = 6, 0.7
    block = random_block(rng, size, 5)
    psi = np.stack([np.zeros(size), *(np.bincount(q.columns, q.values, size) for q in map(block.plane, range(1, 6)))])
    np.testing.assert_allclose(block.gram, psi @ psi.T, rtol=1e-12, atol=1e-14)
    rest = rng.standard_normal(size)
    w = rest.copy()
    for _ in range(60):
        h = block.values(w)
        np.testing.assert_allclose(h, block.loss - psi @ w, rtol=1e-10, atol=1e-12)
        block.mix(w, h, s, float(h.max() - block.alpha @ h))
        np.testing.assert_allclose(w, rest + s * block.alpha @ psi, rtol=1e-10, atol=1e-12)

    def value(alpha):
        return alpha @ (block.loss - psi @ rest) - s / 2 * float(np.square(alpha @ psi).sum())

    assert np.max(block.loss - psi @ w) - block.alpha @ (block.loss - psi @ w) < 1e-10
    assert all(value(alpha) <= value(block.alpha) + 1e-10 for alpha in rng.dirichlet(np.full(6, 0.5), 300))


def test_planes_without_a_share_are_dropped():
    rng = np.random.default_rng(0)
    block = random_block(rng, 5, 4)
    block.alpha[:] = [0.5, 0.0, 0.5, 0.0, 0.0]
    kept = [block.plane(2), block.plane(4)]
    block.unused[3] = block.unused[1] = 1.0
    left = block.aged(2)
    assert len(left) == 3
    np.testing.assert_array_equal(left.alpha, [0.5, 0.5, 0.0])
    np.testing.assert_array_equal(left.unused, [0.0, 0.0, 1.0])
    for before, after in zip(kept, (left.plane(1), left.plane(2)), strict=True):
        np.testing.assert_array_equal(before.columns, after.columns)
        np.testing.assert_array_equal(before.values, after.values)
        assert before.loss == after.loss
    psi = np.stack([np.zeros(5), *(np.bincount(q.columns, q.values, 5) for q in map(left.plane, (1, 2)))])
    np.testing.assert_allclose(left.gram, psi @ psi.T, rtol=1e-12, atol=1e-14)
    w = rng.standard_normal(5)
    np.testing.assert_allclose(left.values(w), left.loss - psi @ w, rtol=1e-12)
    assert left.aged(2) is not left
    assert len(left) == 3


def test_fewer_planes_are_kept_where_fewer_are_asked_for():
    p = problem(oracle(rows=8))
    kept = {}
    for most in (1, 20):
        e = advance(engine(BlockFrankWolfe(unused_passes=most), p), 12)
        kept[most] = sum(map(len, e.blocks))
        assert all(np.all(block.unused[1:] < most) for block in e.blocks)
    assert kept[1] < kept[20]


def test_passes_over_kept_planes_decode_nothing():
    bound = so.Tags().bind(*so.toy(rows=8))
    e = engine("block_frank_wolfe", problem(bound))
    while e.passes < 12:
        before, decodes = len(bound.asked), e.decodes
        e.advance()
        assert len(bound.asked) - before == int(decodes)
    assert e.decoded < e.passes
    assert len(bound.asked) == round(8 * e.epochs)


@pytest.mark.parametrize("lam", [LAM, LAM / 5, LAM * 5])
def test_it_starts_from_planes(lam):
    point = advance(engine("pegasos"), 4).point()
    p = problem(lam=lam)
    e = engine("block_frank_wolfe", p)
    e.start(point)
    begun = p.dual_value(e.point().duals)
    assert begun >= max(p.dual_value(point.duals) * (1 - 1e-12), 0)
    np.testing.assert_allclose(e.w, p.dual_weights(e.point().duals), rtol=1e-10, atol=1e-13)
    e.advance()
    assert p.dual_value(e.point().duals) >= begun
    assert e.epochs == pytest.approx(1 / 8)


def test_auto_goes_from_pegasos_to_planes():
    p = problem()
    e = engine("auto", p)
    advance(e, auto.PEGASOS_EPOCHS)
    assert (e.stage, e.due(0.01), e.due(0.1)) == (0, False, True)
    seen = p.dual_value(e.point().duals)
    e.advance()
    assert e.stage == 1
    assert p.dual_value(e.point().duals) >= seen
    assert e.epochs == pytest.approx(auto.PEGASOS_EPOCHS + 1 / 8)
    warm = engine("auto", p)
    warm.start(e.point())
    assert (warm.stage, warm.epochs) == (1, 0)


# --- one slack -------------------------------------------------------------------------------------------------------


def test_cuts_lie_below_the_mean_loss_and_touch_it():
    bound, rng = oracle(), np.random.default_rng(0)
    weight = weights()
    p = problem(bound, weight)

    def mean_loss(w):
        return so.objective(bound.planes, w, 0.0, weight)

    for _ in range(5):
        at = rng.standard_normal(bound.size)
        cut = p.cut(at)
        psi = np.bincount(cut.plane.columns, cut.plane.values, bound.size)
        assert cut.height - psi @ at == pytest.approx(mean_loss(at), rel=1e-12)
        for w in rng.standard_normal((20, bound.size)):
            assert cut.height - psi @ w <= mean_loss(w) + 1e-12


def test_the_model_of_the_planes_rises_to_the_optimum():
    p = problem()
    e, lower = engine("cutting_plane", p), -np.inf
    e.advance()
    for _ in range(39):
        e.advance()
        assert e.lower >= lower - 1e-4 * e.value
        lower = e.lower
        found = p.certify(e.point())
        assert found.primal[0] == pytest.approx(e.value, rel=1e-9)
        assert found.dual[0] == pytest.approx(e.lower, rel=1e-9, abs=1e-12)
    assert len(e.bundle) == 40
    np.testing.assert_allclose(e.bundle.gram, e.bundle.gram.T)


def test_no_more_planes_than_asked_for():
    e = advance(engine("cutting_plane few"), 30)
    assert len(e.bundle) == 7
    assert len(e.bundle.contents) == len(e.bundle.alpha) == 7


@pytest.mark.parametrize("earlier", ["cutting_plane", "block_frank_wolfe"])
def test_it_starts_from_planes_of_another_lambda(earlier):
    point = advance(engine(earlier), 15).point()
    p = problem(lam=LAM / 2)
    cold, warm = engine("cutting_plane", p), engine("cutting_plane", p)
    warm.start(point)
    for _ in range(4):
        cold.advance(), warm.advance()
    assert warm.lower > cold.lower


# --- the table -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("solver", "message"),
    [
        ("sdca", "solver='sdca' is unknown; it can be auto, pegasos, block_frank_wolfe, cutting_plane .* linear"),
        ("block_frankwolfe", "did you mean 'block_frank_wolfe'"),
        (BlockFrankWolfe, r"did you mean BlockFrankWolfe\(\), with parentheses"),
    ],
)
def test_solvers_that_are_none(solver, message):
    with pytest.raises(ValueError, match=message):
        resolve(solver, "oracle")


def test_a_solver_of_oracles_is_none_of_linear_machines():
    with pytest.raises(ValueError, match="that one is for the oracle estimators"):
        resolve("block_frank_wolfe")


@pytest.mark.parametrize(
    "bad",
    [{"cached_passes": -1}, {"cached_passes": 1.5}, {"unused_passes": 0}, {"batch_size": 0}, {"batch_size": True}],
)
def test_parameters_of_block_frank_wolfe(bad):
    (name,) = bad
    with pytest.raises(ValueError, match=f"BlockFrankWolfe: {name}="):
        BlockFrankWolfe(**bad)


def test_orders_of_rows_on_disk_have_no_meaning():
    solver = resolve(Pegasos(sampling="chunked"), "oracle")
    with pytest.raises(ValueError, match="sampling='chunked' has no meaning with an oracle"):
        solver.check(problem(), "none")


def test_planes_of_no_rows_are_left_out():
    """A point may have planes of rows that have lost their weight since."""
    point = Point(np.zeros(15), Planes.of([3], [Plane(np.array([0]), np.array([1.0]), 1.0)], [1.0], 15))
    e = engine("block_frank_wolfe", problem(weight=weights()))
    e.start(point)
    assert sum(map(len, e.blocks)) == 7
