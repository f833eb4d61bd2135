"""Pictures of fits, in the manner of scikit-learn's displays. They need matplotlib: ``pip install 'pegasos[plots]'``.

Nothing here is computed anew: a picture shows what ``trace_`` recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np

from pegasos.fit.trace import Trace
from pegasos.rows.targets import unpack
from pegasos.rows.views import Array
from pegasos.util.suggest import did_you_mean

__all__ = ["ConvergenceDisplay", "SparsePathDisplay"]

X = Literal["seconds", "epochs"]
Y = Literal["both", "suboptimality", "relative_gap"]

_X_LABELS = {"seconds": "seconds", "epochs": "epochs (passes over the rows)"}
_SHOWN = ("both", "suboptimality", "relative_gap")


class ConvergenceDisplay:
    """How objective and duality gap fell during one or several fits, on a logarithmic axis.

    Solid lines are the relative suboptimality (P − P̂)/P of the weights at each checkpoint, dashed lines the relative
    gap (P − D)/P that the fit could prove at that moment. P̂ is ``optimum``, or else the best lower bound that any of
    the traces found; that bound is at most the true optimum, so the solid lines never show a fit better than it was.

    Use :meth:`from_estimator` or :meth:`from_traces`; all traces must be of the same problem (data, loss, λ, weights).

    Parameters
    ----------
    traces : mapping of str to Trace, or Trace
        The runs by name, or a single one.
    optimum : float, default=None
        The optimal objective, if it is known better than by the traces.

    Attributes
    ----------
    reference_ : float
        P̂.
    reference_kind_ : {"optimum", "lower bound", "lowest objective"}
        Where P̂ comes from. Traces without any lower bound (of ``partial_fit``) are compared with the lowest objective
        among them, which says nothing about the optimum.
    ax_ : matplotlib Axes
        The axes drawn into.
    figure_ : matplotlib Figure
        Their figure.
    lines_ : list of matplotlib Line2D
        The lines, run by run; with ``y="both"`` suboptimality and gap alternate.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from pegasos import LinearSVC
    >>> from pegasos.datasets import make_text
    >>> from pegasos.plots import ConvergenceDisplay
    >>> X, y = make_text(500, 200, nnz_per_row=10)
    >>> runs = {name: LinearSVC(solver=name, lam=0.01).fit(X, y).trace_ for name in ("pegasos", "sdca")}
    >>> display = ConvergenceDisplay.from_traces(runs, x="epochs")
    >>> display.ax_.get_yscale(), len(display.lines_)
    ('log', 4)
    """

    reference_: float
    reference_kind_: str
    ax_: Any
    figure_: Any
    lines_: list[Any]

    def __init__(self, traces: Mapping[str, Trace] | Trace, *, optimum: float | None = None) -> None:
        if isinstance(traces, Trace):
            traces = {"fit": traces}
        if not isinstance(traces, Mapping):
            raise TypeError(
                f"traces is a {type(traces).__name__}; pass an estimator's trace_, or a dict of them by name"
            )
        self.traces, self.optimum = dict(traces), optimum
        if not self.traces:
            raise ValueError("there is no trace to show")
        for name, trace in self.traces.items():
            if not isinstance(trace, Trace):
                raise TypeError(f"traces[{name!r}] is a {type(trace).__name__}, not a Trace (an estimator's trace_)")
            if not len(trace):
                raise ValueError(f"the trace of {name!r} has no checkpoints")
            if not any(np.isfinite([point.primal, point.dual]).any() for point in trace):
                raise ValueError(f"the trace of {name!r} has neither objectives nor bounds: the fit was only estimated")
        self.reference_, self.reference_kind_ = self._reference()

    def _reference(self) -> tuple[float, str]:
        lowest = min(point.primal for trace in self.traces.values() for point in trace)
        if self.optimum is not None:
            if self.optimum > lowest + 1e-9 * abs(lowest):
                raise ValueError(
                    f"optimum={self.optimum!r} is above the objective {lowest!r} that one of the fits reached"
                )
            return float(self.optimum), "optimum"
        highest = max(point.dual for trace in self.traces.values() for point in trace)
        return (highest, "lower bound") if np.isfinite(highest) else (lowest, "lowest objective")

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        optimum: float | None = None,
        name: str | None = None,
        ax: Any = None,
        x: X = "seconds",
        y: Y = "both",
        **kwargs: Any,
    ) -> Self:
        """Show the last fit of an estimator.

        Parameters
        ----------
        estimator : LinearSVC or LinearSVR
            Fitted.
        optimum : float, default=None
            The optimal objective, if known.
        name : str, default=None
            The run's name in the legend; None is the estimator's class.
        ax, x, y, **kwargs
            As for :meth:`plot`.

        Returns
        -------
        display : ConvergenceDisplay

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("Agg")
        >>> from pegasos import LinearSVC
        >>> from pegasos.plots import ConvergenceDisplay
        >>> model = LinearSVC().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
        >>> ConvergenceDisplay.from_estimator(model).reference_kind_
        'lower bound'
        """
        from sklearn.utils.validation import check_is_fitted  # takes as long to import as all the rest of this module

        check_is_fitted(estimator, "trace_")
        traces = {type(estimator).__name__ if name is None else name: estimator.trace_}
        return cls(traces, optimum=optimum).plot(ax, x=x, y=y, **kwargs)

    @classmethod
    def from_traces(
        cls,
        traces: Mapping[str, Trace] | Trace,
        *,
        optimum: float | None = None,
        ax: Any = None,
        x: X = "seconds",
        y: Y = "both",
        **kwargs: Any,
    ) -> Self:
        """Compare several fits of the same problem.

        Parameters
        ----------
        traces : mapping of str to Trace, or Trace
            The ``trace_`` of each fit, by the name it shall have in the legend; or that of a single one.
        optimum : float, default=None
            The optimal objective, if known.
        ax, x, y, **kwargs
            As for :meth:`plot`.

        Returns
        -------
        display : ConvergenceDisplay
        """
        return cls(traces, optimum=optimum).plot(ax, x=x, y=y, **kwargs)

    def plot(self, ax: Any = None, *, x: X = "seconds", y: Y = "both", **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where; None makes a new figure.
        x : {"seconds", "epochs"}, default="seconds"
            The horizontal axis.
        y : {"both", "suboptimality", "relative_gap"}, default="both"
            What to draw of each run.
        **kwargs : dict
            Passed to matplotlib's ``plot`` for every line.

        Returns
        -------
        display : ConvergenceDisplay
            This object, with ``ax_``, ``figure_`` and ``lines_``.
        """
        if x not in _X_LABELS:
            raise ValueError(f"x={x!r} is neither 'seconds' nor 'epochs'{did_you_mean(x, _X_LABELS)}")
        if y not in _SHOWN:
            raise ValueError(f"y={y!r} is none of 'both', 'suboptimality', 'relative_gap'{did_you_mean(y, _SHOWN)}")
        ax = _new_axes() if ax is None else ax
        self.ax_, self.figure_, self.lines_ = ax, ax.figure, []
        for name, trace in self.traces.items():
            along = np.array([getattr(point, x) for point in trace])
            style: dict[str, Any] = {"marker": "o", "markersize": 3, **kwargs}
            if y != "relative_gap":
                self.lines_ += ax.plot(along, self._suboptimality(trace), label=name, **style)
                style.setdefault("color", self.lines_[-1].get_color())
            if y != "suboptimality":
                dashed = {"linestyle": "--", "alpha": 0.6, **style} if y == "both" else style
                label = "_nolegend_" if y == "both" else name
                gaps = np.array([point.relative_gap for point in trace])
                self.lines_ += ax.plot(along, _drawable(gaps), label=label, **dashed)
        ax.set(xlabel=_X_LABELS[x], ylabel=self._label(y), yscale="log")
        ax.grid(True, which="major", alpha=0.3)
        ax.legend()
        return self

    def _suboptimality(self, trace: Trace) -> Array:
        primal = np.array([point.primal for point in trace])
        return _drawable((primal - self.reference_) / np.where(primal > 0, primal, np.nan))

    def _label(self, y: Y) -> str:
        if y == "relative_gap":
            return "relative gap (P − D)/P"
        above = {"optimum": "the optimum", "lower bound": "the best lower bound", "lowest objective": "the lowest seen"}
        label = f"objective above {above[self.reference_kind_]}, relative"
        return label + "\n(dashed: certified gap)" if y == "both" else label


def _drawable(values: Array) -> Array:
    """What a logarithmic axis can show: nothing where a value is zero or infinite."""
    return np.where(np.isfinite(values) & (values > 0), values, np.nan)


def _new_axes() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "pegasos.plots needs matplotlib: pip install 'pegasos[plots]'", name=error.name
        ) from None
    return plt.subplots()[1]


class SparsePathDisplay:
    """Error against the number of support vectors, beside the error of the model that was compressed.

    Parameters
    ----------
    sizes : ndarray of int
        Support vectors.
    errors : ndarray
        Share of wrong labels at each size.
    reference : tuple (int, float)
        Support vectors and error of the reference.

    Attributes
    ----------
    ax_, figure_
        matplotlib's axes and figure.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from pegasos import SVC, sparsify
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(300, noise=0.2, random_state=0)
    >>> path = sparsify(SVC(C=10, gamma=1).fit(X, y), X, y, max_support=20)
    >>> SparsePathDisplay.from_path(path, X, y).ax_.get_xlabel()
    'support vectors'
    """

    def __init__(self, sizes: Array, errors: Array, reference: tuple[int, float]) -> None:
        self.sizes, self.errors, self.reference = sizes, errors, reference

    @classmethod
    def from_path(cls, path: Any, X: Any, y: Any = None, *, ax: Any = None) -> Self:
        """Draw the errors of a :class:`~pegasos.SparsePath` on these rows."""
        y, _ = unpack(X, y, None)
        error = 1.0 - float(path.reference.score(X, y))
        return cls(path.sizes, path.errors(X, y), (len(path.reference.support_), error)).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw into ``ax``, or into new axes."""
        ax = _new_axes() if ax is None else ax
        ax.plot(self.sizes, 100 * self.errors, marker=".", label="compressed")
        ax.axhline(100 * self.reference[1], linestyle="--", color="gray", label=f"reference, {self.reference[0]}")
        ax.set_xscale("symlog", linthresh=1)
        ax.set_xlabel("support vectors")
        ax.set_ylabel("error (%)")
        ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self
