"""Streams of rows: targets of any scale, means of the iterates, and what is kept of the past."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_diabetes, make_friedman1, make_regression
from sklearn.linear_model import SGDRegressor
from sklearn.preprocessing import StandardScaler

import pegasos
from pegasos import SGD, SVC, SVR, LinearSVC, LinearSVR, Norma, Pegasos
from pegasos.fit.trace import Checkpoint, Trace
from pegasos.losses import Huber

DIABETES = load_diabetes(return_X_y=True)
DIABETES = StandardScaler().fit_transform(DIABETES[0]), DIABETES[1]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = np.where(X @ [1.0, -1.0, 0.5, 0.0] + 0.3 * RNG.normal(size=60) > 0, 1, -1)
T = X @ [1.0, -1.0, 0.5, 0.0] + 3 + 0.3 * RNG.normal(size=60)


def epochs(model, rows, targets, count, size=None):
    for _ in range(count):
        for first in range(0, len(targets), size or len(targets)):
            model.partial_fit(
                rows[first : first + (size or len(targets))], targets[first : first + (size or len(targets))]
            )
    return model


# --- targets of any scale --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [None, 50, 7])
@pytest.mark.parametrize("data", ["diabetes", "linear", "friedman", "small"])
def test_regression_in_pieces_is_as_good_as_scikit_learns(data, size):
    rows, targets = {
        "diabetes": lambda: DIABETES,
        "linear": lambda: make_regression(1000, 20, noise=10.0, random_state=0),
        "friedman": lambda: make_friedman1(1000, noise=1.0, random_state=0),
        "small": lambda: (X, 1e-3 * T),
    }[data]()
    rows = StandardScaler().fit_transform(rows)
    order = np.random.default_rng(0).permutation(len(targets))
    rows, targets = rows[order], targets[order]
    theirs = epochs(SGDRegressor(alpha=1e-3, random_state=0), rows, targets, 20, size).score(rows, targets)
    ours = epochs(LinearSVR(lam=1e-3), rows, targets, 20, size).score(rows, targets)
    assert ours > theirs - 0.02


@pytest.mark.parametrize("factor", [2.0**-20, 2.0**10])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "quantile", "squared"])
@pytest.mark.parametrize("make", [LinearSVR, lambda **kw: SVR(gamma=0.3, epsilon=0.0, **kw)], ids=["linear", "kernel"])
@pytest.mark.parametrize("solver", ["auto", "pegasos"])
def test_the_scale_of_targets_does_not_matter(make, loss, factor, solver):
    """λ/2‖w‖² + |y − z| of targets s·y and λ/s is s times that of y and λ; of squares, s² times with the same λ."""
    lam = 0.01 if loss == "squared" else 0.01 / factor
    one = epochs(make(loss=loss, lam=0.01, solver=solver), X, T, 2, 20)
    other = epochs(make(loss=loss, lam=lam, solver=solver), X, factor * T, 2, 20)
    assert_allclose(other.predict(X), factor * one.predict(X), rtol=1e-9)


@pytest.mark.parametrize("make", [LinearSVR, lambda **kw: SVR(gamma=0.3, epsilon=0.0, **kw)], ids=["linear", "kernel"])
def test_nor_does_where_they_lie(make):
    one = epochs(make(lam=0.01), X, T, 2, 20)
    other = epochs(make(lam=0.01), X, T + 1e5, 2, 20)
    assert_allclose(other.predict(X), one.predict(X) + 1e5, rtol=1e-9)


def test_huber_far_from_its_minimum_is_an_absolute_loss():
    far = epochs(LinearSVR(loss=Huber(delta=0.5), lam=1e-3), X, 1e3 * T, 10)
    absolute = epochs(LinearSVR(lam=2e-3), X, 1e3 * T, 10)
    assert_allclose(far.predict(X), absolute.predict(X), rtol=0.02)


def test_an_explicit_t0_is_as_published():
    """w ← (1 − 1/t) w + sign(r) x/(λt), b ← b + sign(r)/√t, from zero."""
    lam, w, b = 0.1, np.zeros(4), 0.0
    model = LinearSVR(lam=lam, solver=Pegasos(t0=0))
    for t, (x, y) in enumerate(zip(X, T, strict=True), start=1):
        slope = np.sign(y - (x @ w + b))
        w, b = (1 - 1 / t) * w + slope * x / (lam * t), b + slope / np.sqrt(t)
        model.partial_fit(x[None], [y])
    assert_allclose(model.coef_, w, rtol=1e-9)
    assert_allclose(model.intercept_, b, rtol=1e-9)


def test_rows_of_another_length_do_not_throw_a_stream_off():
    """t0 follows the mean length of all rows; the weights stay where they are when it changes."""
    rows = np.concatenate([1e-3 * X[:1], X[1:]])
    model = LinearSVC(lam=1e-3).partial_fit(rows[:1], Y[:1], classes=[-1, 1])
    for first in range(1, 60, 4):
        model.partial_fit(rows[first : first + 4], Y[first : first + 4])
    assert np.linalg.norm(model.coef_) < 5
    assert model.score(X, Y) > 0.85
    kernel = SVC(kernel="linear", lam=1e-3).partial_fit(rows[:1], Y[:1], classes=[-1, 1])
    for first in range(1, 60, 4):
        kernel.partial_fit(rows[first : first + 4], Y[first : first + 4])
    assert_allclose(kernel.coef_, model.coef_, rtol=1e-8)


# --- what is kept of the past ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [LinearSVR, lambda **kw: SVR(gamma=0.3, **kw)], ids=["linear", "kernel"])
def test_a_long_stream_keeps_a_bounded_trace(make, tmp_path, monkeypatch):
    monkeypatch.setattr(Trace.append_thinned, "__defaults__", (20,))
    model = make(lam=0.5)
    for call in range(200):
        model.partial_fit(X[call % 60 : call % 60 + 1], T[call % 60 : call % 60 + 1])
        at = [point.epochs for point in model.trace_]
        assert len(at) <= 20
        assert (at[0], at[-1]) == (1.0, call + 1.0)
        assert at == sorted(set(at))
        assert model.n_iter_ == model.certificate_.epochs == call + 1
    assert np.diff(at)[0] > np.diff(at)[-1] == 1
    pegasos.save(model, tmp_path / "model")
    again = pegasos.load(tmp_path / "model")
    assert list(again.trace_) == list(model.trace_)
    assert again.n_iter_ == 200
    if make is LinearSVR:
        assert again.partial_fit(X[:1], T[:1]).n_iter_ == 201


def test_a_short_trace_is_kept_whole():
    trace = Trace()
    for k in range(1000):
        trace.append_thinned(Checkpoint(float(k), 0.0, 1.0, 0.0, 1.0, 1.0))
    assert [point.epochs for point in trace] == list(range(1000))
    trace.append_thinned(Checkpoint(1000.0, 0.0, 1.0, 0.0, 1.0, 1.0))
    assert [point.epochs for point in trace] == [*range(0, 1000, 2), 1000]


# --- means -----------------------------------------------------------------------------------------------------------

INTERCEPTS = [{}, {"intercept": "feature", "intercept_scaling": 0.7}, {"fit_intercept": False}]


def iterates(model, rows, targets, **first):
    """Weights and bias before each row, and after the last; rows come one by one."""
    seen = [np.zeros(rows.shape[1] + 1)]
    for i in range(len(targets)):
        model.partial_fit(rows[i : i + 1], targets[i : i + 1], **(first if i == 0 else {}))
        seen.append(np.append(np.ravel(model.coef_), model.intercept_))
    return np.array(seen)


def mean_of(seen, output, T):
    """The mean of the iterates that rows saw, of all or of those since half to three quarters of the rows."""
    window, later = 0, 0
    for t in range(1, T + 1):
        if t >= 2 * later:
            window, later = later, t
    return seen[window:T].mean(axis=0) if output == "suffix" else seen[:T].mean(axis=0)


@pytest.mark.parametrize("output", ["average", "suffix"])
@pytest.mark.parametrize("more", INTERCEPTS, ids=repr)
@pytest.mark.parametrize("solver", [Pegasos(t0=4.0), Pegasos(projection=True), Norma(), SGD()], ids=repr)
def test_means_are_those_of_the_iterates(solver, more, output):
    from dataclasses import replace

    last, mean = (
        LinearSVC(lam=0.05, solver=solver, **more),
        LinearSVC(lam=0.05, solver=replace(solver, output=output), **more),
    )
    seen = iterates(last, X, Y, classes=[-1, 1])
    found = iterates(mean, X, Y, classes=[-1, 1])
    for t in (1, 2, 3, 10, 33, 60):
        assert_allclose(found[t], mean_of(seen, output, t), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("output", ["average", "suffix"])
@pytest.mark.parametrize("intercept", ["unregularized", "feature"])
def test_means_of_pieces_are_means_of_rows(output, intercept):
    """In pieces of 10, visited in the order of the file, as in pieces of one."""
    how = {"lam": 0.05, "intercept": intercept, "solver": Pegasos(t0=4.0, output=output, sampling="fixed")}
    rows, labels = X[:40], Y[:40]
    model = LinearSVC(**how)
    for first in range(0, 40, 10):
        model.partial_fit(rows[first : first + 10], labels[first : first + 10], classes=[-1, 1])
    orders = [pegasos._core.epoch_order(10, "fixed", first, 0) + first for first in range(0, 40, 10)]
    order = np.concatenate(orders)
    seen = iterates(LinearSVC(**how | {"solver": Pegasos(t0=4.0)}), rows[order], labels[order], classes=[-1, 1])
    # After 40 rows the marks lie at 10, 20 and 40: the window has just moved to 20.
    expected = seen[20:40] if output == "suffix" else seen[:40]
    assert_allclose(np.append(model.coef_, model.intercept_), expected.mean(axis=0), rtol=1e-9)
    assert model.certificate_.primal == pytest.approx(value(model, rows[30:], labels[30:], 0.05), rel=1e-12)


def value(model, rows, labels, lam):
    w, b = model.coef_[0], model.intercept_[0]
    squares = w @ w + (b**2 if model.intercept == "feature" else 0.0)
    return lam / 2 * squares + np.maximum(0, 1 - labels * (rows @ w + b)).mean()


@pytest.mark.parametrize("output", ["average", "suffix"])
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("projection", [False, True])
def test_means_of_kernel_machines(multi_class, output, projection):
    """Scores are linear in the iterates, so those of a mean are the mean of theirs; pairs count their own rows."""
    labels, count = np.arange(60) % 3, 40
    how = {"gamma": 0.3, "lam": 0.05, "multi_class": multi_class, "decision_function_shape": multi_class}
    last = SVC(solver=Pegasos(t0=4.0, projection=projection), **how)
    mean = SVC(solver=Pegasos(t0=4.0, projection=projection, output=output), **how)
    seen = [np.zeros((60, 3))]
    for i in range(count):
        for model in (last, mean):
            model.partial_fit(X[i : i + 1], labels[i : i + 1], classes=[0, 1, 2])
        seen.append(last.decision_function(X))
    window = {"average": 0, "suffix": 16}[output]  # the marks lie at 1, 2, 4, 8, 16 and 32 rows
    expected = np.zeros((60, 3))
    for k, classes in enumerate([(0, 1), (0, 2), (1, 2)] if multi_class == "ovo" else [(0, 1, 2)] * 3):
        own = [i for i in range(window, count) if labels[i] in classes]
        expected[:, k] = np.mean([seen[i][:, k] for i in own], axis=0)
    assert_allclose(mean.decision_function(X), expected, rtol=1e-8, atol=1e-10)
    assert last.partial_fit(X[:1], labels[:1]).n_iter_.tolist() == [count + 1] * 3


def test_a_kernel_regression_in_pieces_is_a_mean_by_default():
    rows, targets = make_friedman1(400, n_features=5, noise=1.0, random_state=0)
    rows = StandardScaler().fit_transform(rows)
    scores = {}
    for name, solver in (("auto", "auto"), ("last", Pegasos()), ("suffix", Pegasos(output="suffix"))):
        model = epochs(SVR(gamma=0.1, lam=1e-5, solver=solver), rows, 100 * targets, 3, 50)
        scores[name] = model.score(rows, 100 * targets)
    assert scores["auto"] == scores["suffix"]
    assert scores["auto"] > max(0.8, scores["last"])


@pytest.mark.parametrize("loss", ["multinomial", "hinge"])
@pytest.mark.parametrize("output", ["average", "suffix"])
def test_a_saved_stream_of_means_goes_on(tmp_path, loss, output):
    labels = np.arange(60) % (2 if loss == "multinomial" else 3)
    model = LinearSVC(lam=0.05, loss=loss, solver=Pegasos(output=output, batch_size=3))
    for first in range(0, 40, 8):
        model.partial_fit(X[first : first + 8], labels[first : first + 8], classes=np.unique(labels))
    pegasos.save(model, tmp_path / "model")
    again = pegasos.load(tmp_path / "model")
    assert_array_equal(again.coef_, model.coef_)
    for first in range(40, 60, 7):
        for stream in (model, again):
            stream.partial_fit(X[first : first + 7], labels[first : first + 7])
    assert_allclose(again.coef_, model.coef_, rtol=1e-9, atol=1e-12)
    assert_allclose(again.intercept_, model.intercept_, rtol=1e-9, atol=1e-12)
    assert again.n_iter_ == model.n_iter_ == 8


def test_a_saved_regression_goes_on_by_default(tmp_path):
    model = LinearSVR(lam=0.05).partial_fit(X[:5], T[:5])
    pegasos.save(model, tmp_path / "model")
    again = pegasos.load(tmp_path / "model").partial_fit(X[5:], T[5:])
    assert_allclose(again.coef_, model.partial_fit(X[5:], T[5:]).coef_, rtol=1e-9)


def test_a_mean_after_a_fit_begins_with_the_fitted_weights():
    fitted = LinearSVC(lam=0.05, solver=Pegasos(output="average"), tol=0.5).fit(X, Y)
    w = fitted.coef_.copy()
    step = LinearSVC(lam=0.05, solver=Pegasos(), tol=0.5).fit(X, Y)
    step.coef_, step.intercept_ = w.copy(), fitted.intercept_.copy()
    fitted.partial_fit(
        X[:1], Y[:1]
    )  # sixty rows count as the weights that they led to, and the first step saw them, too
    assert_allclose(fitted.coef_, w, rtol=1e-12)
    fitted.partial_fit(X[1:2], Y[1:2])
    step.partial_fit(X[:1], Y[:1])
    assert_allclose(fitted.coef_, (61 * w + step.coef_) / 62, rtol=1e-12)


def test_averaging_may_begin_late():
    model = LinearSVC(lam=0.05).partial_fit(X[:30], Y[:30], classes=[-1, 1])
    w = model.coef_.copy()
    model.set_params(solver=Pegasos(output="average")).partial_fit(X[30:31], Y[30:31])
    assert_allclose(model.coef_, w, rtol=1e-9)
    other = LinearSVC(lam=0.05).partial_fit(X[:30], Y[:30], classes=[-1, 1]).partial_fit(X[30:31], Y[30:31])
    model.set_params(solver=Pegasos()).partial_fit(X[31:], Y[31:])
    assert_allclose(model.coef_, other.partial_fit(X[31:], Y[31:]).coef_, rtol=1e-9)


def test_the_solver_may_change_within_a_stream():
    """Each has its own scale inside; the weights go over."""
    model = LinearSVC(lam=0.05, solver=SGD(eta=0.1)).partial_fit(X, Y, classes=[-1, 1])
    w = model.coef_.copy()
    model.set_params(solver="pegasos").partial_fit(X[:1], Y[:1])
    assert np.linalg.norm(model.coef_ - w) < 0.5 * np.linalg.norm(w)
