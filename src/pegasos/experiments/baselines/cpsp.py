"""Cutting-plane subspace pursuit: every cutting plane gives a point (Joachims & Yu 2009)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pegasos.experiments.baselines.basis import Basis, kernel_values, refit
from pegasos.experiments.baselines.task import Expansion, Task, checked_sizes
from pegasos.losses import Hinge
from pegasos.rows.views import Array
from pegasos.solvers.linear.planes import Planes, balanced_slopes
from pegasos.sparse.preimage import Rows, Vector, as_rows
from pegasos.util.arrays import Matrix
from pegasos.util.threads import with_one_blas_thread

#: Planes kept; rows tried as the start of a search for a point; searches in a row that may find what is there already.
MAX_PLANES, STARTS_PER_SEARCH, MAX_FAILED_SEARCHES = 100, 64, 10

#: How close to its minimum the model of the planes is solved.
QP_PRECISION = 1e-6


class HingePlanes(Planes[Array]):
    """The mean hinge loss from below, in coordinates of a basis that grows: the slopes of a plane are what is kept.

    Σ_i u_i = 0 for the slopes u of each plane, so that it is a bound for every bias.
    """

    def __init__(self, basis: Basis, y: Array) -> None:
        super().__init__(basis.size)
        self.basis, self.y = basis, y

    def cut(self, w: Array) -> tuple[Array, float]:
        """Add the plane that touches at coordinates w. Return how it weighs the rows, and the mean loss there."""
        m, loss = self.basis.m, Hinge().scalar()
        scores = (self.basis.features[:, : len(w)] @ w.astype(self.basis.dtype)).astype(np.float64)
        bias, slopes = balanced_slopes(loss, scores, self.y, np.ones(m), 0.0)
        value = float(np.mean(loss.value(scores + bias, self.y)))
        weight = slopes / m
        kept = weight.astype(self.basis.dtype)
        self.limit(MAX_PLANES - 1)
        a = -(kept @ self.basis.features[:, : self.planes.shape[1]]).astype(np.float64)
        self.add(a, value + float(weight @ scores), kept)
        return weight, value

    def grow(self) -> None:
        """Take in what the basis has gained."""
        fresh = np.stack(self.contents) @ self.basis.features[:, self.planes.shape[1] :]
        self.widen(-fresh.astype(np.float64))


@with_one_blas_thread
def cpsp(
    task: Task,
    sizes: Sequence[int],
    *,
    C: float | None = None,
    tol: float = 1e-3,
    random_state: int = 0,
) -> list[Expansion]:
    """Train by cutting planes within the span of a few new points, and take a new point from every plane.

    The planes are those of the 1-slack formulation: bounds from below of the mean hinge loss. After each, the point
    whose image is nearest in direction to what the span lacks of the plane's vector is added, and all planes are
    projected on the larger span. At each of ``sizes`` the machine is the optimum of ½‖w‖² + C Σ hinge over the span,
    found by a linear solver within ``tol``; the bias is not regularised.

    Parameters
    ----------
    task : Task
        Rows, labels and C; the kernel must be "rbf".
    sizes : sequence of int
        Sizes at which the growing set is looked at.
    C : float, default=None
        Weight of the losses; None: the task's.
    tol : float, default=1e-3
        Relative gap of the final fits.
    random_state : int, default=0
        Seed of the rows at which the search for a point may start.

    Returns
    -------
    list of Expansion
        One for each size; ``details["objective"]`` is ½‖w‖² + C Σ hinge.

    References
    ----------
    T. Joachims and C.-N. J. Yu, *Sparse kernel SVMs via cutting-plane training*, Machine Learning 76 (2009).

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from pegasos.experiments import Task, cpsp
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> objectives = [model.details["objective"] for model in cpsp(Task(X, y, gamma=1.0), [5, 20])]
    >>> objectives == sorted(objectives, reverse=True)
    True
    """
    task.needs_rbf("cpsp")
    C = task.weight(C)
    sizes = checked_sizes(sizes, task.m)
    basis, found = task.basis(sizes[-1]), []
    planes, lam = HingePlanes(basis, task.y), 1 / (C * task.m)
    rng = np.random.default_rng(random_state)
    u, failed = np.zeros(0), 0
    for size in sizes:
        while basis.size < size and failed < MAX_FAILED_SEARCHES:
            weight, _ = planes.cut(u)
            if not weight.any():  # no loss is left
                failed = MAX_FAILED_SEARCHES
                break
            point = _point(task, basis, weight, rng)
            failed = 0 if len(basis.add_points(point)) else failed + 1
            planes.grow()
            u, _ = planes.minimum(lam, QP_PRECISION)
        fit = refit(basis, task.y, C, "hinge", tol)
        u = fit.u
        coef = basis.coefficients(u)
        found.append(task.on_points("cpsp", basis.vectors, coef, fit.bias, objective=fit.objective))
        if basis.size < size:
            break  # the planes give nothing new any more
    return found


def _point(task: Task, basis: Basis, weight: Array, rng: np.random.Generator) -> Matrix:
    """The preimage of Σ weight_i φ(x_i) less its projection on the basis."""
    active = np.flatnonzero(weight)
    terms = [(task.X[active], weight[active])]
    if basis.size:
        coords = weight.astype(basis.dtype) @ basis.features
        terms.append((basis.vectors, -basis.coefficients(coords.astype(np.float64))))
    starts = rng.choice(active, min(STARTS_PER_SEARCH, len(active)), replace=False)
    candidates = task.X[starts]
    at = sum(r @ kernel_values(task.kernel, V, candidates, task.threads) for V, r in terms)
    best = int(np.argmax(np.abs(np.asarray(at))))
    rows = [(Rows.of(V, task.kernel.gamma), r) for V, r in terms]
    z, _ = Vector(rows, threads=task.threads).preimages(rows[0][0].dense(np.flatnonzero(active == starts[best])))
    return as_rows(z, task.X)
