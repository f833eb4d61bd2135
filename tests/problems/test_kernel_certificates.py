"""Certificates of kernel machines: what is not computed anew is bounded, and no bound is claimed that is none."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import oracles as o
import pytest
from conftest import features, kernel_problem
from judging import judged
from scipy import sparse
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise

from pegasos import SBP, SVC, SVR, LinearSVC, Nystroem, load, save
from pegasos.fit.engine import Options
from pegasos.kernels import definite as definite_module
from pegasos.kernels.functions import NATIVE, Kernel
from pegasos.kernels.gram import NativeRows
from pegasos.kernels.rounding import DOUBLE, SINGLE, value_errors
from pegasos.losses import EpsilonInsensitive, Hinge
from pegasos.solvers import LASVM, SMO


def quiet(model, X, y, **others):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y, **others)


def objective(model, K, y, C):
    """P of a fitted classifier, from its support vectors and coefficients."""
    coef, at = model.dual_coef_[0], model.support_
    loss = np.maximum(0, 1 - y * (K[:, at] @ coef + model.intercept_[0])).sum()
    return (0.5 * float(coef @ K[np.ix_(at, at)] @ coef) + C * float(loss)) / (C * len(y))


# --- rounding --------------------------------------------------------------------------------------------------------


def exact_values(kernel, X):
    """The kernel matrix in extended precision."""
    A = X.astype(np.longdouble)
    apart = A[:, None, :] - A[None, :, :]
    if kernel.name in ("linear", "poly", "sigmoid"):
        inner = A @ A.T
        base = kernel.gamma * inner + kernel.coef0
        return {"linear": inner, "poly": base**kernel.degree, "sigmoid": np.tanh(base)}[kernel.name]
    if kernel.name == "chi2":
        total = A[:, None, :] + A[None, :, :]
        distance = np.where(total > 0, apart**2 / np.where(total > 0, total, 1), 0).sum(axis=2)
    else:
        distance = (apart**2 if kernel.name == "rbf" else np.abs(apart)).sum(axis=2)
    return np.exp(-kernel.gamma * distance)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("scale", [1e-25, 1e-12, 1.0, 30.0, 1e8])
@pytest.mark.parametrize("precision", [SINGLE, DOUBLE], ids=["single", "double"])
@pytest.mark.parametrize("name", NATIVE)
def test_errors_of_values_are_within_their_bounds(name, precision, scale, layout):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 25)) * scale * rng.choice([0.0, 1e-3, 1.0], size=(40, 25), p=[0.4, 0.1, 0.5])
    X = np.abs(X) if name == "chi2" else X
    kernel = Kernel(name, gamma=0.3 / (1 + scale), coef0=0.7, degree=3)
    given = layout(X.astype(np.float32) if precision is SINGLE else X)
    rows, every = kernel.core(given), np.arange(40)
    values = np.empty((40, 40), dtype=given.dtype)
    with np.errstate(over="ignore"):
        rows.block(every, every, values, 1)
    entries = np.diff(given.indptr) if sparse.issparse(given) else np.full(40, 25)
    bound = value_errors(kernel, np.asarray(rows.norms()), entries, precision)
    with np.errstate(over="ignore", invalid="ignore"):
        allowed = np.array([bound.of_sums(bound.p[r], bound.q[r]) for r in range(40)])
        off = np.abs(values - exact_values(kernel, X))
        assert np.all((off <= allowed) | (allowed == np.inf))
    sizes = np.array([bound.of_sizes(bound.p[r], bound.q[r]) for r in range(40)])
    assert np.all(np.abs(exact_values(kernel, X)) <= sizes * (1 + 1e-6))
    if scale == 1.0:  # and say something
        assert allowed.max() < 1000 * precision.unit * sizes.max()


@pytest.mark.parametrize("regression", [False, True])
@pytest.mark.parametrize("kernel", [Kernel("rbf", 0.5), Kernel("linear"), Kernel("poly", 0.1, 1.0, 3)], ids=repr)
@pytest.mark.parametrize("solver", [SMO(working_set=16), LASVM(epochs=2)], ids=repr)
def test_running_scores_are_within_their_bounds(solver, kernel, regression, monkeypatch):
    monkeypatch.setattr("pegasos.kernels.gram.MAX_DOUBLE_ROWS", 0)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 6)) * 3 + 2
    y = X[:, 0] + rng.normal(size=300) if regression else np.sign(X[:, 0] - 2 + rng.normal(size=300))
    loss = EpsilonInsensitive(0.1) if regression else Hinge()
    p = kernel_problem(X, y, loss, 1e-3, kernel=kernel, bias="free")
    engine = solver.engine(p, Options(tol=1e-3, max_steps=3000, seed=0))
    assert p.rows(0).single
    for _ in range(40):
        engine.advance()
        (kept,) = engine.point().scores
        exact = p.scores(0, kept.coef)
        reach = kept.drift.reach(np.zeros(300), *p.rows(0).value_errors())
        assert np.all(np.abs(kept.values - exact) <= reach)
    assert kept.coef.any()
    assert reach.max() < 0.02 * np.abs(kept.coef).sum() * np.abs(p.rows(0).diagonal()).max()
    assert judged(engine).score_error[0] <= reach.max()


@pytest.mark.parametrize("solver", ["smo", "lasvm"])
def test_rows_that_single_precision_sees_elsewhere_are_computed(solver):
    """x₁ + x₂ of some rows is 0.8 in double precision and 8 in single, where they seem to lose nothing."""
    rng = np.random.default_rng(0)
    t = rng.choice([-2, -1, -0.5, 0.5, 1, 2], size=6000)
    X, y = np.stack([t, t], axis=1), np.where(rng.random(6000) < 1 / (1 + np.exp(-2 * t)), 1.0, -1.0)
    flat = np.setdiff1d(np.arange(6000), SVC(kernel="linear").fit(X, y).support_)
    moved = rng.choice(flat, 1500, replace=False)
    X[moved] = y[moved, None] * np.array([1e8 + 4.4, -(1e8 + 3.6)])
    model = quiet(SVC(kernel="linear", solver=solver), X, y)
    c, w = model.certificate_, model.coef_[0]
    P = 0.5 * float(w @ w) / 6000 + float(np.maximum(0, 1 - y * (X @ w + model.intercept_[0])).mean())
    assert c.primal == pytest.approx(P, rel=1e-6)
    assert not c.converged or c.dual <= P


def test_an_interrupt_between_dual_variables_and_scores_spoils_nothing(monkeypatch):
    X, y = make_moons(150, noise=0.2, random_state=0)
    y = np.where(y > 0, 1.0, -1.0)
    calls = []

    def interrupted(self, rows, coef, F):
        calls.append(0)
        if len(calls) > 5:
            raise KeyboardInterrupt
        return add(self, rows, coef, F)

    add = NativeRows.add
    monkeypatch.setattr("pegasos.problems.kernel.FULL_CERTIFICATE_VALUES", -1)
    monkeypatch.setattr("pegasos.solvers.kernel.smo_engine.FULL_CERTIFICATE_VALUES", -1)
    monkeypatch.setattr(NativeRows, "add", interrupted)
    model = SVC(gamma=1.0, solver=SMO(working_set=8), on_interrupt="keep").fit(X, y)
    assert model.certificate_.reason == "interrupted"
    K = pairwise.rbf_kernel(X, gamma=1.0)
    assert model.certificate_.primal == pytest.approx(objective(model, K, y, 1.0), rel=1e-9)
    assert model.certificate_.dual <= o.kernel_optimum(K, y, loss="hinge", C=1.0) / 150


# --- kernels that need not be positive semi-definite -----------------------------------------------------------------


@pytest.mark.parametrize("solver", ["smo", "lasvm", "sbp", "sdca", "pegasos", "nystroem", "low_rank"])
@pytest.mark.parametrize("seed", range(5))
def test_sigmoid_kernels_have_no_lower_bound(solver, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(60, 3)), np.where(np.arange(60) % 2, 1.0, -1.0)
    model = quiet(SVC(kernel="sigmoid", gamma=0.06, C=0.3, solver=solver), X, y)
    c = model.certificate_
    assert not c.converged
    assert (c.dual, c.gap, c.relative_gap) == (-np.inf, np.inf, np.inf)
    assert "not positive semi-definite, so there is no lower bound" in c.reason
    K = pairwise.sigmoid_kernel(X, gamma=0.06, coef0=0.0)
    assert c.primal == pytest.approx(objective(model, K, y, 0.3), rel=1e-9)
    if solver in ("smo", "lasvm"):
        assert c.goal_reached
        assert model.fit_status_ == 0


def test_only_fits_that_suffer_from_it_warn_of_a_kernel_that_is_not_positive_semi_definite():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.where(np.arange(60) % 2, 1.0, -1.0)
    mild = SVC(kernel="sigmoid", gamma=0.06, C=0.3).fit(X, y)  # no warning: LIBSVM's criterion is met
    assert "not positive semi-definite" in mild.certificate_.reason
    with pytest.warns(ConvergenceWarning, match="not positive semi-definite.*not convex"):
        SVC(kernel="sigmoid", gamma=5.0, coef0=-2.0, C=10.0).fit(X, y)  # steps of negative curvature
    with pytest.warns(ConvergenceWarning, match="not positive semi-definite.*not convex"):
        SVC(kernel="sigmoid", gamma=0.06, C=0.3, solver="sdca").fit(X, y)  # it gives up early


@pytest.mark.parametrize("solver", ["smo", "lasvm", "sbp", "sdca", "pegasos"])
def test_what_is_too_large_to_be_proven_is_not_claimed(solver, monkeypatch):
    """The same kernel under its name, and as a matrix of which nothing is known: the same model, without a warning."""
    monkeypatch.setattr("pegasos.problems.kernel.MAX_CHECKED_ROWS", 50)
    X, y = make_moons(120, noise=0.2, random_state=0)
    K = pairwise.rbf_kernel(X, gamma=1.0)
    known = SVC(gamma=1.0, solver=solver, tol=0.05).fit(X, y)
    unknown = SVC(kernel="precomputed", solver=solver, tol=0.05).fit(K, y)
    c = unknown.certificate_
    assert known.certificate_.converged
    assert c.goal_reached
    assert not c.converged
    assert c.dual == -np.inf
    assert "not known to be positive semi-definite" in c.reason
    assert "not converged" not in str(c)
    assert unknown.fit_status_ == 0
    assert c.primal == pytest.approx(known.certificate_.primal, rel=0.06)
    if solver == "sbp":
        assert unknown.sbp_[0].upper == np.inf


@pytest.mark.parametrize("kernel", ["poly", "sigmoid", "precomputed", "function"])
def test_what_need_not_be_positive_semi_definite_can_be_proven(kernel):
    """A polynomial with a constant below zero, which is positive all the same on these rows; and so on."""
    X, y = make_moons(80, noise=0.2, random_state=1)
    y = np.where(y > 0, 1.0, -1.0)
    X = np.hstack([X, 4 * np.eye(80)])
    K = {
        "poly": lambda A, B: pairwise.polynomial_kernel(A, B, degree=1, gamma=1.0, coef0=-0.01),
        "sigmoid": lambda A, B: pairwise.sigmoid_kernel(A, B, gamma=0.05, coef0=0.0),
        "precomputed": pairwise.linear_kernel,
        "function": pairwise.linear_kernel,
    }[kernel]
    values = K(X, X)
    assert np.linalg.eigvalsh(values)[0] > -1e-9
    shared = {"gamma": 1.0 if kernel == "poly" else 0.05, "degree": 1, "coef0": -0.01 if kernel == "poly" else 0.0}
    how = K if kernel == "function" else kernel
    model = SVC(kernel=how, **shared, tol=1e-6).fit(values if kernel == "precomputed" else X, y)
    star = o.kernel_optimum(values, y, loss="hinge", C=1.0) / len(y)
    assert model.certificate_.converged
    assert star * (1 - 1e-5) <= model.certificate_.dual <= star * (1 + 1e-8)


def test_matrices_in_single_precision_are_positive_up_to_their_rounding():
    X, y = make_moons(200, noise=0.2, random_state=1)
    K = pairwise.rbf_kernel(X, gamma=0.5)
    single = K.astype(np.float32)
    assert np.linalg.eigvalsh(single.astype(np.float64))[0] < -1e-8  # strictly, they are not
    model = SVC(kernel="precomputed").fit(single, y)
    star = o.kernel_optimum(K, np.where(y > 0, 1.0, -1.0), loss="hinge", C=1.0) / 200
    assert model.certificate_.converged
    assert model.certificate_.dual <= star


def test_the_check_knows_definite_matrices_from_others():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(60, 20))
    low_rank = A @ A.T
    assert definite_module.check(low_rank.copy()).known == "proven"
    assert definite_module.check(np.zeros((5, 5))) == ("proven", 0.0)
    assert definite_module.check(np.array([[0.0, 1.0], [1.0, 0.0]])).known == "refuted"
    values, vectors = np.linalg.eigh(low_rank)
    for size in (1e-3, 1.0, 100.0):
        spoilt = values.copy()
        spoilt[0] = -size
        assert definite_module.check((vectors * spoilt) @ vectors.T).known == "refuted"
    proven = definite_module.check(low_rank.copy())
    assert 0 < proven.shift < 1e-9 * np.abs(low_rank).max()


def test_rows_without_weight_are_no_part_of_the_problem():
    X, y = make_moons(60, noise=0.2, random_state=0)
    K = pairwise.rbf_kernel(X, gamma=1.0)
    K[0, 0], weight = -1.0, np.ones(60)
    weight[0] = 0.0
    assert SVC(kernel="precomputed").fit(K, y, sample_weight=weight).certificate_.converged
    assert not quiet(SVC(kernel="precomputed"), K, y).certificate_.converged


@pytest.mark.parametrize("loss", ["squared_hinge", "log", "smoothed_hinge"])
def test_losses_of_unbounded_slope_have_bounds_of_proven_kernels(loss):
    X, y = make_moons(60, noise=0.2, random_state=0)
    K = pairwise.rbf_kernel(X, gamma=1.0)
    c = SVC(kernel="precomputed", loss=loss, tol=1e-4).fit(K, y).certificate_
    star = o.optimum(features(K), np.where(y > 0, 1.0, -1.0), loss=loss, lam=1 / 60, bias="unregularized").primal
    assert c.converged
    assert c.dual <= star * (1 + 1e-9)


# --- approximations and other goals ----------------------------------------------------------------------------------


@cache
def moons_optimum():
    X, y = make_moons(300, noise=0.2, random_state=0)
    K = pairwise.rbf_kernel(X, gamma=2)
    return o.kernel_optimum(K, np.where(y > 0, 1.0, -1.0), loss="hinge", C=10) / 3000


@pytest.mark.parametrize("exact_bound", ["auto", True, False])
def test_nystroem_bounds_the_exact_optimum(exact_bound):
    X, y = make_moons(300, noise=0.2, random_state=0)
    t = np.where(y > 0, 1.0, -1.0)
    model = SVC(C=10, gamma=2, solver=Nystroem(10, exact_bound=exact_bound)).fit(X, y)
    c, K = model.certificate_, pairwise.rbf_kernel(X, gamma=2)
    star = moons_optimum()
    assert 0 <= c.dual <= star <= c.primal
    assert (c.dual > 0) == bool(exact_bound)
    assert not c.converged
    assert c.goal_reached
    assert model.fit_status_ == 0
    assert 0 <= c.restricted_gap <= 1e-3 * c.primal
    assert c.primal == pytest.approx(objective(model, K, t, 10), rel=1e-9)
    # P − restricted_gap bounds the best weights in the span.
    at = np.sort(np.random.default_rng(0).permutation(300)[:10])
    values, vectors = np.linalg.eigh(K[np.ix_(at, at)])
    span = o.optimum(K[:, at] @ (vectors / np.sqrt(values)), t, loss="hinge", lam=1 / 3000, bias="unregularized").primal
    assert set(model.support_) == set(at)
    assert c.primal - c.restricted_gap <= span * (1 + 1e-8)
    assert span <= c.primal * (1 + 1e-8)


def test_nystroem_with_single_precision_features_reports_the_objective_of_its_model(monkeypatch):
    monkeypatch.setattr("pegasos.solvers.kernel.spans.MAX_DOUBLE_ENTRIES", 0)
    X, y = make_moons(300, noise=0.2, random_state=0)
    model = SVC(C=10, gamma=2, solver=Nystroem(20)).fit(X, y)
    P = objective(model, pairwise.rbf_kernel(X, gamma=2), np.where(y > 0, 1.0, -1.0), 10)
    assert model.certificate_.primal == pytest.approx(P, rel=1e-9)


def test_the_exact_bound_is_left_out_where_it_costs_more_than_the_fit(monkeypatch):
    monkeypatch.setattr("pegasos.solvers.kernel.nystroem.EXACT_BOUND_VALUES", 0)
    X, y = make_moons(400, noise=0.4, random_state=0)
    shared = {"gamma": 1.0, "C": 0.01}
    assert SVC(solver=Nystroem(1), **shared).fit(X, y).certificate_.dual == 0.0
    assert SVC(solver=Nystroem(1, exact_bound=True), **shared).fit(X, y).certificate_.dual > 0
    assert SVC(solver=Nystroem(200), **shared).fit(X, y).certificate_.dual > 0
    with pytest.raises(ValueError, match="exact_bound='yes' must be 'auto', True or False"):
        Nystroem(exact_bound="yes")


def test_a_limit_does_not_cost_nystroem_its_bound():
    x = np.linspace(0, 6, 200)[:, None]
    with pytest.warns(ConvergenceWarning, match="max_iter reached"):
        model = SVR(gamma=1.0, solver=Nystroem(30), max_iter=2, tol=1e-12).fit(x, np.sin(x[:, 0]))
    assert 0 < model.certificate_.dual < model.certificate_.primal


def test_sbp_says_what_was_reached_and_what_was_not():
    X, y = make_moons(200, noise=0.2, random_state=0)
    model = SVC(gamma=1.0, solver=SBP(nu=0.3), tol=0.1).fit(X, y)  # no warning
    own, c = model.sbp_[0], model.certificate_
    assert own.level <= own.upper <= own.level / 0.9
    assert c.goal_reached
    assert not c.converged
    assert str(c).startswith(
        "the solver's own goal was reached, a gap of tol was not (the level is within tol of its upper bound): primal"
    )
    assert model.fit_status_ == 0


def test_sbp_reports_the_level_of_the_weights_that_it_returns(monkeypatch):
    """x₁ + x₂ of some rows, which are hardly ever drawn, is 0.8 in double precision and 8 in single."""
    monkeypatch.setattr("pegasos.kernels.gram.MAX_DOUBLE_ROWS", 0)
    t = np.tile([-2, -1, -0.5, 0.5, 1, 2], 5)
    X, y, weight = np.stack([t, t], axis=1), np.sign(t), np.where(np.arange(30) < 24, 1.0, 1e-12)
    X[24:] = y[24:, None] * np.array([1e8 + 4.4, -(1e8 + 3.6)])
    model = quiet(SVC(kernel="linear", solver=SBP(nu=0.0, max_steps=400), tol=0.1), X, y, sample_weight=weight)
    own, (w,) = model.sbp_[0], model.coef_
    level, _ = o.best_slack_level(y * (X @ w) * own.level, y, weight, 0.0)
    assert own.level == pytest.approx(level, rel=1e-6)
    assert float(np.linalg.norm(w)) <= 1 / own.level
    assert own.level <= own.upper


def test_new_fields_go_through_model_files_and_old_ones_still_load(tmp_path):
    X, y = make_moons(100, noise=0.2, random_state=0)
    model = SVC(gamma=1.0, solver=Nystroem(5)).fit(X, y)
    save(model, tmp_path / "a.model")
    again = load(tmp_path / "a.model")
    assert again.certificate_ == model.certificate_
    assert again.certificate_.restricted_gap is not None
    assert again.solver == model.solver
    plain = LinearSVC().fit(X, y)
    save(plain, tmp_path / "b.model")
    text = (tmp_path / "b.model").read_bytes()
    assert b"restricted_gap" not in text  # readable by versions that do not know of it
    assert b"goal_reached" not in text
    assert load(tmp_path / "b.model").certificate_ == plain.certificate_


@pytest.mark.parametrize("name", ["W", "b"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_saved_coefficients_are_numbers(name, value):
    """A checkpoint file may hold anything."""
    p = kernel_problem(np.eye(3), [1.0, -1.0, 1.0], Hinge(), 0.1)
    good = {"W": np.ones(3), "b": np.zeros(1)}
    assert p.model_of(good).coef.tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(ValueError, match=f"state: '{name}' has a value outside"):
        p.model_of(good | {name: np.full_like(good[name], value)})
