"""Solvers of linear chains: iterates against the naive ones, bounds against an independent optimum, weights, seeds."""

from dataclasses import replace

import chain_oracles as co
import numpy as np
import pytest
from chain_oracles import Sizes, corpus

from pegasos import solvers
from pegasos.fit import loop
from pegasos.fit.engine import Options
from pegasos.problems.base import Point
from pegasos.problems.chain import ChainModel
from pegasos.solvers import (
    LBFGS,
    AveragedPerceptron,
    BlockFrankWolfe,
    CuttingPlane,
    PassiveAggressive,
    Pegasos,
)
from pegasos.solvers.structured import chain_auto
from pegasos.theory import projection_radius

SIZES = Sizes(3, (3, 1, 4, 2, 3, 2, 1), attributes=6)
KINDS = [{"weighted": True}, {"grammar": True, "unlearnt": True}, {"values": False}]
by_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: " ".join(kind))


def engine(c, solver, seed=0, weighted=True):
    method = solvers.resolve(solver, "chain")
    problem = c.problem(weighted=weighted)
    method.check(problem, "none")
    return method.engine(problem, Options("none", seed))


def run(c, solver, *, tol=1e-6, max_iter=3000, seed=0, threads=1):
    method, problem = solvers.resolve(solver, "chain"), c.problem(threads)
    method.check(problem, "none")
    limits = loop.Limits(tol, max_iter)
    return loop.run(problem, method.engine(problem, Options("none", seed, tol)), limits, loop.Watch())


# --- iterates --------------------------------------------------------------------------------------------------------


def follows(c, solver, epochs, *, seed=0, rtol=2e-5, **how):
    """The engine's model and planes after every epoch are the naive ones.

    A passive-aggressive step makes its labelling as good as the right one: which is decoded next is left to rounding.
    """
    run = engine(c, solver, seed)
    output = {"auto": "average"}.get(named := getattr(solver, "output", "auto"), named)
    for k, expected in enumerate(co.steps(c, epochs, seed=seed, **how)):
        run.advance()
        assert run.epochs == k + 1
        point = run.point()
        wanted = getattr(expected, output)
        atol = rtol * (1 + np.abs(wanted).max())
        np.testing.assert_allclose(c.matrix(point.model.W), wanted, atol=atol, err_msg=f"epoch {k}")
        if c.loss == "hinge" and how.get("rule") != "passive_aggressive":
            found = [(i, y, pytest.approx(alpha)) for i, y, alpha in c.planes_of(point.duals)]
            assert sorted(found, key=lambda entry: entry[:2]) == sorted(expected.planes, key=lambda entry: entry[:2])


@by_kind
@pytest.mark.parametrize("output", ["last", "average", "suffix"])
@pytest.mark.parametrize("loss", ["hinge", "log"])
def test_pegasos_as_published(kind, output, loss):
    c = corpus(SIZES, seed=1, loss=loss, **kind)
    follows(c, Pegasos(t0=0, output=output), 9, t0=0.0)


@pytest.mark.parametrize("loss", ["hinge", "log"])
@pytest.mark.parametrize("output", ["last", "average", "suffix"])
@pytest.mark.parametrize("batch", [3, 20])
def test_pegasos_with_mini_batches(loss, output, batch):
    c = corpus(SIZES, seed=2, loss=loss, weighted=True)
    follows(c, Pegasos(t0=0, output=output, batch_size=batch), 9, t0=0.0, batch=batch)


@pytest.mark.parametrize("loss", ["hinge", "log"])
@pytest.mark.parametrize("lam", [1e-3, 0.05, 1.0])
def test_the_first_step_of_auto(loss, lam):
    """t0 = n, so that the first step is C; for the log loss at least 10·C times it."""
    c = corpus(SIZES, seed=3, loss=loss, weighted=True, lam=lam)
    C = 1 / (lam * c.weight.sum())
    t0 = c.n * (max(1.0, 10 * C) if loss == "log" else 1.0)
    follows(c, Pegasos(output="suffix"), 6, t0=t0)
    follows(c, Pegasos(output="last"), 6, t0=t0)


@pytest.mark.parametrize("loss", ["hinge", "log"])
@pytest.mark.parametrize("output", ["last", "average", "suffix"])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("lam", [0.05, 1e-6])
def test_pegasos_with_projection(loss, output, batch, lam):
    """With next to no regularisation each step leaves the ball by so much that V itself is shrunk."""
    c = corpus(SIZES, seed=4, loss=loss, weighted=True, lam=lam)
    radius = projection_radius(lam, float(c.problem().at_zero()[0]))
    norms = [np.linalg.norm(iterate.last) for iterate in co.steps(c, 5, t0=0.0, batch=batch)]
    assert max(norms) > radius  # the case is one
    solver = Pegasos(t0=0, output=output, batch_size=batch, projection=True)
    follows(c, solver, 5, t0=0.0, batch=batch, radius=radius, rtol=1e-4 if lam > 1e-3 else 1e-3)


@pytest.mark.parametrize("seed", [0, 7])
@pytest.mark.parametrize("batch", [2, 4])
def test_subsets(seed, batch):
    c = corpus(SIZES, seed=5)
    for output in ("last", "suffix"):
        solver = Pegasos(t0=0, output=output, sampling="subset", batch_size=batch)
        follows(c, solver, 9, seed=seed, sampling="subset", batch=batch)


@pytest.mark.parametrize("sampling", ["permutation", "fixed", "iid"])
@pytest.mark.parametrize("seed", [0, 7])
def test_orders(sampling, seed):
    c = corpus(SIZES, seed=5)
    for output in ("last", "suffix"):
        follows(c, Pegasos(t0=0, output=output, sampling=sampling), 9, seed=seed, sampling=sampling)
    follows(c, AveragedPerceptron(sampling=sampling), 5, seed=seed, rule="perceptron", sampling=sampling)
    follows(c, PassiveAggressive(sampling=sampling), 5, seed=seed, rule="passive_aggressive", sampling=sampling)


@by_kind
@pytest.mark.parametrize("seed", range(3))
def test_perceptron_and_passive_aggressive_steps(kind, seed):
    c = corpus(SIZES, seed=10 + seed, **kind)
    follows(c, AveragedPerceptron(), 6, seed=seed, rule="perceptron")
    for C in (0.01, 1.0, 100.0):
        for output in ("auto", "last", "suffix"):
            follows(c, PassiveAggressive(C=C, output=output), 6, seed=seed, rule="passive_aggressive", C=C)
    follows(c, PassiveAggressive(variant="PA"), 6, seed=seed, rule="passive_aggressive", C=np.inf)


@pytest.mark.parametrize("loss", ["hinge", "log"])
def test_values_of_any_size_are_stepped_in_double_precision(loss):
    c = corpus(SIZES, seed=6, loss=loss, lam=1e12)
    large = replace(c, tokens=[[[(a, 1e8 * v) for a, v in token] for token in tokens] for tokens in c.tokens])
    assert not large.problem().single
    follows(large, Pegasos(t0=0), 4, rtol=1e-12)


# --- bounds ----------------------------------------------------------------------------------------------------------

HINGE = [
    "auto",
    "pegasos",
    Pegasos(output="suffix"),
    Pegasos(output="average", sampling="iid", batch_size=2, projection=True),
    "block_frank_wolfe",
    BlockFrankWolfe(cached_passes=0, unused_passes=1),
    BlockFrankWolfe(cached_passes=3),
    "cutting_plane",
    CuttingPlane(max_planes=6),
    "averaged_perceptron",
    "passive_aggressive",
]
LOG = ["auto", "pegasos", Pegasos(output="suffix"), "lbfgs", LBFGS(memory=1)]
ALL = [("hinge", solver) for solver in HINGE] + [("log", solver) for solver in LOG]
PROBLEMS = {}


def case(loss, kind):
    """A corpus whose optimum is computed once."""
    key = loss, tuple(kind)
    if key not in PROBLEMS:
        PROBLEMS[key] = corpus(SIZES, seed=20, loss=loss, lam=0.02, **kind)
    return PROBLEMS[key]


def test_the_lists_are_whole():
    names = {"auto"} | {solver if isinstance(solver, str) else solver.name for _, solver in ALL}
    assert names == set(solvers.TABLES["chain"]) | {"auto"}
    for loss in ("hinge", "log"):
        for name in names:
            problem = case(loss, {}).problem()
            if (loss, name) in ALL or (loss == "hinge" and name == "lbfgs"):
                continue
            with pytest.raises(ValueError, match=f"solver '{name}' cannot minimise loss '{loss}' of sequences"):
                solvers.resolve(name, "chain").check(problem, "none")


@by_kind
@pytest.mark.parametrize(("loss", "solver"), ALL, ids=str)
def test_bounds_hold_the_optimum(loss, solver, kind):
    """D ≤ P* ≤ P at every checkpoint, and both are what the oracle makes of the result."""
    c = case(loss, kind)
    seen = []

    def watch(checkpoint, model):
        seen.append((checkpoint.primal, checkpoint.dual, c.primal(c.matrix(model.W))))

    method, problem = solvers.resolve(solver, "chain"), c.problem()
    result = loop.run(
        problem, method.engine(problem, Options("none", 1, 1e-8)), loop.Limits(1e-8, 60), loop.Watch(watch)
    )
    for primal, dual, recomputed in seen:
        assert dual <= c.optimum * (1 + 1e-8)
        assert primal >= c.optimum * (1 - 1e-8)
        assert primal == pytest.approx(recomputed, rel=1e-9)
    if loss == "log":
        assert result.certificate.dual >= c.log_dual(c.matrix(result.model.W)) * (1 - 1e-9)
    else:
        feasible = result.duals._replace(alpha=result.duals.feasible(c.n))
        assert result.certificate.dual >= c.dual(c.planes_of(feasible)) * (1 - 1e-9)


@by_kind
@pytest.mark.parametrize(
    ("loss", "solver"),
    [("hinge", "auto"), ("hinge", "block_frank_wolfe"), ("hinge", "cutting_plane"),
     ("hinge", BlockFrankWolfe(cached_passes=0, unused_passes=1)), ("hinge", BlockFrankWolfe(cached_passes=5)),
     ("log", "auto"), ("log", "lbfgs"), ("log", LBFGS(memory=1))],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("tol", [1e-2, 1e-8])
def test_the_optimum_is_reached(loss, solver, kind, tol):
    c = case(loss, kind)
    result = run(c, solver, tol=tol)
    assert result.certificate.converged
    assert result.certificate.primal <= c.optimum * (1 + tol + 1e-8)
    assert result.certificate.dual >= c.optimum * (1 - tol - 1e-8)


@pytest.mark.parametrize("solver", ["pegasos", Pegasos(output="suffix"), Pegasos(output="average", projection=True)])
@pytest.mark.parametrize("loss", ["hinge", "log"])
def test_pegasos_comes_close(loss, solver):
    c = case(loss, {"weighted": True})
    result = run(c, solver, tol=0.05, max_iter=1000)
    assert result.certificate.converged


def test_auto_passes_through_both_stages():
    """And returns the best model that either of them had."""
    c = case("hinge", {"weighted": True})
    method, problem = solvers.resolve("auto", "chain"), c.problem()
    engine = method.engine(problem, Options("none", 0))
    seen = []

    def watch(checkpoint, model):
        seen.append((engine.stage, checkpoint.epochs, checkpoint.primal))

    result = loop.run(problem, engine, loop.Limits(1e-8, 3000), loop.Watch(watch))
    assert engine.stage == 1
    assert engine.spent == chain_auto.HINGE_EPOCHS
    assert all(epochs > engine.spent for stage, epochs, _ in seen if stage == 1)
    later = [primal for stage, _, primal in seen if stage == 1]
    assert later == sorted(later, reverse=True)
    assert result.certificate.primal == later[-1]


def test_a_loose_tol_needs_pegasos_alone():
    c = corpus(SIZES, seed=20, lam=1.0)
    result = run(c, "auto", tol=0.5)
    assert result.certificate.converged
    assert result.engine.stage == 0
    assert result.engine.epochs <= chain_auto.HINGE_EPOCHS


# --- weights, seeds, threads -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("loss", "solver"), [("hinge", "auto"), ("hinge", "cutting_plane"), ("log", "lbfgs")])
def test_a_weight_of_two_is_the_sequence_twice(loss, solver):
    c = corpus(SIZES, seed=30, loss=loss)
    weight = np.array([2.0, 1, 3, 1, 1, 2, 1])
    weighted = co.with_sequences(c, range(c.n), weight)
    chosen = np.repeat(np.arange(c.n), weight.astype(int)).tolist()
    twice = co.with_sequences(c, chosen, np.ones(len(chosen)))
    assert weighted.optimum == pytest.approx(twice.optimum, rel=1e-9)
    one, other = (run(each, solver, tol=1e-9) for each in (weighted, twice))
    assert one.certificate.primal == pytest.approx(other.certificate.primal, rel=1e-8)
    assert one.certificate.dual == pytest.approx(other.certificate.dual, rel=1e-8)
    np.testing.assert_allclose(one.model.W, other.model.W, atol=2e-3)
    W = c.flat(c.weights(np.random.default_rng(0)))
    bounds = [each.problem().certify(Point(ChainModel(W.copy()))) for each in (weighted, twice)]
    assert bounds[0].primal == pytest.approx(bounds[1].primal, rel=1e-12)


@pytest.mark.parametrize(("loss", "solver"), ALL, ids=str)
def test_the_same_seed_gives_the_same_bits(loss, solver):
    c = case(loss, {"weighted": True})
    one, same = (run(c, solver, tol=1e-5, max_iter=30, seed=3) for _ in range(2))
    np.testing.assert_array_equal(one.model.W, same.model.W)
    assert one.certificate.primal == same.certificate.primal
    if isinstance(solver, Pegasos):
        assert (run(c, solver, tol=1e-5, max_iter=30, seed=4).model.W != one.model.W).any()


@pytest.mark.parametrize(("loss", "solver"), [("hinge", "auto"), ("hinge", "cutting_plane"), ("log", "auto")])
def test_threads_change_no_bit(loss, solver):
    c = corpus(Sizes(60, (30,) * 760, attributes=50), seed=2, loss=loss, lam=1e-3)
    assert c.sequences.ids.size * 64 / 4 >= 2**19  # work enough for threads
    one, two = (run(c, solver, tol=0.0, max_iter=10, threads=threads) for threads in (1, 2))
    np.testing.assert_array_equal(one.model.W, two.model.W)
    assert one.certificate.primal == two.certificate.primal
    assert one.certificate.dual == two.certificate.dual
