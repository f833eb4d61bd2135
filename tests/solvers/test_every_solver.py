"""Every solver of every estimator: D ≤ P* ≤ P, where P* is that of the exact problem by an independent solver, and P is
the objective of the returned model, computed from its public attributes alone.

The loops go over the tables of losses and solvers, so that a new entry is tested by being there.
"""

from __future__ import annotations

import warnings
from dataclasses import fields
from functools import cache
from itertools import combinations

import numpy as np
import oracles as o
import pytest
from conftest import CASES, ORACLE_BIAS, features, kind_of, oracle, toy
from scipy import sparse
from sklearn.metrics import pairwise

from pegasos import SVC, SVR, LinearSVC, LinearSVR
from pegasos.losses import LOSSES
from pegasos.solvers import KERNEL_SOLVERS, SBP, SOLVERS, Auto, KernelSolver, Nystroem, resolve

LAM, FEATURE, GAMMA = 0.02, 0.7, 0.6

#: A fit that is cut off, and one that may reach its goal.
LIMITS = {"short": {"max_iter": 3, "tol": 1e-9}, "long": {"max_iter": 1000, "tol": 1e-2}}

#: Forms of solvers of kernel machines beside their defaults.
MORE_KERNEL = [SBP(nu=0.2), Nystroem(6), Nystroem(6, exact_bound=False), Nystroem(6, exact_bound=True)]
KINDS = {"classification": ("margin", "joint"), "regression": ("regression",)}

#: Kernels and what scikit-learn calls them; the first is for all losses, the others for those with a kink.
KERNELS = {
    "rbf": lambda A, B: pairwise.rbf_kernel(A, B, gamma=GAMMA),
    "linear": pairwise.linear_kernel,
    "poly": lambda A, B: pairwise.polynomial_kernel(A, B, gamma=GAMMA, degree=2, coef0=0.5),
    "laplacian": lambda A, B: pairwise.laplacian_kernel(A, B, gamma=GAMMA),
    "chi2": lambda A, B: pairwise.chi2_kernel(A, B, gamma=GAMMA),
}


def names(table, *others):
    return [*table, *others]


def linear_cases():
    for solver, cls in SOLVERS.items():
        for loss in CASES:
            for intercept in ("none", "feature", *cls.intercepts):
                if loss.name not in cls.losses or (loss.kind == "joint" and intercept in ("batch", "search")):
                    continue
                batches = intercept == "batch" and any(field.name == "batch_size" for field in fields(cls))
                yield cls(batch_size=4) if batches else solver, loss, intercept


def kernel_cases():
    for solver in names(KERNEL_SOLVERS, *MORE_KERNEL):
        able = resolve(solver, "kernel")
        for loss in CASES:
            for intercept in able.intercepts:
                if loss.name in able.losses:
                    yield solver, loss, intercept


@cache
def rows(loss, classes=None):
    """Rows, targets and weights, of which some are zero; no two rows are alike."""
    X, y = toy(loss, 34, 3, classes=classes, seed=3)
    weight = np.random.default_rng(4).uniform(0.3, 2, len(y))
    weight[5:8] = 0.0
    return np.abs(X) if classes is None else X, y, weight


@cache
def optimum(loss, bias, target, kernel=None):
    """P* for a tuple of targets: of linear machines, or of those with the features of a kernel."""
    X, _, weight = rows(loss, *CLASSES.get(target, ()))
    Z = X if kernel is None else features(KERNELS[kernel](X, X))
    y = np.array(target, dtype=np.int64 if loss.kind == "joint" else float)
    used = weight > 0  # rows without weight are no part of the problem, and cannot be of a span
    return o.optimum(
        Z[used], y[used], loss=oracle(loss), lam=LAM, weight=weight[used], bias=ORACLE_BIAS[bias], B=FEATURE
    ).primal


#: Which rows a tuple of targets belongs to, where they are not those of two classes.
CLASSES: dict[tuple[float, ...], tuple[int]] = {}


def value(loss, scores, y, weight, squared_norm, b, bias):
    """P of given scores, with bias, and ‖w‖²."""
    penalty = squared_norm + (float(np.sum(np.square(b))) / FEATURE**2 if bias == "feature" else 0.0)
    return LAM / 2 * penalty + float(weight @ oracle(loss).value(scores, y)) / float(weight.sum())


def fitted(model, X, y, weight):
    """The model, whatever it warns of; None if its steps were so long that it has left the range of numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return model.fit(X, y, sample_weight=weight)
        except ValueError as error:
            if "left the range of floating-point numbers" not in str(error):
                raise
            return None


def sandwiched(certificate, star, P):
    slack = 1e-8 * abs(star) + 1e-12
    assert certificate.dual <= star + slack, certificate
    assert star - slack <= P, certificate
    assert certificate.primal == pytest.approx(P, rel=1e-9), certificate
    assert certificate.gap >= (P - star) * (1 - 1e-9) - slack


def settings(intercept, **others):
    way = {"fit_intercept": False} if intercept == "none" else {"intercept": intercept}
    return way | {"lam": LAM, "intercept_scaling": FEATURE, "random_state": 0, **others}


# --- linear machines -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize(("solver", "loss", "intercept"), list(linear_cases()), ids=str)
def test_linear_machines(solver, loss, intercept, limits):
    X, y, weight = rows(loss)
    estimator = LinearSVR if loss.kind == "regression" else LinearSVC
    model = fitted(estimator(solver=solver, loss=loss, **settings(intercept, **LIMITS[limits])), X, y, weight)
    if model is None:
        assert solver in ("norma", "sgd")  # their steps are the user's to choose
        return
    W, b, bias = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_), kind_of(intercept)
    if model.certificate_.primal == np.inf:  # the weights are on their way out of the range of numbers
        assert solver in ("norma", "sgd")
        assert np.abs(W).max() > 1e150
        assert not model.certificate_.converged
        assert model.certificate_.dual <= optimum(loss, bias, tuple(y.tolist())) * (1 + 1e-8)
        return
    scores = X @ W.T + b
    scores = scores if loss.kind == "joint" else scores[:, 0]
    P = value(loss, scores, y, weight, float(np.square(W).sum()), b, bias)
    sandwiched(model.certificate_, optimum(loss, bias, tuple(y.tolist())), P)


@pytest.mark.parametrize("solver", list(SOLVERS))
def test_linear_machines_of_several_classes(solver):
    loss = next(cls() for cls in LOSSES.values() if cls.kind == "margin" and cls.name in SOLVERS[solver].losses)
    X, y, weight = rows(loss, 3)
    intercept, bias = ("unregularized", "free") if "unregularized" in SOLVERS[solver].intercepts else ("feature",) * 2
    model = fitted(LinearSVC(solver=solver, loss=loss, **settings(intercept, max_iter=20)), X, y, weight)
    P, star = 0.0, 0.0
    for k, (w, b) in enumerate(zip(model.coef_, model.intercept_, strict=True)):
        t = np.where(y == k, 1.0, -1.0)
        CLASSES[tuple(t.tolist())] = (3,)
        star += optimum(loss, bias, tuple(t.tolist()))
        P += value(loss, X @ w + b, t, weight, float(w @ w), b, bias)
    sandwiched(model.certificate_, star, P)


# --- kernel machines -------------------------------------------------------------------------------------------------


def kernel_model(solver, loss, intercept, **others):
    estimator = SVR if loss.kind == "regression" else SVC
    kernel = {"kernel": "rbf", "gamma": GAMMA, "degree": 2, "coef0": 0.5}
    return estimator(solver=solver, loss=loss, **kernel | settings(intercept) | others)


def dense(coef):
    return coef.toarray() if sparse.issparse(coef) else coef


def kernel_value(model, K, loss, y, weight, bias):
    """P of a fitted model of one part, from its support vectors and coefficients."""
    coef, at, b = dense(model.dual_coef_)[0], model.support_, float(model.intercept_[0])
    norm = float(coef @ K[np.ix_(at, at)] @ coef)
    return value(loss, K[:, at] @ coef + b, y, weight, norm, b, bias)


@pytest.mark.parametrize(("limits", "small"), [("short", 2000), ("long", 0)])  # double and single precision
@pytest.mark.parametrize(("solver", "loss", "intercept"), list(kernel_cases()), ids=str)
def test_kernel_machines(solver, loss, intercept, limits, small, monkeypatch):
    monkeypatch.setattr("pegasos.kernels.gram.MAX_DOUBLE_ROWS", small)
    if not small:  # nor are all scores computed because they are few
        monkeypatch.setattr("pegasos.problems.kernel.FULL_CERTIFICATE_VALUES", -1)
        monkeypatch.setattr("pegasos.solvers.kernel.smo_engine.FULL_CERTIFICATE_VALUES", -1)
    X, y, weight = rows(loss)
    model = fitted(kernel_model(solver, loss, intercept, **LIMITS[limits]), X, y, weight)
    bias = kind_of(intercept)
    P = kernel_value(model, KERNELS["rbf"](X, X), loss, y, weight, bias)
    sandwiched(model.certificate_, optimum(loss, bias, tuple(y.tolist()), "rbf"), P)


@pytest.mark.parametrize("intercept", ["unregularized", "none"])
@pytest.mark.parametrize("given", ["name", "precomputed", "function"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("solver", names(KERNEL_SOLVERS, *MORE_KERNEL), ids=str)
def test_kernels(solver, kind, kernel, given, intercept):
    able = resolve(solver, "kernel")
    losses = [cls() for cls in LOSSES.values() if cls.kind in KINDS[kind] and cls.name in able.losses]
    if not losses or intercept not in able.intercepts or (given == "precomputed" and isinstance(able, Nystroem)):
        return
    X, y, weight = rows(losses[0])
    K = KERNELS[kernel](X, X)
    how = {"name": kernel, "precomputed": "precomputed", "function": KERNELS[kernel]}[given]
    model = kernel_model(solver, losses[0], intercept, kernel=how, tol=1e-2, max_iter=2000)
    fitted(model, K if given == "precomputed" else X, y, weight)
    P = kernel_value(model, K, losses[0], y, weight, kind_of(intercept))
    sandwiched(model.certificate_, optimum(losses[0], kind_of(intercept), tuple(y.tolist()), kernel), P)
    assert model.certificate_.dual >= -1e-9  # all of them are positive semi-definite, and are known to be


@pytest.mark.parametrize("intercept", ["unregularized", "none"])
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("solver", names(KERNEL_SOLVERS, *MORE_KERNEL), ids=str)
def test_kernel_machines_of_several_classes(solver, multi_class, intercept):
    if intercept not in resolve(solver, "kernel").intercepts:
        return
    loss = next(
        cls() for cls in LOSSES.values() if cls.name in resolve(solver, "kernel").losses and cls.kind == "margin"
    )
    X, y, weight = rows(loss, 3)
    weight = np.ones(len(y))  # of pairs of classes the total weight is that of all
    model = fitted(kernel_model(solver, loss, intercept, multi_class=multi_class, tol=1e-2), X, y, weight)
    K, scores = KERNELS["rbf"](X, X), model._scores(X)
    P = star = 0.0
    for part, coef in enumerate(model._machine().functions):
        pair = list(combinations(range(3), 2))[part]
        own = np.ones(len(y), dtype=bool) if multi_class == "ovr" else np.isin(y, pair)
        t = np.where(y == (part if multi_class == "ovr" else pair[0]), 1.0, -1.0)[own]
        share = float(own.mean())
        norm = float(coef @ K[np.ix_(model.support_, model.support_)] @ coef)
        P += LAM / 2 * norm + share * float(np.mean(oracle(loss).value(scores[own, part], t)))
        Z = features(K[np.ix_(own, own)])
        star += share * o.optimum(Z, t, loss=oracle(loss), lam=LAM / share, bias=ORACLE_BIAS[kind_of(intercept)]).primal
    sandwiched(model.certificate_, star, P)


def test_the_loops_leave_nobody_out():
    assert {solver if isinstance(solver, str) else solver.name for solver, *_ in linear_cases()} == set(SOLVERS)
    assert {resolve(solver, "kernel").name for solver, *_ in kernel_cases()} == set(KERNEL_SOLVERS)
    assert issubclass(SOLVERS["auto"], Auto)
    assert all(isinstance(resolve(solver, "kernel"), KernelSolver) for solver in KERNEL_SOLVERS)
