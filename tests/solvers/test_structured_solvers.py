"""Solvers of structured machines: bounds that enclose the optimum, resumed states, cutting planes, the table."""

from __future__ import annotations

import numpy as np
import pytest
import structured_oracles as so
from conftest import advance
from structured_cases import FAST, FORMS, LAM, engine, oracle, problem, solve, star, weights

from pegasos import BlockFrankWolfe, Pegasos
from pegasos.solvers import TABLES, resolve
from pegasos.solvers.structured.base import OracleSolver

# --- all of them -----------------------------------------------------------------------------------------------------


def test_every_solver_is_here():
    assert {resolve(form, "oracle").name for form in FORMS.values()} == {"auto", *TABLES["oracle"]}
    assert all(isinstance(resolve(form, "oracle"), OracleSolver) for form in FORMS.values())


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
        if form in FAST and "plain" not in form and limits["max_iter"] > 3:
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
    with pytest.raises(ValueError, match="that one is for StructuredSVC"):
        resolve("block_frank_wolfe")


@pytest.mark.parametrize(
    "bad", [{"cached_passes": -1}, {"cached_passes": 1.5}, {"unused_passes": 0}, {"batch_size": 0}]
)
def test_parameters_of_block_frank_wolfe(bad):
    (name,) = bad
    with pytest.raises(ValueError, match=f"BlockFrankWolfe: {name}="):
        BlockFrankWolfe(**bad)


def test_orders_of_rows_on_disk_have_no_meaning():
    solver = resolve(Pegasos(sampling="chunked"), "oracle")
    with pytest.raises(ValueError, match="sampling='chunked' has no meaning with an oracle"):
        solver.check(problem(), "none")
