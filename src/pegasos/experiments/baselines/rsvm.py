"""RSVM with its own penalty, ‖β‖² (Lee & Mangasarian 2001)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from pegasos.experiments.baselines.task import Expansion, Task, checked_sizes, positive
from pegasos.kernels.gram import provider
from pegasos.rows.views import Array
from pegasos.solvers.squared_hinge import newton
from pegasos.util.threads import with_one_blas_thread


@with_one_blas_thread
def rsvm(
    task: Task,
    sizes: Sequence[int],
    *,
    C: float | None = None,
    candidates: Literal["all", "support"] = "all",
    tol: float = 1e-6,
    random_state: int = 0,
) -> list[Expansion]:
    """Draw rows Ā at random, and minimise ½(‖β‖² + b²) + C Σ_i max(0, 1 − y_i(K(x_i, Ā)β + b))² by Newton's method.

    The columns of the rectangular kernel matrix K(A, Ā) are features like any other: it need not be positive
    semi-definite, and the penalty is no norm of the feature space. :func:`random_basis` has that, ‖w‖² = βᵀK(Ā, Ā)β,
    and a free bias. The published method smooths max(0, ·) by (1/α) log(1 + exp(α ·)); this is its limit for α → ∞,
    where Newton's steps end after finitely many.

    Parameters
    ----------
    task : Task
        Rows, labels, kernel and C.
    sizes : sequence of int
        How many rows; the smaller sets are parts of the larger.
    C : float, default=None
        Weight of the losses; None: the task's. The published ν is 2C.
    candidates : {"all", "support"}, default="all"
        Draw from all rows, as published, or from the support vectors of the reference.
    tol : float, default=1e-6
        Newton's method ends with a step that lowers the objective by a smaller share.
    random_state : int, default=0
        Seed.

    Returns
    -------
    list of Expansion
        One for each size; ``details["objective"]`` is what was minimised.

    References
    ----------
    Y.-J. Lee and O. L. Mangasarian, *RSVM: reduced support vector machines*, SIAM Data Mining 2001.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from pegasos.experiments import Task, rsvm
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> small, large = rsvm(Task(X, y, gamma=1.0), [5, 20])
    >>> large.size, large.details["objective"] < small.details["objective"]
    (20, True)
    """
    C, tol = task.weight(C), positive("tol", tol)
    pool = task.chosen_rows("candidates", candidates)
    sizes = checked_sizes(sizes, len(pool))
    chosen = np.random.default_rng(random_state).permutation(pool)[: sizes[-1]]
    features, beta, bias, found = _features(task, chosen), np.zeros(0), 0.0, []
    for size in sizes:
        columns = np.append(np.arange(size), len(chosen))  # the last one is the bias, a constant feature
        start = np.concatenate([beta, np.zeros(size - len(beta)), [bias]])
        theta, objective = minimum(features[:, columns], task.y, C, start, tol, task.threads)
        beta, bias = theta[:-1], float(theta[-1])
        found.append(task.on_rows("rsvm", chosen[:size], beta, bias, objective=objective))
    return found


def minimum(features: Array, y: Array, C: float, theta: Array, tol: float, threads: int) -> tuple[Array, float]:
    """The minimum of ½‖θ‖² + C Σ max(0, 1 − y_i⟨θ, features_i⟩)² from a start, and its value."""
    cost = np.full(len(y), 2 * C)  # newton has ½ before its losses
    theta, _ = newton(features, y, cost, theta, 0.0, False, threads, small=tol)
    slack = np.maximum(0.0, 1.0 - y * (features @ theta.astype(features.dtype)).astype(np.float64))
    return theta, float(0.5 * theta @ theta + C * slack @ slack)


def _features(task: Task, chosen: Array) -> Array:
    """K(A, Ā) and a column of ones, a column of the file's rows after the other in memory."""
    rows = provider(task.X, task.kernel, 0, task.threads)
    values = np.ones((task.m, len(chosen) + 1), dtype=rows.dtype)
    values[:, :-1] = rows.block(chosen, np.arange(task.m))[:, : task.m].T
    return values
