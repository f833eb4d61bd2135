"""Cutting-plane subspace pursuit: every cutting plane gives a point (Joachims & Yu 2009)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pegasos import _core
from pegasos.experiments.baselines.basis import Basis, kernel_values, refit
from pegasos.experiments.baselines.task import Expansion, Task, checked_sizes
from pegasos.losses import Hinge
from pegasos.rows.views import Array
from pegasos.solvers.linear.cutting_plane import balanced_slopes
from pegasos.sparse.preimage import Rows, Vector, as_rows
from pegasos.util.threads import with_one_blas_thread

#: Planes kept; rows tried as the start of a search for a point; searches in a row that may find what is there already.
MAX_PLANES, STARTS_PER_SEARCH, MAX_FAILED_SEARCHES = 100, 64, 10


class _Planes:
    """The hinge loss from below: mean hinge(w) ≥ e_j − ⟨w, a_j⟩, a_j = (1/m) Σ c_ij y_i φ(x_i), Σ_i c_ij y_i = 0.

    A plane whose bias has slope zero is a bound for every bias. The a_j are kept as what they weigh the rows by, since
    their coordinates are of a basis that grows.
    """

    def __init__(self, basis: Basis, y: Array, lam: float) -> None:
        self.basis, self.y, self.lam = basis, y, lam
        self.weights = np.zeros((0, basis.m), dtype=basis.dtype)
        self.coords, self.heights, self.alpha = np.zeros((0, 0)), np.zeros(0), np.zeros(0)
        self.unused = np.zeros(0, dtype=int)

    def cut(self, u: Array) -> tuple[Array, float]:
        """Add the plane that touches at coordinates u. Return how it weighs the rows, and the objective there."""
        m, loss = self.basis.m, Hinge().scalar()
        scores = (self.basis.features[:, : len(u)] @ u.astype(self.basis.dtype)).astype(np.float64)
        bias, slopes = balanced_slopes(loss, scores, self.y, np.ones(m), 0.0)
        value = float(np.mean(loss.value(scores + bias, self.y)))
        weight = slopes / m
        if len(self.heights) >= MAX_PLANES:
            self._keep(np.arange(len(self.heights)) != int(np.argmax(self.unused)))
        self.weights = np.concatenate([self.weights, weight[None].astype(self.basis.dtype)])
        self.heights = np.append(self.heights, value + float(weight @ scores))
        self.alpha = np.append(self.alpha, float(len(self.alpha) == 0))
        self.unused = np.append(self.unused, 0)
        fresh = np.zeros((1, self.coords.shape[1]))
        if fresh.size:
            fresh[0] = weight.astype(self.basis.dtype) @ self.basis.features[:, : fresh.shape[1]]
        self.coords = np.concatenate([self.coords, fresh])
        return weight, 0.5 * self.lam * float(u @ u) + value

    def _keep(self, which: Array) -> None:
        self.weights, self.coords, self.heights = self.weights[which], self.coords[which], self.heights[which]
        self.alpha, self.unused = self.alpha[which], self.unused[which]
        self.alpha = self.alpha / max(float(self.alpha.sum()), 1e-300)

    def grow(self) -> None:
        """Take in what the basis has gained."""
        fresh = self.weights @ self.basis.features[:, self.coords.shape[1] :]
        self.coords = np.concatenate([self.coords, fresh.astype(np.float64)], axis=1)

    def minimum(self) -> tuple[Array, float]:
        """The coordinates that minimise (λ/2)‖u‖² + max_j (e_j − ⟨u, a_j⟩), and the value there, up to 1e-6."""
        H = np.ascontiguousarray(self.coords @ self.coords.T / self.lam)
        alpha = self.alpha / self.alpha.sum()
        alpha = _core.simplex_qp(H, self.heights, alpha, 1e-6, 20_000)
        self.alpha = alpha / alpha.sum()
        self.unused = np.where(self.alpha > 0, 0, self.unused + 1)
        mixed = self.alpha @ self.coords
        value = float(self.alpha @ self.heights) - 0.5 / self.lam * float(mixed @ mixed)
        return mixed / self.lam, value


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
    >>> small, large = cpsp(Task(X, y, gamma=1.0), [5, 20])
    >>> large.details["objective"] < small.details["objective"]
    True
    """
    task.needs_rbf("cpsp")
    C = task.weight(C)
    sizes = checked_sizes(sizes, task.m)
    basis, found = task.basis(sizes[-1]), []
    planes = _Planes(basis, task.y, 1 / (C * task.m))
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
            u, _ = planes.minimum()
        fit = refit(basis, task.y, C, "hinge", tol)
        u = fit.u
        coef = basis.coefficients(u)
        found.append(task.on_points("cpsp", basis.vectors, coef, fit.bias, objective=fit.objective))
        if basis.size < size:
            break  # the planes give nothing new any more
    return found


def _point(task: Task, basis: Basis, weight: Array, rng: np.random.Generator) -> object:
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
