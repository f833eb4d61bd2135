"""The convex surrogate of the margin error that section 3 of the 2013 paper argues against."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from pegasos.estimators.svc import SVC
from pegasos.experiments.baselines.task import Expansion, Task, positive
from pegasos.rows.views import Array
from pegasos.util.threads import with_one_blas_thread


@dataclass(frozen=True)
class MarginLosses:
    """Three means over some rows of what a machine v makes of their margins z = y v(x).

    Attributes
    ----------
    margin_error : float
        Of 1[z < 1]: the rows that :func:`margin_perceptron` would ignore.
    surrogate : float
        Of 2 max(0, 1 − z/2) = max(0, 2 − z), never less than the margin error, and convex in v.
    hinge : float
        Of max(0, 1 − z), by up to 1 less than the surrogate: where all margins are 1 it is 0, and the surrogate 1.

    Examples
    --------
    >>> from pegasos.experiments import MarginLosses
    >>> MarginLosses.of_margins([1.0, 1.0, -1.0])
    MarginLosses(margin_error=0.3333333333333333, surrogate=1.6666666666666667, hinge=0.6666666666666666)
    """

    margin_error: float
    surrogate: float
    hinge: float

    @classmethod
    def of_margins(cls, margins: Any) -> MarginLosses:
        """From the margins themselves."""
        z = np.asarray(margins, dtype=np.float64)
        if z.ndim != 1 or not len(z) or not np.isfinite(z).all():
            raise ValueError("margins must be a sequence of finite numbers, one at least")
        surrogate = surrogate_loss(z)
        return cls(float(np.mean(z < 1)), float(surrogate.mean()), float(np.maximum(0.0, 1.0 - z).mean()))

    @classmethod
    def of(cls, machine: Expansion | SVC, X: Any, y: Any) -> MarginLosses:
        """Of a machine of two classes on these rows."""
        own = machine.classes if isinstance(machine, Expansion) else machine.classes_
        labels = np.asarray(y)
        if len(own) != 2 or not np.isin(labels, own).all():
            raise ValueError(f"machine knows the classes {own.tolist()}, y has {np.unique(labels).tolist()[:5]}")
        return cls.of_margins(np.where(labels == own[1], 1.0, -1.0) * machine.decision_function(X))


def surrogate_loss(margins: Array) -> Array:
    """2 max(0, 1 − z/2) of each margin."""
    return np.asarray(2.0 * np.maximum(0.0, 1.0 - 0.5 * margins))


@with_one_blas_thread
def margin_surrogate(task: Task, *, C: float | None = None, fit_intercept: bool = True, tol: float = 1e-3) -> Expansion:
    r"""Minimise ½‖v‖² + C Σ 2 max(0, 1 − y_i v(x_i)/2): a convex bound of the margin error in its place.

    A machine v of small margin error would do for :func:`margin_perceptron`, but 1[z < 1] is not convex. It is at most
    2 max(0, 1 − z/2), which is. The price: what is reached is compared with

    .. math:: \frac1m \sum_i 2\,[1 - y_i u(x_i)/2]_+

    of a reference u, and not with its hinge loss, of which it can be any multiple: rows that u classifies with margin 1
    cost no hinge loss, but 1 here each. With v = 2v' this is 4(½‖v'‖² + ½C Σ max(0, 1 − y_i v'(x_i))): twice the
    support vector machine of half of C.

    Parameters
    ----------
    task : Task
        Rows, labels, kernel and C.
    C : float, default=None
        Weight of the losses; None: the task's.
    fit_intercept : bool, default=True
        Whether v has a bias.
    tol : float, default=1e-3
        Relative gap of the fit.

    Returns
    -------
    Expansion
        v. Its ``details``: ``objective`` and a lower ``bound`` of it, and the :class:`MarginLosses` on the task's rows
        as ``losses``.

    References
    ----------
    A. Cotter, S. Shalev-Shwartz and N. Srebro, *Learning optimally sparse support vector machines*, ICML 2013.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from pegasos.experiments import Task, margin_perceptron, margin_surrogate
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> task = Task(X, y, C=10.0, gamma=1.0)
    >>> v = margin_surrogate(task)
    >>> v.details["losses"].margin_error <= v.details["losses"].surrogate
    True
    >>> small = margin_perceptron(task, [200], machine=v)[-1]
    >>> bool(1 - small.score(X, y) <= v.details["losses"].margin_error)
    True
    """
    C, tol, k = task.weight(C), positive("tol", tol), task.kernel
    model = SVC(
        C=0.5 * C,
        kernel=k.name,
        gamma=k.gamma,
        coef0=k.coef0,
        degree=k.degree,
        fit_intercept=fit_intercept,
        tol=tol,
        n_jobs=task.threads,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # details say how far it came
        model.fit(task.X, task.labels)
    scale = 4.0 / model.lam_  # from the certificate's units, in which λ = 1/(½C m), to ½‖v‖² + C Σ
    margins = 2.0 * task.y * model.decision_function(task.X)
    return task.on_rows(
        "margin-surrogate",
        model.support_.astype(np.int64),
        2.0 * model._dense_coefficients()[0],
        2.0 * float(model.intercept_[0]),
        objective=scale * model.certificate_.primal,
        bound=scale * model.certificate_.dual,
        losses=MarginLosses.of_margins(margins),
    )
