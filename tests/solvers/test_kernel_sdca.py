"""Kernel SDCA: exact coordinate steps whatever the blocks, the optimum of every loss and bias, linear machines."""

import warnings

import numpy as np
import oracles as o
import pytest
from conftest import ORACLE_BIAS, SCALAR, advance, features, kernel_problem, oracle, toy
from judging import judged
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise

from pegasos import SDCA, SVC, SVR, LinearSVC, LinearSVR, _core, losses
from pegasos.fit.engine import Options
from pegasos.fit.loop import Limits, Watch, run
from pegasos.kernels.functions import Kernel
from pegasos.losses import Hinge
from pegasos.solvers import resolve

RBF = Kernel("rbf", 0.5)

every = pytest.mark.parametrize("loss", SCALAR, ids=repr)


def engine_of(p, solver=None, *, tol=-1.0, max_steps=10**6, seed=0):
    return resolve(solver or SDCA(), "kernel").engine(p, Options(tol=tol, max_steps=max_steps, seed=seed))


def solve(p, tol, max_steps=10_000):
    engine = engine_of(p, tol=tol, max_steps=max_steps)
    return run(p, engine, Limits(tol, 2**60), Watch()), engine


@every
@pytest.mark.parametrize("block", [1, 7, 256])
@pytest.mark.parametrize("sampling", ["permutation", "fixed", "iid"])
def test_blocks_make_the_steps_of_serial_ascent(loss, block, sampling, monkeypatch):
    monkeypatch.setattr("pegasos.solvers.kernel.blocks.BLOCK_ROWS", block)
    X, y = toy(loss, 30)
    c = np.random.default_rng(0).uniform(0.2, 3, 30)
    c[:2] = 0.0
    p = kernel_problem(X, y, loss, 0.05, kernel=RBF, weight=c)
    engine = advance(engine_of(p, SDCA(sampling=sampling), seed=4), 2)
    K, u = pairwise.rbf_kernel(X, gamma=0.5), np.zeros(30)
    for epoch in range(2):
        order = _core.epoch_order(30, sampling, 4, epoch)
        u = o.kernel_dual_epoch(K, y, u, [i for i in order if c[i]], lam=0.05, loss=oracle(loss), weight=c)
    assert_allclose(engine.point().duals, u, rtol=1e-6, atol=1e-7)


@every
@pytest.mark.parametrize("bias", ["none", "feature", "free"])
@pytest.mark.parametrize("lam", [0.3, 0.01])
def test_the_optimum_is_an_independent_one(loss, bias, lam):
    X, y = toy(loss, 40)
    c = np.random.default_rng(1).uniform(0.2, 3, 40)
    p = kernel_problem(X, y, loss, lam, kernel=RBF, weight=c, bias=bias, feature=0.8)
    K = features(pairwise.rbf_kernel(X, gamma=0.5))
    best = o.optimum(K, y, loss=oracle(loss), lam=lam, weight=c, bias=ORACLE_BIAS[bias], B=0.8).primal
    result, _ = solve(p, 1e-6)
    assert result.certificate.converged
    for record in result.trace:
        assert record.dual <= best * (1 + 1e-9) + 1e-12
        assert record.primal >= best * (1 - 1e-9)
        assert record.gap >= 0
    assert result.certificate.primal == pytest.approx(best, rel=2e-6)


def test_the_dual_never_falls():
    X, y = toy(Hinge(), 60)
    p = kernel_problem(X, y, Hinge(), 0.01, kernel=RBF)
    engine, values = engine_of(p), [0.0]
    for epochs in range(1, 12):
        advance(engine, epochs)
        values.append(float(judged(engine).dual[0]))
        state = engine.states[0]
        assert_allclose(state.F, pairwise.rbf_kernel(X, gamma=0.5) @ (state.unit * state.u), rtol=1e-10, atol=1e-12)
        assert engine.states[0].estimate()[0] == pytest.approx(float(judged(engine).gap[0]), rel=1e-7)
    assert np.all(np.diff(values) >= -1e-15)


@pytest.mark.parametrize("more", [{}, {"intercept": "feature", "intercept_scaling": 0.5}, {"fit_intercept": False}])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "smoothed_hinge", "log"])
def test_classifiers_of_the_linear_kernel_are_linear(loss, more):
    X, y = toy(Hinge(), 60)
    shared = {"loss": loss, "lam": 0.1, "tol": 1e-7, "max_iter": 10_000} | more
    kernel, linear = SVC(kernel="linear", solver="sdca", **shared).fit(X, y), LinearSVC(**shared).fit(X, y)
    assert kernel.certificate_.primal == pytest.approx(linear.certificate_.primal, rel=1e-6)
    assert_allclose(kernel.coef_, linear.coef_, atol=2e-3)
    assert_allclose(kernel.intercept_, linear.intercept_, atol=2e-2)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive", "squared", "huber", "quantile"])
def test_regressions_of_the_linear_kernel_are_linear(loss):
    X, y = toy(losses.Squared(), 60)
    shared = {"loss": loss, "lam": 0.1, "tol": 1e-6, "epsilon": 0.2, "max_iter": 10_000}
    kernel, linear = SVR(kernel="linear", solver=SDCA(), **shared).fit(X, y), LinearSVR(**shared).fit(X, y)
    assert kernel.certificate_.primal == pytest.approx(linear.certificate_.primal, rel=1e-5)
    assert_allclose(kernel.coef_[0], linear.coef_, atol=5e-3)


def test_other_losses_go_to_sdca_by_themselves():
    X, y = toy(Hinge(), 80)
    model = SVC(loss="log", gamma=0.5).fit(X, y)
    assert model.certificate_.converged
    assert model.n_iter_[0] < 1000
    x, t = X[:, :1], np.sin(X[:, 0])
    median = SVR(loss=losses.Quantile(0.9), C=10.0, tol=0.02).fit(x, t + np.random.default_rng(0).normal(size=80))
    assert 0.7 < np.mean(median.predict(x) > t + np.random.default_rng(0).normal(size=80)) <= 1.0


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_weights_are_repetitions(loss):
    X, y = toy(Hinge(), 40)
    counts = np.random.default_rng(2).integers(0, 4, 40)
    shared = {"loss": loss, "solver": "sdca", "gamma": 0.5, "C": 0.1, "tol": 1e-8, "max_iter": 5000}
    weighted = SVC(**shared).fit(X, y, sample_weight=counts)
    repeated = SVC(**shared).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=2e-3)
    assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=1e-7)


@pytest.mark.parametrize("C", [1e-6, 1.0, 1e6])
def test_any_C_ends(C):
    X, y = toy(Hinge(), 60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SVC(C=C, gamma=0.5, solver="sdca", max_iter=50).fit(X, y)
    c = model.certificate_
    assert 0 <= c.dual <= c.primal < np.inf
    assert c.converged or C > 1


def test_nothing_left_to_gain_is_said():
    """One row a class and a kernel of identical rows: an epoch moves nothing any more."""
    with pytest.warns(ConvergenceWarning, match="no further progress"):
        model = SVC(kernel="linear", solver="sdca", fit_intercept=False, tol=0.0, C=1e-3).fit(
            [[1.0, 0.3], [-1.0, 0.1], [0.7, 0.2]], [1, 0, 1]
        )
    assert model.certificate_.relative_gap < 1e-12
