"""What lies between the solvers and the user's arrays: the fitting loop, small kernels of the core, weights, labels."""

from __future__ import annotations

import io

import numpy as np
import pytest
from conftest import CASES, SCALAR, advance, optimum, problem, solve, standard, toy
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse

from pegasos import _core, losses
from pegasos.fit.engine import Options
from pegasos.fit.loop import Limits, Watch, run
from pegasos.rows.views import encode_labels, row_weights
from pegasos.solvers import SDCA, SGD, SOLVERS, Auto, InteriorPoint, Norma, Pegasos
from pegasos.solvers.linear.interior_point import InteriorPointEngine
from pegasos.solvers.linear.normal_equations import Design, solve_normal

several = settings(deadline=None, derandomize=True, max_examples=40)


# --------------------------------------------------------------------------------------------------------- simplex QP


def optimality(H, b, a):
    """How much ⟨gradient, e_j − a⟩ the best vertex would gain; 0 at the optimum."""
    g = b - H @ a
    return float(g.max() - g @ a)


@several
@given(seed=st.integers(0, 10**6), n=st.integers(1, 12), rank=st.integers(0, 12))
def test_simplex_qp(seed, n, rank):
    """max ⟨b, a⟩ − ½aᵀHa over the simplex, H of any rank."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, rank))
    H, b = np.ascontiguousarray(A @ A.T), rng.normal(size=n)
    start = rng.dirichlet(np.ones(n))
    a = _core.simplex_qp(H, b, start, 1e-10, 200_000)
    assert a.min() >= 0
    assert_allclose(a.sum(), 1, rtol=1e-12)
    assert optimality(H, b, a) <= 1e-7 * (1 + np.abs(H).max())
    assert b @ a - a @ H @ a / 2 >= b @ start - start @ H @ start / 2 - 1e-12


# ------------------------------------------------------------------------------------------------------ normal matrix


@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_normal_solver(scale):
    rng = np.random.default_rng(0)
    D = np.diag(scale ** rng.uniform(-1, 1, 8))
    A = rng.normal(size=(30, 8)) @ D
    M, r = A.T @ A, rng.normal(size=8)
    x = solve_normal(M, r)
    assert_allclose(M @ x, r, rtol=1e-6, atol=1e-8 * np.abs(r).max())


def test_singular_normal_matrices_are_solved():
    """A right side in the range of a singular matrix."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(20, 4))
    A = np.column_stack([A, A[:, 0], np.zeros(20)])
    M = A.T @ A
    r = M @ rng.normal(size=6)
    assert_allclose(M @ solve_normal(M, r), r, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("index", [None, np.array([5, 0, 17, 5], dtype=np.int64)])
def test_design(bias, index):
    X, y = toy(losses.Hinge())
    p = problem(X, y, losses.Hinge(), 0.1)
    design = Design(p.examples, bias, 1, index)
    A = X if index is None else X[index]
    A = np.column_stack([A, np.ones(len(A))]) if bias else A
    rng = np.random.default_rng(0)
    beta, v = rng.normal(size=A.shape[1]), rng.uniform(size=len(A))
    assert design.width == A.shape[1]
    assert_allclose(design.forward(beta), A @ beta, rtol=1e-12, atol=1e-12)
    assert_allclose(design.adjoint(v), A.T @ v, rtol=1e-12, atol=1e-12)
    assert_allclose(design.gram(v), (A.T * v) @ A, rtol=1e-12, atol=1e-12)


# ----------------------------------------------------------------------------------------------------- the problem


@pytest.mark.parametrize("loss", CASES, ids=repr)
def test_problem_constants(loss):
    X, y = toy(loss)
    c = np.random.default_rng(0).uniform(0, 2, 40)
    p = problem(X, y, loss, 0.1, weight=c)
    assert p.total == pytest.approx(c.sum())
    assert p.mean_squared_norm == pytest.approx(c @ (X**2).sum(1) / c.sum())
    assert p.hardness == pytest.approx(0.1 * c.sum() / p.mean_squared_norm)
    assert p.n_parts == 1
    assert p.joint == (loss.kind == "joint")


@pytest.mark.parametrize("loss", SCALAR, ids=repr)
def test_projection_ball_holds_the_optimum(loss):
    """‖w*‖² ≤ P(0)/λ."""
    for lam in (0.01, 0.1, 1.0):
        X, y = toy(loss)
        p = problem(X, y, loss, lam)
        assert (optimum(p)[0].w ** 2).sum() <= p.at_zero()[0] / lam * (1 + 1e-9)


# ---------------------------------------------------------------------------------------------------------- the loop


@pytest.mark.parametrize("name", SOLVERS)
def test_every_checkpoint_is_a_bound(name):
    """Lower bounds never fall, and all of them are below the optimum."""
    solver = SOLVERS[name]()
    p, star = standard(losses.Hinge() if "hinge" in solver.losses else losses.SquaredHinge(), "none")
    result = solve(p, solver, tol=1e-3, max_iter=60)
    duals = [c.dual for c in result.trace]
    assert duals == sorted(duals)
    assert max(duals) <= star * (1 + 1e-9)
    assert min(c.primal for c in result.trace) >= star * (1 - 1e-9)
    assert [c.epochs for c in result.trace] == sorted(c.epochs for c in result.trace)
    assert result.certificate.primal == result.trace[-1].primal
    assert result.certificate.gap == pytest.approx(result.certificate.primal - result.certificate.dual)


def test_limits():
    p, _ = standard(losses.Hinge(), "free", lam=1e-4)
    engine = SDCA().engine(p, Options("unregularized", 0))
    result = run(p, engine, Limits(0.0, 7), Watch())
    assert result.certificate.reason == "max_iter reached"
    assert not result.certificate.converged
    assert 7 <= result.certificate.epochs < 8.5
    engine = SDCA().engine(p, Options("unregularized", 0))
    assert run(p, engine, Limits(0.0, 10**9, 0.01), Watch()).certificate.reason == "max_time reached"


def test_callback_sees_and_stops():
    p, _ = standard(losses.Hinge(), "none")
    seen = []

    def look(checkpoint, model):
        seen.append(checkpoint)
        return len(seen) == 2

    result = run(p, Pegasos().engine(p, Options("none", 0)), Limits(0.0, 100), Watch(callback=look))
    assert result.certificate.reason == "stopped by the callback"
    assert len(seen) == len(result.trace) == 2


def test_progress_is_written_where_asked():
    p, _ = standard(losses.Hinge(), "none")
    stream = io.StringIO()
    result = run(p, SDCA().engine(p, Options("none", 0)), Limits(1e-6, 1000), Watch(verbose=True, stream=stream))
    lines = stream.getvalue().splitlines()
    assert "relative gap" in lines[0]
    assert len(lines) == 1 + len(result.trace)


class Interrupted:
    """An engine that is interrupted in its third piece of work."""

    def __init__(self, engine):
        self.engine, self.pieces = engine, 0

    def __getattr__(self, name):
        return getattr(self.engine, name)

    def advance(self):
        self.pieces += 1
        if self.pieces == 3:
            raise KeyboardInterrupt
        self.engine.advance()


def test_interrupts():
    p, star = standard(losses.Hinge(), "none")
    with pytest.raises(KeyboardInterrupt):
        run(p, Interrupted(Pegasos().engine(p, Options("none", 0))), Limits(0.0, 100), Watch())
    kept = run(p, Interrupted(Pegasos().engine(p, Options("none", 0))), Limits(0.0, 100), Watch(on_interrupt="keep"))
    assert kept.certificate.reason == "interrupted"
    assert kept.certificate.epochs == 2
    assert kept.certificate.dual <= star <= kept.certificate.primal


@pytest.mark.parametrize("loss", [loss for loss in CASES if loss.name.startswith("squared")], ids=repr)
@pytest.mark.parametrize("solver", [Norma(), SGD(eta=2.0), Pegasos(t0=0.0)], ids=lambda s: s.name)
@pytest.mark.parametrize("intercept", ["none", "unregularized"])
def test_divergence_is_not_convergence(loss, solver, intercept):
    """Steps far too long: whatever the weights, the lower bound stays one, and nothing has converged."""
    X, y = toy(loss, 200, 4)
    p = problem(3 * X, y, loss, 1e-3, bias="none" if intercept == "none" else "free")
    c = solve(p, solver, intercept, tol=1e-3, max_iter=20).certificate
    assert c.primal > 1e3 or np.isnan(c.primal)
    assert not c.converged
    assert not c.relative_gap <= 1e-3
    assert not np.isnan(c.dual)
    assert c.dual <= optimum(p)[0].primal


@pytest.mark.parametrize("size", [1e-6, 1e6])
@pytest.mark.parametrize("loss", CASES, ids=repr)
def test_scaled_rows_and_regularisation(loss, size):
    """X → sX, λ → s²λ is the same problem, w → w/s."""
    X, y = toy(loss)
    for bias, intercept in (("none", "none"), ("free", "unregularized")):
        plain, scaled = (
            solve(problem(s * X, y, loss, s * s * 0.05, bias=bias), Auto(), intercept, tol=1e-6) for s in (1.0, size)
        )
        assert plain.certificate.converged
        assert scaled.certificate.converged
        assert_allclose(scaled.certificate.primal, plain.certificate.primal, rtol=2e-6)
        assert_allclose(size * scaled.model.W, plain.model.W, atol=5e-3)


def test_a_perfect_fit_stops():
    """An optimum of (nearly) zero: no gap is small relative to it."""
    X = np.eye(4)
    p = problem(X, np.zeros(4), losses.Squared(), 0.1)
    for solver in (SDCA(), InteriorPoint(), Auto()):
        assert solve(p, solver, tol=1e-3, max_iter=50).certificate.converged


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-6])
def test_tolerance_is_kept_by_every_part(tol):
    X, y = toy(losses.Hinge(), 60, 4, classes=4)
    p = problem(X, y, losses.Hinge(), 0.05, bias="free")
    for solver in (SDCA(), InteriorPoint(), Auto()):
        c = solve(p, solver, "unregularized", tol=tol, max_iter=3000).certificate
        assert c.converged
        for primal, dual in zip(c.primal_per_class, c.dual_per_class, strict=True):
            assert primal - dual <= tol * primal * (1 + 1e-12)
        assert c.primal == pytest.approx(sum(c.primal_per_class))
        assert c.dual == pytest.approx(sum(c.dual_per_class))


def test_auto_resumes_in_every_stage():
    X, y = toy(losses.Hinge(), 60, 4)
    p = problem(X, y, losses.Hinge(), 1.0, bias="free")
    for epochs in (1, 3, 6):
        straight, first, second = (Auto().engine(p, Options("unregularized", 0)) for _ in range(3))
        advance(first, epochs)
        second.restore(first.state())
        advance(second, epochs + 3)
        advance(straight, epochs + 3)
        assert second.stage == straight.stage
        assert np.array_equal(second.model()[0], straight.model()[0])


def test_interior_point_resumes_after_its_rehearsal():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    y = np.where(X @ [1.0, -1.0] + rng.normal(size=len(X)) > 0.3, 1.0, -1.0)
    p = problem(X, y, losses.Hinge(), 1e-3, bias="free")

    class Short(InteriorPointEngine):
        MIN_SAMPLE_ROWS = 200

    for before in (3, 12):
        straight, first, second = (Short(p, 0) for _ in range(3))
        for engine, count in ((straight, before + 8), (first, before)):
            for _ in range(count):
                engine.advance()
        second.restore(first.state())
        for _ in range(8):
            second.advance()
        assert np.array_equal(second.model()[0], straight.model()[0])
        assert (second.duals() is None) == (straight.duals() is None)


# ------------------------------------------------------------------------------------------------- labels and weights


@pytest.mark.parametrize(
    "y",
    [[1, 0, 1], [-1, 1, 1], [2.0, 0.5, 2.0], [True, False, True], ["b", "a", "b"], [3, 1, 2, 1], ["x"], [5, 5]],
)
def test_encode_labels(y):
    y = np.array(y)
    classes, codes = encode_labels(y)
    assert np.array_equal(classes, np.unique(y))
    assert np.array_equal(classes[codes], y)
    assert codes.dtype == np.int32


def test_row_weights():
    assert row_weights(None, None, 3) is None
    assert row_weights(np.ones(3), None, 3) is None
    assert row_weights(2.0, None, 3).tolist() == [2, 2, 2]
    assert row_weights([1, 2, 0], np.array([2.0, 1.0, 1.0]), 3).tolist() == [2, 2, 0]
    for bad, match in (
        ([1, 2], "shape"),
        ([1, np.nan, 1], "row 1"),
        ([1, -1, 1], "negative at row 1"),
        ([0, 0, 0], "zero"),
    ):
        with pytest.raises(ValueError, match=rf"sample_weight.*{match}"):
            row_weights(bad, None, 3)


def test_core_checks_shapes():
    p, _ = standard(losses.Hinge(), "none")
    with pytest.raises(ValueError, match="targets"):
        SDCA().engine(problem(p.examples.array, p.target[:-1], losses.Hinge(), 0.1), Options("none", 0))
    with pytest.raises(ValueError, match="weight"):
        Pegasos(t0=0.0).engine(
            problem(p.examples.array, p.target, losses.Hinge(), 0.1, weight=np.ones(3)), Options("none", 0)
        )
    solver = SDCA().engine(p, Options("none", 0)).lanes.solvers[0]
    with pytest.raises(ValueError, match="u"):
        solver.start(np.zeros((3, 1)), np.zeros((1, 4)), np.zeros(1))
    with pytest.raises(ValueError, match="z"):
        solver.reactivate(np.zeros((3, 1)))


def test_instruction_set_is_named():
    assert _core.instruction_set() in ("v4", "v3", "baseline")


# ----------------------------------------------------------------------------------------------- rows left out at first


def test_pegasos_remembers_scores():
    """Each row's scores are those of the weights its step began with."""
    p, _ = standard(losses.Hinge(), "none")
    engine = Pegasos(t0=0.0, batch_size=p.examples.m).engine(p, Options("none", 0))
    with pytest.raises(RuntimeError, match="no scores were kept"):
        engine.lanes.scores(early=0)
    engine.keep_scores()
    advance(engine, 1)
    W, _ = engine.model()
    assert np.any(W)
    assert_allclose(engine.lanes.scores(early=0), 0.0)
    advance(engine, 2)
    assert_allclose(engine.lanes.scores(early=0), p.scores(W, np.zeros(1)), rtol=1e-12)
    again = engine.lanes.scores(early=5)
    assert np.isnan(again).sum() == 5
    assert_allclose(again[~np.isnan(again)], p.scores(W, np.zeros(1))[~np.isnan(again)], rtol=1e-12)


def test_sdca_begins_without_rows_that_are_settled():
    p, best = standard(losses.Hinge(), "none")
    y, W = p.target[:, None], np.array([[2.0, -1.0, 0.5, 1.0]])
    Z = p.scores(W, np.zeros(1)) + 0.01
    engine = SDCA().engine(p, Options("none", 0))
    (solver,) = engine.lanes.solvers
    engine.leave_out(Z, W)  # of rows with u = 0 those are settled whose margin is 1 or more, and stays so
    assert solver.active == np.count_nonzero(y * Z < 1 + 3 * 0.01) < p.examples.m
    Z[::3] = np.nan
    engine.leave_out(Z, W)
    assert solver.active == np.count_nonzero(np.isnan(Z) | (y * Z < 1 + 3 * 0.01)) < p.examples.m
    # Rows that were left out wrongly come back: the fit ends where it should.
    solver.leave_out(10 * y, 0.0)
    assert solver.active == 1
    assert_allclose(run(p, engine, Limits(1e-9, 1000), Watch()).certificate.primal, best, rtol=1e-8)
    whole = SDCA(shrinking=False).engine(p, Options("none", 0))
    whole.lanes.solvers[0].leave_out(10 * y, 0.0)
    assert whole.lanes.solvers[0].active == p.examples.m


@pytest.mark.parametrize("strong", [False, True])
def test_auto_leaves_rows_out_only_under_strong_regularisation(strong):
    """Otherwise an epoch of Pegasos is too far from the optimum to tell which rows matter."""
    m, rng = 2000, np.random.default_rng(0)
    y = rng.choice([-1.0, 1.0], m)
    X = sparse.random(m, 4000, density=1e-3, format="lil", random_state=0)  # too wide for second-order methods
    X[:, 0] = (y * rng.uniform(0, 2, m))[:, None]
    p = problem(X.tocsr(), y, losses.Hinge(), 0.02 if strong else 0.002)
    assert (p.hardness > 10) == strong
    engine = advance(Auto().engine(p, Options("none", 0)), 1.01)
    assert engine.stage == "sdca"
    assert (engine.engine.epochs < 1) == strong
