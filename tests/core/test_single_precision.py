"""One-vs-rest SDCA in single precision: the same steps as in double, the mean of an epoch, and the way back."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import advance, problem, solve, toy
from numpy.testing import assert_allclose
from scipy import sparse

from pegasos import SDCA, LinearSVC, losses
from pegasos.fit.engine import Options

LOSSES = (losses.Hinge(), losses.SquaredHinge(), losses.SmoothedHinge(gamma=0.5))
LAYOUTS = {
    "dense float64": np.asarray,
    "dense float32": lambda X: X.astype(np.float32),
    "csr float32 int32": lambda X: sparse.csr_matrix(X.astype(np.float32)),
    "csr float64 int64": lambda X: _wide(sparse.csr_matrix(X)),
}
WAYS = {"none": "none", "feature": "feature", "free": "unregularized"}

#: Rounding of float32, after some dozen steps.
NEAR = {"rtol": 2e-5, "atol": 2e-5}


def _wide(X):
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def engine_of(p, seed=0, **options):
    bias = WAYS[p.bias]
    return SDCA(**options).engine(p, Options(bias, seed))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("classes", [3, 8, 11, 16, 19])
def test_the_same_steps_as_in_double_precision(layout, classes):
    """A group is 8 or 16 lanes wide; 3, 11 and 19 classes leave some of them empty."""
    for loss in LOSSES:
        X, y = toy(loss, 60, 5, classes=classes)
        X[np.abs(X) < 0.1] = 0.0
        c = np.random.default_rng(1).integers(0, 3, size=60).astype(float)
        for bias in WAYS:
            p = problem(LAYOUTS[layout](X), y, loss, 0.05, weight=c, bias=bias)
            single = advance(engine_of(p, shrinking=False), 3)
            double = advance(engine_of(p, shrinking=False, precision="double"), 3)
            assert single.single
            assert not double.single
            assert_allclose(single.lanes.duals(), double.lanes.duals(), **NEAR)
            for one, other in zip(single.lanes.weights(), double.lanes.weights(), strict=True):
                assert_allclose(one, other, **NEAR)
            for one, other in zip(single.online(), double.online(), strict=True):
                assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_the_mean_is_that_of_the_epoch(loss):
    X, y = toy(loss, 40, 5, classes=5)
    p = problem(X, y, loss, 0.05)
    engine = engine_of(p, shrinking=False)
    (solver,) = engine.lanes.solvers
    for _ in range(3):
        seen = []
        for _ in range(40):
            solver.advance(1)
            seen.append(solver.duals())
        assert solver.epoch_ended
        assert_allclose(engine.duals(), np.mean(seen, axis=0), **NEAR)
    solver.advance(7)  # in the middle of an epoch there is no mean
    np.testing.assert_array_equal(engine.duals(), solver.duals())


def test_shrunk_rows_keep_their_place_in_the_mean():
    """Rows that are left out are not visited: their mean is what they had."""
    X, y = toy(losses.Hinge(), 400, 4, classes=4, seed=3)
    p = problem(X, y, losses.Hinge(), 0.01)
    engine = engine_of(p)
    (solver,) = engine.lanes.solvers
    while solver.active > 300:
        engine.advance()
    before = solver.duals()
    engine.advance()
    still = np.all(solver.duals() == before, axis=1)
    assert still.sum() > 100
    np.testing.assert_array_equal(engine.duals()[still], before[still])


@pytest.mark.parametrize("bias", WAYS)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_tight_tolerances_change_to_double_precision(loss, bias):
    X, y = toy(loss, 200, 6, classes=5)
    p = problem(X, y, loss, 0.02, bias=bias)
    rough, fine = (solve(p, SDCA(), WAYS[bias], tol=tol, max_iter=3000) for tol in (1e-2, 1e-8))
    double = solve(p, SDCA(precision="double"), WAYS[bias], tol=1e-8, max_iter=3000)
    assert rough.engine.single
    assert not fine.engine.single
    for result, tol in ((rough, 1e-2), (fine, 1e-8), (double, 1e-8)):
        assert result.certificate.converged
        assert result.certificate.dual <= double.certificate.primal * (1 + 1e-12)
        assert double.certificate.dual <= result.certificate.primal <= double.certificate.primal * (1 + 2 * tol)
    assert_allclose(fine.certificate.primal, double.certificate.primal, rtol=1e-7)
    assert fine.certificate.epochs == pytest.approx(fine.engine.spent + fine.engine.lanes.epochs)


def test_the_certificate_is_that_of_the_weights():
    """P of the returned weights, by NumPy in float64."""
    X, y = toy(losses.Hinge(), 300, 8, classes=6)
    model = LinearSVC(lam=0.02, solver=SDCA(), tol=1e-2).fit(X, y)
    signs = np.where(np.arange(6) == y[:, None], 1.0, -1.0)
    losses_ = np.maximum(0, 1 - signs * model.decision_function(X))
    primal = 0.01 * np.sum(model.coef_**2) + losses_.mean(axis=0).sum()
    assert model.certificate_.primal == pytest.approx(primal, rel=1e-12)
    assert model.certificate_.converged


@pytest.mark.parametrize("scale", [1e-9, 1e7])
def test_rows_of_unusual_size_are_double_precision(scale):
    X, y = toy(losses.Hinge(), 50, 4, classes=3)
    p = problem(X * scale, y, losses.Hinge(), 0.05 * scale**2)
    assert not engine_of(p).single


def test_weak_regularisation_is_double_precision():
    X, y = toy(losses.Hinge(), 50, 4, classes=3)
    assert not engine_of(problem(X, y, losses.Hinge(), 1e-5)).single


def test_what_has_no_single_precision():
    X, y = toy(losses.Log(), 50, 4, classes=3)
    assert not engine_of(problem(X, y, losses.Log(), 0.05)).single
    assert not engine_of(problem(X, np.where(y > 0, 1.0, -1.0), losses.Hinge(), 0.05)).single
    assert not engine_of(problem(X, y, losses.CrammerSinger(), 0.05)).single


def test_a_state_of_either_precision_goes_on():
    X, y = toy(losses.Hinge(), 120, 5, classes=18)
    p = problem(X, y, losses.Hinge(), 0.02)
    straight = engine_of(p)
    for _ in range(24):
        straight.advance()
        saved = straight.state()
        other = engine_of(p)
        other.restore(saved)
        assert other.single == straight.single
        due = straight.due(1e-8)
        assert other.due(1e-8) == due
        if due:
            bounds = p.certify(straight.point())
            straight.learn(bounds)
            other.learn(bounds)
        straight.advance()
        other.advance()
        for key, value in straight.state().items():
            np.testing.assert_array_equal(other.state()[key], value, err_msg=key)
    assert not straight.single  # both have been seen
    double = engine_of(p, precision="double")
    with pytest.raises(ValueError, match="belongs to another problem"):
        double.restore(engine_of(p).state())


def test_no_progress_means_double_precision():
    """Rounding that stops single precision before its limit is noticed."""
    X, y = toy(losses.Hinge(), 120, 5, classes=3)
    engine = advance(engine_of(problem(X, y, losses.Hinge(), 0.02)), 2)
    bounds = engine.problem.certify(engine.point())
    engine.learn(bounds)
    assert engine.single
    u, spent = engine.lanes.duals(), engine.epochs
    engine.learn(bounds)  # the same gap again
    assert not engine.single
    assert engine.epochs == spent
    np.testing.assert_array_equal(engine.lanes.duals(), u)


def test_bad_precision():
    with pytest.raises(ValueError, match="precision='half' is none of auto, double"):
        SDCA(precision="half")
