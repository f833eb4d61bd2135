"""What surrounds every fit: limits, warnings, callbacks, traces, warm starts, pieces of data, Ctrl-C."""

import csv
import os
import signal
import subprocess
import sys
import textwrap
import time
import warnings

import numpy as np
import oracles as o
import pandas as pd
import processes
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.preprocessing import StandardScaler

from pegasos import SDCA, SGD, SVC, LinearSVC, LinearSVR, Norma, Pegasos, losses
from pegasos.datasets import make_text
from pegasos.fit import loop as fit_loop
from pegasos.fit.engine import Options
from pegasos.fit.resume import CheckpointFile
from pegasos.fit.trace import FIELDS
from pegasos.problems.base import Point
from pegasos.problems.linear import LinearProblem, Weights
from pegasos.rows.views import examples
from pegasos.solvers.linear.engine import LinearEngine


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), y


ITERATIVE = ["auto", "sdca", "pegasos", "interior_point", "cutting_plane", "norma", "sgd"]


# --- limits and the warning ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["sdca", "pegasos", "norma"])
def test_max_iter(cancer, solver):
    with pytest.warns(ConvergenceWarning) as caught:
        model = LinearSVC(solver=solver, max_iter=2, tol=1e-12).fit(*cancer)
    (warning,) = caught
    c = model.certificate_
    text = str(warning.message)
    assert warning.filename == __file__  # it points at the line that called fit
    assert text.startswith("LinearSVC stopped before the gap reached tol=1e-12 times the objective (max_iter reached)")
    assert f"objective {c.primal:.6g}, lower bound {c.dual:.6g}, relative gap {c.relative_gap:.2e}" in text
    assert "Raise max_iter or max_time" in text
    assert "larger tol" in text
    assert not c.converged
    assert c.reason == "max_iter reached"
    assert model.n_iter_ == 2


@pytest.mark.parametrize("solver", ["sdca", "pegasos", "auto", "cutting_plane"])
def test_max_time(cancer, solver):
    with pytest.warns(ConvergenceWarning, match=r"max_time reached|stalled"):
        # With so little regularisation none of them is at the optimum by then.
        model = LinearSVC(C=1e6, solver=solver, tol=0, max_time=0.05, max_iter=10**9).fit(*cancer)
    assert not model.certificate_.converged
    assert model.certificate_.seconds < 30


def test_the_warning_names_features_of_unlike_scale():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    with pytest.warns(ConvergenceWarning, match=r"very different scales: 'worst area' .*StandardScaler"):
        LinearSVC(solver="sdca", max_iter=2, tol=1e-9).fit(X, y)
    with pytest.warns(ConvergenceWarning, match=r"column 23 .*StandardScaler"):
        LinearSVC(solver="sdca", max_iter=2, tol=1e-9).fit(X.to_numpy(), y)


def test_the_warning_is_silent_about_scales_that_are_alike(cancer):
    with pytest.warns(ConvergenceWarning) as caught:
        LinearSVC(solver="sdca", max_iter=1, tol=1e-9, C=1e-3).fit(*cancer)
    assert "scale" not in str(caught[0].message)


def test_the_warning_tells_of_weak_regularisation(cancer):
    with pytest.warns(ConvergenceWarning, match="a smaller C"):
        LinearSVC(solver="sdca", max_iter=1, tol=1e-9, C=1e6).fit(*cancer)


def test_tol_is_kept(cancer):
    for tol in (0.1, 1e-3, 1e-6):
        for solver in ("auto", "sdca", "interior_point", "cutting_plane"):
            c = LinearSVC(tol=tol, solver=solver).fit(*cancer).certificate_
            assert c.converged
            assert c.relative_gap <= tol


@pytest.mark.parametrize(
    ("loss", "solver"),
    [
        # Cutting planes take ten seconds where the optimum of the hinge is a corner.
        pytest.param(loss, solver, marks=[pytest.mark.slow] if (loss, solver) == ("hinge", "cutting_plane") else [])
        for loss in ("hinge", "log", "squared_hinge", "smoothed_hinge")
        for solver in ("auto", "sdca", "interior_point", "cutting_plane")
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_fit_ends(iris, loss, solver):
    """No tolerance can be met to the last bit, but a fit must notice."""
    model = LinearSVC(loss=loss, solver=solver, tol=0, max_iter=300, max_time=120).fit(*iris)
    assert model.certificate_.reason != "max_time reached"
    assert model.certificate_.relative_gap < 1e-2


def test_every_class_must_converge(iris):
    c = LinearSVC(tol=1e-4).fit(*iris).certificate_
    assert all(p - d <= 1e-4 * p for p, d in zip(c.primal_per_class, c.dual_per_class, strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        c = LinearSVC(tol=1e-5, solver="pegasos", max_iter=10).fit(*iris).certificate_
    assert not c.converged


# --- the best is kept ------------------------------------------------------------------------------------------------


def text():
    X, y = make_text(1000, 200, nnz_per_row=20)
    return X.toarray(), y


ACCURATE = {
    "cancer": lambda: load_breast_cancer(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "iris": lambda: load_iris(return_X_y=True),
    "digits": lambda: tuple(a[:300] for a in load_digits(return_X_y=True)),
    "text": text,
}


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "log", "smoothed_hinge"])
@pytest.mark.parametrize("solver", ["auto", "interior_point", "smoothed_newton"])
@pytest.mark.parametrize("name", ACCURATE)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_asking_for_more_than_float64_has_costs_nothing(name, solver, loss):
    if solver == "smoothed_newton" and loss != "hinge":
        pytest.skip("not among the solver's losses")
    X, y = ACCURATE[name]()
    model = LinearSVC(loss=loss, solver=solver, C=1.0, tol=0).fit(X, y)
    c = model.certificate_
    assert c.relative_gap < (1e-8 if solver == "smoothed_newton" else 1e-12), c
    assert c.epochs < 100, c  # it stops when nothing improves
    assert c.gap == min(point.gap for point in model.trace_)
    assert c.primal == pytest.approx(value(model, X, y, 1.0 / len(y)), rel=1e-11)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive", "squared", "huber", "quantile"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_asking_a_regression_for_more_than_float64_has(loss):
    X, y = load_diabetes(return_X_y=True)
    c = LinearSVR(loss=loss, tol=0).fit(X, y).certificate_
    assert c.relative_gap < 1e-12, c
    assert c.epochs < 100, c


def test_the_warning_about_rounding_does_not_blame_the_features():
    X, y = load_breast_cancer(return_X_y=True)  # of very different scales
    with pytest.warns(ConvergenceWarning) as caught:
        LinearSVC(C=100, tol=0).fit(X, y)  # with C = 1 there is none left
    text = str(caught[0].message)
    assert "size of rounding errors" in text
    assert "tol of 1e-12 or more" in text
    assert "scale" not in text
    assert "max_iter" not in text


class Scripted(LinearEngine):
    """An engine that offers the models it is given, one after the other, and no dual point but at first."""

    def __init__(self, models, u):
        self.models, self.u, self.passes = models, u, 0.0

    @property
    def epochs(self):
        return self.passes

    def advance(self):
        self.passes += 1

    def due(self, tol):
        return True

    def model(self):
        return self.models[int(self.epochs) - 1]

    def duals(self):
        return self.u if self.epochs == 1 else np.full_like(self.u, np.nan)

    def state(self):
        return {"epochs": np.array([self.epochs])}

    def restore(self, state):
        self.passes = float(state["epochs"][0])


def scripted(iris, limit, **watch):
    """A fit of three classes, bad at first, then good in the second class, in the last, and broken in the end."""
    X, y = iris
    p = LinearProblem(examples(X), losses.Hinge(), y.astype(np.int32), 3, 0.01, bias="free")
    best = LinearSVC(lam=0.01, tol=1e-6).fit(X, y)
    u = SDCA().engine(p, Options("unregularized", 0))
    u.advance()
    models = []
    for step in range(5):
        W = np.full((3, 4), 0.5 + 0.1 * step)
        if step in (1, 2):
            W[step] = best.coef_[step]
        if step == 4:
            W[:] = np.nan
        models.append((W, np.zeros(3)))
    engine = Scripted(models, u.duals())
    file = watch.pop("file", None)
    return p, models, fit_loop.run(p, engine, fit_loop.Limits(0.0, limit), fit_loop.Watch(**watch), file)


def test_every_part_keeps_its_best_weights_and_bound(iris):
    seen = []
    p, models, result = scripted(iris, 5, callback=lambda _, model: seen.append(model.W))
    each = np.array([p.certify(Point(Weights(W, b))).primal for W, b in models])
    assert each.argmin(axis=0).tolist() == [0, 1, 2]
    expected = np.stack([models[each[:, k].argmin()][0][k] for k in range(3)])
    np.testing.assert_array_equal(result.model.W, expected)
    c = result.certificate
    assert c.primal_per_class == tuple(each.min(axis=0))
    np.testing.assert_allclose(
        p.certify(Point(Weights(result.model.W, result.model.b))).primal, c.primal_per_class, rtol=1e-12
    )
    assert all(dual > 0 for dual in c.dual_per_class)
    assert c.dual == result.trace[0].dual  # the only bound there was
    assert [point.gap for point in result.trace] == sorted((point.gap for point in result.trace), reverse=True)
    np.testing.assert_array_equal(seen[-1], result.model.W)  # a callback sees what would be returned
    assert result.duals is None  # those of the end were none


@pytest.mark.parametrize("model", [LinearSVC(solver="sdca"), SVC(), SVC(multi_class="ovr"), SVC(kernel="sigmoid")])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_a_callback_does_to_its_weights_stays_with_it(iris, model):
    """And it is told what the fitted attributes would be."""
    seen = []

    def spoil(point):
        seen.append((point.coef.copy(), point.intercept.copy(), point.support))
        point.coef[:] = 7.0
        point.intercept[:] = 7.0

    alone, spoilt = clone(model).fit(*iris), clone(model).set_params(callback=spoil).fit(*iris)
    coef, intercept, support = seen[-1]
    if isinstance(model, SVC):
        np.testing.assert_array_equal(support, spoilt.support_)
    for found, name in ((coef, "dual_coef_" if isinstance(model, SVC) else "coef_"), (intercept, "intercept_")):
        np.testing.assert_array_equal(found, getattr(spoilt, name))
        np.testing.assert_array_equal(found, getattr(alone, name))


@pytest.mark.parametrize("stop", [1, 2, 3, 4])
def test_the_best_outlives_the_process(iris, tmp_path, stop):
    straight = scripted(iris, 5)[2]
    path = tmp_path / "fit.ckpt"
    scripted(iris, stop, file=CheckpointFile(path, 30.0, {}))
    assert path.exists()
    resumed = scripted(iris, 5, file=CheckpointFile(path, 30.0, {}))[2]
    np.testing.assert_array_equal(resumed.model.W, straight.model.W)
    np.testing.assert_array_equal(resumed.model.b, straight.model.b)
    assert resumed.certificate.primal_per_class == straight.certificate.primal_per_class
    assert resumed.certificate.dual_per_class == straight.certificate.dual_per_class


def test_an_engine_may_say_that_its_last_model_is_wanted(iris, monkeypatch):
    monkeypatch.setattr(Scripted, "returns_last", True, raising=False)
    _, models, result = scripted(iris, 4)
    np.testing.assert_array_equal(result.model.W, models[3][0])
    assert result.certificate.dual == result.trace[0].dual


def test_an_interrupt_keeps_the_best(iris):
    seen = []

    def interrupt(point, model):
        seen.append(point.epochs)
        if seen[-1] == 4 and seen.count(4) == 1:
            raise KeyboardInterrupt

    _, _, result = scripted(iris, 9, callback=interrupt, on_interrupt="keep")
    np.testing.assert_array_equal(result.model.W, scripted(iris, 5)[2].model.W)


# --- optima that are nearly zero, or zero ----------------------------------------------------------------------------


@pytest.mark.parametrize("C", [1e5, 1e8, 1e11, 1e14])
@pytest.mark.parametrize("other", [1, 2])
@pytest.mark.parametrize("solver", ["auto", "interior_point", "smoothed_newton", "sdca", "cutting_plane", "pegasos"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_converged_means_a_gap_within_the_tolerance(solver, other, C):
    """Two classes of iris that a hyperplane separates: the objective falls with 1/C, and no gap is small beside it."""
    X, y = load_iris(return_X_y=True)
    here = (y == 0) | (y == other)
    c = LinearSVC(C=C, solver=solver, max_iter=400).fit(X[here], y[here]).certificate_
    assert c.converged == (c.relative_gap <= 1e-3)
    reached = {"sdca": 1e11, "smoothed_newton": 1e8, "pegasos": 0.0}
    if reached.get(solver, np.inf) >= C:
        assert c.converged, c


@pytest.mark.parametrize("solver", ["auto", "interior_point", "sdca", "cutting_plane"])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive", "squared", "huber", "quantile"])
@pytest.mark.parametrize("target", [0.0, 1e-7, 0.1, 1e5])
@pytest.mark.parametrize("C", [1.0, 1e6])
def test_constant_targets_are_fitted_exactly(loss, solver, target, C):
    X = np.random.default_rng(0).normal(size=(60, 4))
    model = LinearSVR(loss=loss, solver=solver, C=C, max_iter=50).fit(X, np.full(60, target))
    assert model.certificate_.converged
    np.testing.assert_allclose(model.predict(X), target, rtol=1e-12)


# --- callbacks -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ITERATIVE)
@pytest.mark.parametrize(("data", "shape"), [("cancer", (1, 30)), ("iris", (3, 4))])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_callbacks_see_every_checkpoint(solver, data, shape, request):
    X, y = request.getfixturevalue(data)
    seen = []
    solver = SGD(eta=1e-4) if solver == "sgd" else solver
    model = LinearSVC(solver=solver, tol=1e-6, max_iter=30, callback=seen.append).fit(X, y)
    assert [c.epochs for c in seen] == sorted({c.epochs for c in seen})
    assert all(c.coef.shape == shape and c.intercept.shape == shape[:1] for c in seen)
    assert all(c.gap == max(c.primal - c.dual, 0) for c in seen)
    assert [c.dual for c in seen] == sorted(c.dual for c in seen)
    assert list(model.trace_) == seen
    assert model.trace_[-1].coef is None  # weights are not kept
    np.testing.assert_array_equal(seen[-1].coef, model.coef_)
    np.testing.assert_array_equal(seen[-1].intercept, model.intercept_)


def test_callbacks_of_a_regression():
    X, y = load_diabetes(return_X_y=True)
    seen = []
    model = LinearSVR(solver="sdca", callback=seen.append).fit(X, y)
    assert all(c.coef.shape == (10,) and c.intercept.shape == (1,) for c in seen)
    np.testing.assert_array_equal(seen[-1].coef, model.coef_)


def test_a_callback_may_stop_the_fit_and_nobody_complains(cancer):
    model = LinearSVC(solver="pegasos", tol=0, callback=lambda c: c.epochs >= 3).fit(*cancer)
    assert model.certificate_.reason == "stopped by the callback"
    assert not model.certificate_.converged
    assert model.n_iter_ == 3
    model.predict(cancer[0])


class Trouble(Exception):
    pass


@pytest.mark.parametrize("solver", ITERATIVE)
@pytest.mark.parametrize("error", [Trouble, KeyboardInterrupt, SystemExit])
def test_what_a_callback_raises_comes_through_and_nothing_changes(cancer, solver, error):
    def raises(checkpoint):
        raise error("stop")

    model = LinearSVC(solver=solver, callback=raises)
    with pytest.raises(error, match="stop"):
        model.fit(*cancer)
    with pytest.raises(NotFittedError):
        model.predict(cancer[0])
    model = LinearSVC().fit(*cancer)
    before = dict(vars(model))
    with pytest.raises(error, match="stop"):
        model.set_params(callback=raises).fit(cancer[0][:, :4], 1 - cancer[1])
    assert vars(model) | {"callback": None} == before


# --- trace and progress ----------------------------------------------------------------------------------------------


@pytest.fixture
def trace(cancer):
    return LinearSVC(solver="sdca", tol=1e-8, max_iter=10_000).fit(*cancer).trace_


def test_trace_to_frame(trace):
    frame = trace.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert tuple(frame.columns) == FIELDS
    assert len(frame) == len(trace) > 1
    assert frame.dtypes.eq(float).all()
    assert frame["primal"].tolist() == [c.primal for c in trace]


def test_trace_to_frame_without_pandas(trace, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(
        ModuleNotFoundError, match=r"needs pandas: pip install 'pegasos\[frames\]'; Trace.to_csv"
    ) as caught:
        trace.to_frame()
    assert "pip install" in str(caught.value).splitlines()[-1]


def test_trace_to_csv_reads_back_to_the_same_bits(trace, tmp_path):
    trace.to_csv(tmp_path / "trace.csv")
    with open(tmp_path / "trace.csv", newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert tuple(header) == FIELDS
    assert [[float(v) for v in row] for row in rows] == [[getattr(c, f) for f in FIELDS] for c in trace]


def test_trace_is_a_sequence(trace):
    assert list(trace[:2]) == [trace[0], trace[1]]
    assert type(trace[:2]) is type(trace)
    assert trace[-1] in trace
    assert repr(trace) == f"Trace({len(trace)} checkpoints)"


@pytest.mark.parametrize("verbose", [1, True])
def test_progress_goes_to_standard_error(cancer, capfd, verbose):
    model = LinearSVC(verbose=verbose).fit(*cancer)
    out, err = capfd.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1 + len(model.trace_)
    assert "relative gap" in err


def test_silence_is_the_default(cancer, capfd):
    LinearSVC().fit(*cancer).partial_fit(*cancer)
    assert capfd.readouterr() == ("", "")


# --- warm start ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["hinge", "log", "crammer_singer"])
@pytest.mark.parametrize("data", ["cancer", "iris"])
def test_a_warm_start_is_near_the_optimum(data, loss, request):
    X, y = request.getfixturevalue(data)
    model = LinearSVC(solver="sdca", loss=loss, C=0.1, tol=1e-5, max_iter=10_000, warm_start=True).fit(X, y)
    first = model.certificate_
    model.fit(X, y)
    assert model.certificate_.epochs < first.epochs
    assert model.certificate_.primal <= first.primal * (1 + 1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        cold = clone(model).set_params(C=0.11, max_iter=1).fit(X, y)
        model.set_params(C=0.11, max_iter=1).fit(X, y)
    assert model.certificate_.gap < 0.5 * cold.certificate_.gap


@pytest.mark.parametrize("solver", ITERATIVE)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_another_shape_starts_anew(cancer, solver):
    X, y = cancer
    solver = SGD(eta=1e-4) if solver == "sgd" else solver
    model = LinearSVC(solver=solver, warm_start=True, max_iter=10).fit(X, y)
    for data in ((X[:300], y[:300]), (X[:, :5], y), (X, np.arange(len(y)) % 3)):
        cold = LinearSVC(solver=solver, max_iter=10).fit(*data)
        np.testing.assert_array_equal(model.fit(*data).coef_, cold.coef_)


def test_pegasos_goes_on_where_it_stopped(cancer):
    X, y = cancer
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warm = LinearSVC(solver="pegasos", lam=0.01, tol=0, max_iter=8, warm_start=True).fit(X, y)
        warm.set_params(max_iter=16).fit(X, y)
        straight = LinearSVC(solver="pegasos", lam=0.01, tol=0, max_iter=16).fit(X, y)
    np.testing.assert_array_equal(warm.coef_, straight.coef_)


@pytest.mark.parametrize("loss", ["hinge", "log"])
def test_changing_the_method_between_warm_fits(cancer, loss):
    model = LinearSVC(loss=loss, warm_start=True, lam=0.05, max_iter=5000)
    values = []
    for solver in ("sdca", "auto", "interior_point", "cutting_plane", "sdca", "pegasos", "sdca"):
        model.set_params(solver=solver, tol=0.02 if solver == "pegasos" else 1e-4).fit(*cancer)
        values.append(model.certificate_.primal)
    np.testing.assert_allclose(values, values[0], rtol=0.03)


# --- partial_fit -----------------------------------------------------------------------------------------------------


def pieces(X, y, size=100):
    order = np.random.default_rng(0).permutation(len(y))
    for start in range(0, len(y), size):
        yield X[order[start : start + size]], y[order[start : start + size]]


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "log", "multinomial", "crammer_singer"])
@pytest.mark.parametrize("intercept", ["unregularized", "feature", None])
@pytest.mark.parametrize("data", ["cancer", "iris"])
def test_pieces_approach_the_optimum(data, loss, intercept, request):
    X, y = request.getfixturevalue(data)
    how = {"fit_intercept": intercept is not None, "intercept": intercept or "unregularized", "lam": 0.1, "loss": loss}
    best = LinearSVC(**how).fit(X, y).certificate_.primal
    model, values = LinearSVC(**how), []
    for _ in range(30):
        for piece in pieces(X, y):
            model.partial_fit(*piece, classes=np.unique(y))
        values.append(value(model, X, y, 0.1))
    assert values[-1] <= values[0] + 1e-3
    assert best * (1 - 2e-3) <= values[-1] <= best * 1.1 + 1e-3


def value(model, X, y, lam):
    """P of the model's weights on all the rows, by the oracle."""
    name = model.loss
    if name in ("multinomial", "crammer_singer"):
        K = len(model.classes_)
        W, b = model.coef_, model.intercept_
        if K == 2:
            W, b = np.concatenate([-W, W]) / 2, np.concatenate([-b, b]) / 2
        loss = o.Multinomial(K) if name == "multinomial" else o.CrammerSinger(K)
        parts = [o.primal(X, y, W, b, loss=loss, lam=lam)]
    else:
        ones = [1] if len(model.coef_) == 1 else range(len(model.coef_))
        parts = [
            o.primal(X, np.where(y == k, 1, -1), w, b, loss=name, lam=lam)
            for k, w, b in zip(ones, model.coef_, model.intercept_, strict=True)
        ]
    if model.fit_intercept and model.intercept == "feature":
        parts.append(
            lam / 2 * float(np.sum(b**2 if name in ("multinomial", "crammer_singer") else model.intercept_**2))
        )
    return sum(parts)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared", "huber", "quantile"])
def test_pieces_of_a_regression(loss):
    X, y = load_diabetes(return_X_y=True)
    X, y = StandardScaler().fit_transform(X), (y - y.mean()) / y.std() + 1
    best = LinearSVR(loss=loss, lam=0.1).fit(X, y).certificate_.primal
    model = LinearSVR(loss=loss, lam=0.1)
    for _ in range(40):
        for piece in pieces(X, y):
            model.partial_fit(*piece)
    got = o.primal(X, y, model.coef_, model.intercept_[0], loss=loss, lam=0.1)
    assert best * 0.998 <= got <= best * 1.05


@pytest.mark.parametrize("solver", ["auto", "sdca", Pegasos(batch_size=10), Norma(), SGD(eta=1e-3)])
def test_pieces_with_every_stochastic_solver(cancer, solver):
    model = LinearSVC(solver=solver, lam=0.01)
    for _ in range(5):
        for piece in pieces(*cancer):
            model.partial_fit(*piece, classes=[0, 1])
    assert model.score(*cancer) > 0.9


def test_the_certificate_of_pieces_promises_nothing(cancer):
    X, y = cancer
    model = LinearSVC(lam=0.1).partial_fit(X[:100], y[:100], classes=[0, 1])
    c = model.certificate_
    assert not c.converged
    assert c.reason.startswith("not certified")
    assert c.dual == -np.inf
    assert c.gap == c.relative_gap == np.inf
    assert c.primal == pytest.approx(value(model, X[:100], y[:100], 0.1), rel=1e-12)
    model.partial_fit(X[100:], y[100:])
    assert model.n_iter_ == len(model.trace_) == 2


def test_classes_are_needed_up_front(cancer):
    X, y = cancer
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        LinearSVC().partial_fit(X, y)
    model = LinearSVC(lam=0.1).partial_fit(X[:5], np.zeros(5, int), classes=[0, 1])  # one class alone is fine
    assert model.classes_.tolist() == [0, 1]
    model.partial_fit(X, y).partial_fit(X, y, classes=[1, 0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"classes": [0, 1, 2]}, r"differ from those already known: \[0, 1\]"),
        ({"y": 7}, r"y\[3\] = 7 is none of the classes \[0, 1\]"),
        ({"X": np.ones((9, 2))}, "expecting 30 features"),
        ({"sample_weight": -np.ones(9)}, "negative at row 0"),
        ({"class_weight": "balanced"}, "balanced"),
        ({"solver": Pegasos(output="random")}, "two random iterates"),
        ({"loss": "multinomial"}, "scores the classes otherwise"),
        ({"intercept": "search"}, "search"),
        ({"solver": "pegasos", "intercept": "batch"}, "batch"),
    ],
)
def test_bad_pieces_change_nothing(cancer, change, message):
    X, y = cancer[0][:9], cancer[1][:9].copy()
    model = LinearSVC(lam=0.1).partial_fit(X, y, classes=[0, 1])
    before = dict(vars(model))
    stream = {k: v for k, v in vars(model._stream).items() if k != "trace"}
    if "y" in change:
        y[3] = change["y"]
    call = {k: change[k] for k in ("classes", "sample_weight") if k in change}
    model.set_params(**{k: v for k, v in change.items() if k in model.get_params()})
    with pytest.raises(ValueError, match=message):
        model.partial_fit(change.get("X", X), y, **call)
    model.set_params(**{k: before[k] for k in change if k in before})
    assert vars(model) == before
    assert {k: v for k, v in vars(model._stream).items() if k != "trace"} == stream
    assert len(model.trace_) == 1


def test_the_first_piece_sets_lam(cancer):
    X, y = cancer
    one = LinearSVC(C=0.1).partial_fit(X, y, classes=[0, 1]).partial_fit(X[:50], y[:50])
    other = LinearSVC(lam=1 / (0.1 * len(y))).partial_fit(X, y, classes=[0, 1]).partial_fit(X[:50], y[:50])
    np.testing.assert_array_equal(one.coef_, other.coef_)


@pytest.mark.parametrize("loss", ["hinge", "log", "multinomial", "crammer_singer"])
@pytest.mark.parametrize("intercept", ["unregularized", "feature"])
@pytest.mark.parametrize("data", ["cancer", "iris"])
def test_pieces_after_a_fit_go_on_from_it(data, loss, intercept, request):
    X, y = request.getfixturevalue(data)
    model = LinearSVC(loss=loss, intercept=intercept, lam=0.1).fit(X, y)
    best, at_zero = model.certificate_.primal, value(_zeroed(model), X, y, 0.1)
    few = np.random.default_rng(0).permutation(len(y))[:5]
    model.partial_fit(X[few], y[few])
    after = value(model, X, y, 0.1)
    assert best * 0.998 <= after < best + 0.2 * (at_zero - best)
    assert not model.certificate_.converged


def _zeroed(model):
    other = clone(model)
    other.classes_, other.coef_ = model.classes_, np.zeros_like(model.coef_)
    other.intercept_ = np.zeros_like(model.intercept_)
    return other


def test_a_fit_forgets_the_pieces(cancer):
    X, y = cancer
    model = LinearSVC().partial_fit(X[:, :3], y, classes=[0, 1]).fit(X, y)
    np.testing.assert_array_equal(model.coef_, LinearSVC().fit(X, y).coef_)
    again = LinearSVC().fit(X, y).partial_fit(X, y)
    np.testing.assert_array_equal(model.partial_fit(X, y).coef_, again.coef_)


# --- Ctrl-C ----------------------------------------------------------------------------------------------------------

CHILD = """
    import sys, time
    import numpy as np
    from sklearn.exceptions import NotFittedError
    from scipy import sparse
    from pegasos import LinearSVC, Pegasos, SDCA

    m, n, k = 200_000, 20_000, 60
    rng = np.random.default_rng(0)
    indices = (rng.integers(0, n // k, (m, k)) + np.arange(k) * (n // k)).astype(np.int32).ravel()
    X = sparse.csr_matrix((np.ones(m * k, np.float32), indices, np.arange(0, m * k + 1, k, dtype=np.int32)), (m, n))
    y = X @ rng.standard_normal(n) + rng.standard_normal(m) > 0
    model = LinearSVC(solver={solver}, lam=1e-6, tol=0, max_iter=10**6, on_interrupt={how!r}, verbose=True)
    try:
        print("ready", flush=True)
        model.fit(X, y)
        print("kept", time.time())
        print(model.certificate_.reason, model.certificate_.converged, model.score(X[:1000], y[:1000]) > 0.7)
    except KeyboardInterrupt:
        print("raised", time.time())
        try:
            model.predict(X)
        except NotFittedError:
            print("not fitted")
"""


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
@pytest.mark.parametrize(
    ("how", "solver"),
    [
        ("raise", "SDCA()"),
        ("keep", "Pegasos()"),
        pytest.param("raise", "Pegasos()", marks=pytest.mark.slow),
        pytest.param("keep", "SDCA()", marks=pytest.mark.slow),
    ],
)
def test_interrupt(how, solver):
    code = textwrap.dedent(CHILD).format(how=how, solver=solver)
    pipe = subprocess.PIPE
    with processes.started([sys.executable, "-c", code], stdout=pipe, stderr=pipe, text=True) as child:
        assert child.stdout.readline() == "ready\n"
        child.stderr.readline()  # the table's head: the loop is running
        time.sleep(0.5)
        sent = time.time()
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    first, *rest = out.splitlines()
    word, when = first.split()
    print(f"interrupt latency, {how}, {solver}: {float(when) - sent:.3f} s")
    assert float(when) - sent < 5  # no timing test: a hang would take for ever
    assert "Traceback" not in err
    if how == "raise":
        assert (word, rest) == ("raised", ["not fitted"])
    else:
        assert (word, rest) == ("kept", ["interrupted False True"])
