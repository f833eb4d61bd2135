"""Pictures of fits: what is drawn is what the trace holds."""

from __future__ import annotations

import sys

import matplotlib as mpl
import numpy as np
import processes
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt

from pegasos import Checkpoint, LinearSVC, LinearSVR, Trace
from pegasos.datasets import make_text
from pegasos.plots import ConvergenceDisplay, SparsePathDisplay

INF = float("inf")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def models():
    X, y = make_text(400, 200, nnz_per_row=10)
    return {name: LinearSVC(solver=name, lam=0.01, tol=1e-2).fit(X, y) for name in ("pegasos", "sdca")}


def trace(*points):
    """(epochs, primal, dual) of each checkpoint; a second takes ten epochs."""
    return Trace([Checkpoint(e, e / 10, p, d, p - d, (p - d) / p) for e, p, d in points])


TWO = {"a": trace((1, 2.0, 0.5), (2, 1.25, 0.9)), "b": trace((1, 1.6, 0.8), (3, 1.1, 1.0))}


def test_lines_show_suboptimality_and_gap_of_each_run():
    display = ConvergenceDisplay.from_traces(TWO, x="epochs")
    a, a_gap, b, b_gap = display.lines_
    assert display.reference_ == 1.0
    assert display.reference_kind_ == "lower bound"
    np.testing.assert_allclose(a.get_xdata(), [1, 2])
    np.testing.assert_allclose(a.get_ydata(), [0.5, 0.2])
    np.testing.assert_allclose(a_gap.get_ydata(), [0.75, 0.35 / 1.25])
    np.testing.assert_allclose(b.get_ydata(), [0.375, 0.1 / 1.1])
    assert a.get_color() == a_gap.get_color() != b.get_color() == b_gap.get_color()
    assert (a.get_linestyle(), a_gap.get_linestyle()) == ("-", "--")
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["a", "b"]
    assert display.ax_.get_yscale() == "log"


def test_time_is_the_default_axis():
    display = ConvergenceDisplay.from_traces(TWO)
    np.testing.assert_allclose(display.lines_[2].get_xdata(), [0.1, 0.3])
    assert display.ax_.get_xlabel() == "seconds"


@pytest.mark.parametrize(("y", "lines", "word"), [("suboptimality", 2, "objective"), ("relative_gap", 2, "gap")])
def test_one_quantity_alone(y, lines, word):
    display = ConvergenceDisplay.from_traces(TWO, y=y)
    assert len(display.lines_) == lines
    assert word in display.ax_.get_ylabel()
    assert "dashed" not in display.ax_.get_ylabel()
    assert [line.get_label() for line in display.lines_] == ["a", "b"]


def test_a_given_optimum_is_the_reference():
    display = ConvergenceDisplay.from_traces(TWO, optimum=1.05, y="suboptimality")
    np.testing.assert_allclose(display.lines_[1].get_ydata(), [0.55 / 1.6, 0.05 / 1.1])
    assert display.reference_kind_ == "optimum"
    with pytest.raises(ValueError, match="above the objective"):
        ConvergenceDisplay.from_traces(TWO, optimum=1.2)


def test_without_a_bound_the_lowest_objective_is_the_reference():
    stream = Trace([Checkpoint(1, 0.1, 0.5, -INF, INF, INF), Checkpoint(2, 0.2, 0.4, -INF, INF, INF)])
    display = ConvergenceDisplay.from_traces({"stream": stream})
    assert display.reference_kind_ == "lowest objective"
    np.testing.assert_allclose(display.lines_[0].get_ydata(), [0.2, np.nan])
    assert np.isnan(display.lines_[1].get_ydata()).all()
    display.figure_.canvas.draw()


def test_zero_gaps_are_left_out():
    display = ConvergenceDisplay.from_traces({"exact": trace((1, 2.0, 1.0), (2, 1.5, 1.5))})
    np.testing.assert_allclose(display.lines_[1].get_ydata(), [0.5, np.nan])
    display.figure_.canvas.draw()


def test_from_estimator_draws_its_trace_into_the_given_axes(models):
    _, ax = plt.subplots()
    display = ConvergenceDisplay.from_estimator(models["pegasos"], ax=ax, x="epochs", name="run", linewidth=3)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    recorded = models["pegasos"].trace_
    np.testing.assert_allclose(display.lines_[1].get_ydata(), [point.relative_gap for point in recorded])
    assert display.lines_[0].get_label() == "run"
    assert {line.get_linewidth() for line in display.lines_} == {3}


def test_a_single_trace_needs_no_name(models):
    recorded = models["pegasos"].trace_
    display = ConvergenceDisplay.from_traces(recorded, x="epochs")
    assert len(display.lines_) == 2
    np.testing.assert_allclose(display.lines_[1].get_ydata(), [point.relative_gap for point in recorded])


def test_drawing_again_replaces_the_handles(models):
    display = ConvergenceDisplay.from_traces({name: model.trace_ for name, model in models.items()})
    first = display.figure_
    assert display.plot(x="epochs") is display
    assert display.figure_ is not first
    assert display.ax_.get_xlabel().startswith("epochs")


def test_the_name_of_the_estimator_is_the_default():
    model = LinearSVR().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.5])
    assert ConvergenceDisplay.from_estimator(model).lines_[0].get_label() == "LinearSVR"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ConvergenceDisplay({}), ValueError, "no trace"),
        (lambda: ConvergenceDisplay({"a": Trace()}), ValueError, "no checkpoints"),
        (lambda: ConvergenceDisplay(Trace([Checkpoint(1.0, 0.1, INF, -INF, INF, INF)])), ValueError, "only estimated"),
        (lambda: ConvergenceDisplay({"a": [1, 2]}), TypeError, "not a Trace"),
        (lambda: ConvergenceDisplay([trace((1, 2.0, 1.0))]), TypeError, "pass an estimator's trace_, or a dict"),
        (lambda: ConvergenceDisplay(TWO).plot(x="epoch"), ValueError, "did you mean 'epochs'"),
        (lambda: ConvergenceDisplay(TWO).plot(x="rows"), ValueError, "neither 'seconds' nor 'epochs'"),
        (lambda: ConvergenceDisplay(TWO).plot(y="loss"), ValueError, "none of"),
        (lambda: ConvergenceDisplay.from_estimator(LinearSVC()), AttributeError, "not fitted"),
    ],
)
def test_misuse_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_matplotlib_is_imported_only_to_draw():
    code = "import sys, pegasos.plots; assert 'matplotlib' not in sys.modules"
    processes.run([sys.executable, "-c", code], check=True)


def test_the_message_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ModuleNotFoundError, match=r"pegasos\[plots\]"):
        ConvergenceDisplay.from_traces(TWO)
    with pytest.raises(ModuleNotFoundError, match=r"pegasos\[plots\]"):
        SparsePathDisplay(np.array([1]), np.array([0.5]), (2, 0.1)).plot()
