"""Support vectors left out where they bend the decision surface most (Zhan & Shen 2005)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Real

import numpy as np

from pegasos.experiments.baselines.osuna_girosi import osuna_girosi
from pegasos.experiments.baselines.task import Expansion, Task
from pegasos.rows.views import Array
from pegasos.sparse.preimage import Rows, Vector, gaussian
from pegasos.util.threads import with_one_blas_thread

#: Newton steps to the surface, and |f| at which a point is on it.
PROJECTION_STEPS, ON_SURFACE = 50, 1e-10

#: Points, and entries of their second derivatives, that are held at a time.
POINTS_PER_BATCH, ENTRIES_PER_BATCH = 256, 1 << 22

#: Columns of the products of two columns that are multiplied at a time.
COLUMNS_PER_PRODUCT = 256


@with_one_blas_thread
def zhan_shen(
    task: Task,
    sizes: Sequence[int],
    *,
    exclude: float = 0.3,
    epsilons: Sequence[float] = (1.0, 0.5, 0.25, 0.125, 0.0625),
    C: float | None = None,
    tol: float = 1e-3,
) -> list[Expansion]:
    """Leave out the support vectors where the surface f = 0 is most curved, train again, and apply Osuna & Girosi's.

    Each support vector of the reference is projected on the surface along the gradient, x ← x − f∇f/‖∇f‖². There the
    curvature is

        ‖P ∇²f P‖_F/‖∇f‖,    P = I − ∇f∇fᵀ/‖∇f‖²,

    the root of the sum of the squares of the principal curvatures. The share ``exclude`` of the support vectors, those
    with the highest, is taken out of the rows; a machine is trained on the others; and its scores are what
    :func:`osuna_girosi` makes a sparse regression of.

    The 2013 paper describes the order of the steps and a "curvature heuristic"; how the principal curvatures are put
    together, and how far the projection is followed, are ours.

    Parameters
    ----------
    task : Task
        Rows, labels, C and reference; the kernel must be "rbf".
    sizes : sequence of int
        As for :func:`osuna_girosi`: the largest is a limit.
    exclude : float, default=0.3
        Share of the support vectors that is left out, from 0 to below 1; what would leave a class without rows stays.
    epsilons, C, tol
        As for :func:`osuna_girosi`.

    Returns
    -------
    list of Expansion
        One for each ε that kept within the limit; ``details["excluded"]`` are the rows left out,
        ``details["retrained"]`` the number of support vectors after that.

    References
    ----------
    Y. Zhan and D. Shen, *Design efficient support vector machine for fast classification*, Pattern Recognition 38
    (2005).

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from pegasos.experiments import Task, zhan_shen
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> found = zhan_shen(Task(X, y, gamma=1.0, C=10.0), [40], epsilons=[0.5])
    >>> found[0].size < 40, len(found[0].details["excluded"]) > 0
    (True, True)
    """
    task.needs_rbf("zhan_shen")
    if not isinstance(exclude, Real) or isinstance(exclude, bool) or not 0 <= float(exclude) < 1:
        raise ValueError(f"exclude={exclude!r} must be a number from 0 to below 1")
    support = task.chosen_rows("rows", "support")
    count = int(float(exclude) * len(support))
    order = np.argsort(-curvatures(task.expansion), kind="stable")
    kept = _without(task, support[order[:count]])
    k = task.kernel
    smaller = Task(task.X[kept], task.labels[kept], C=task.C, kernel=k.name, gamma=k.gamma, n_jobs=task.threads)
    details = {"excluded": np.setdiff1d(np.arange(task.m), kept), "retrained": smaller.expansion.size}
    return [
        replace(f, method="zhan-shen", n_samples=task.m, rows=kept[f.rows], details=f.details | details)
        for f in osuna_girosi(smaller, sizes, epsilons=epsilons, C=C, tol=tol)
    ]


def _without(task: Task, rows: Array) -> Array:
    """All rows but these; a class all of whose rows are among them keeps them."""
    kept = np.ones(task.m, dtype=bool)
    kept[rows] = False
    for sign in (-1.0, 1.0):
        if not kept[task.y == sign].any():
            kept |= task.y == sign
    return np.flatnonzero(kept)


def curvatures(machine: Expansion) -> Array:
    """Of f = 0, at the projection of each vector of a machine with the rbf kernel."""
    if not machine.size:
        return np.zeros(0)
    rows, gamma = Rows.of(machine.vectors, machine.kernel.gamma), machine.kernel.gamma
    psi = Vector([(rows, machine.coef)])
    every, step = (
        np.arange(machine.size),
        max(1, min(POINTS_PER_BATCH, ENTRIES_PER_BATCH // machine.vectors.shape[1] ** 2)),
    )
    parts = (every[first : first + step] for first in range(0, machine.size, step))
    return np.concatenate(
        [curvature_at(projected(rows.dense(part), psi, machine.bias, gamma), machine, rows) for part in parts]
    )


def projected(Z: Array, psi: Vector, bias: float, gamma: float) -> Array:
    """Points moved along the gradient until f = 0, or as near as Newton's steps, halved where they lose, bring them."""
    Z = Z.copy()
    f, slope = _value_and_gradient(Z, psi, bias, gamma)
    length = np.ones(len(Z))
    for _ in range(PROJECTION_STEPS):
        square = np.einsum("ij,ij->i", slope, slope)
        going = np.flatnonzero((np.abs(f) > ON_SURFACE) & (square > 0) & (length > ON_SURFACE))
        if not len(going):
            break
        with np.errstate(over="ignore"):
            trial = Z[going] - (length[going] * f[going] / square[going])[:, None] * slope[going]
        there, gradient = _value_and_gradient(trial, psi, bias, gamma)
        better = np.abs(there) < np.abs(f[going])
        moved = going[better]
        Z[moved], f[moved], slope[moved] = trial[better], there[better], gradient[better]
        length[going] = np.where(better, 1.0, 0.5 * length[going])
    return Z


def _value_and_gradient(Z: Array, psi: Vector, bias: float, gamma: float) -> tuple[Array, Array]:
    """f = Σ c_j K_j + b, and ∇f = −2γ Σ c_j K_j (z − v_j)."""
    value, pull = psi.at(Z)
    return value + bias, 2 * gamma * (pull - value[:, None] * Z)


def curvature_at(Z: Array, machine: Expansion, rows: Rows) -> Array:
    """‖P ∇²f P‖_F/‖∇f‖ of points, 0 where ∇f = 0.

    With w_j = c_j K_j the gradient is −2γ Σ w_j (z − v_j), and ∇²f = H = 4γ² Σ w_j (z − v_j)(z − v_j)ᵀ − 2γ Σ w_j I.
    For the unit normal n, ‖PHP‖² = ‖H‖² − 2‖Hn‖² + (nᵀHn)².
    """
    gamma, V = machine.kernel.gamma, rows.dense(np.arange(machine.size))
    weights = (machine.coef[:, None] * gaussian(V, Z, gamma)).T
    total, origin = weights.sum(axis=1), V.mean(axis=0)
    Z, V = Z - origin, V - origin
    slope = -2 * gamma * (total[:, None] * Z - weights @ V)
    length = np.linalg.norm(slope, axis=1)
    normal = slope / np.where(length > 0, length, 1.0)[:, None]
    curved = _few_vectors if len(V) < V.shape[1] else _many_vectors
    square, along = curved(Z, V, 4 * gamma**2 * weights, 2 * gamma * total, normal)
    square += -2 * np.einsum("ij,ij->i", along, along) + np.einsum("ij,ij->i", along, normal) ** 2
    return np.where(length > 0, np.sqrt(np.maximum(square, 0.0)) / np.where(length > 0, length, 1.0), 0.0)


def _many_vectors(Z: Array, V: Array, spread: Array, flat: Array, normal: Array) -> tuple[Array, Array]:
    """‖H‖² and Hn of H = Σ spread_j (z − v_j)(z − v_j)ᵀ − flat I, a line each, from H itself."""
    total, pull = spread.sum(axis=1), spread @ V
    H = total[:, None, None] * Z[:, :, None] * Z[:, None, :]
    H -= Z[:, :, None] * pull[:, None, :] + pull[:, :, None] * Z[:, None, :]
    step = max(1, COLUMNS_PER_PRODUCT // V.shape[1])
    for first in range(0, V.shape[1], step):
        some = slice(first, first + step)
        products = (V[:, some, None] * V[:, None, :]).reshape(len(V), -1)
        H[:, some] += (spread @ products).reshape(len(Z), -1, V.shape[1])
    every = np.arange(V.shape[1])
    H[:, every, every] -= flat[:, None]
    return np.einsum("kij,kij->k", H, H), np.einsum("kij,kj->ki", H, normal)


def _few_vectors(Z: Array, V: Array, spread: Array, flat: Array, normal: Array) -> tuple[Array, Array]:
    """The same from the products of the z − v_j, where H has more entries."""
    square, along = np.empty(len(Z)), np.empty(Z.shape)
    for k, z in enumerate(Z):
        apart, a = z - V, spread[k]
        G = apart @ apart.T
        square[k] = a @ (G * G) @ a - 2 * flat[k] * (a @ np.diagonal(G)) + flat[k] ** 2 * len(z)
        along[k] = (a * (apart @ normal[k])) @ apart - flat[k] * normal[k]
    return square, along
