"""A random basis and the best coefficients on it: RSVM (Lee & Mangasarian 2001), Nyström (Williams & Seeger 2001)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from pegasos.experiments.baselines.basis import Refit, refit
from pegasos.experiments.baselines.task import Expansion, Task, checked_sizes
from pegasos.util.threads import with_one_blas_thread


@with_one_blas_thread
def random_basis(
    task: Task,
    sizes: Sequence[int],
    *,
    candidates: Literal["support", "all"] = "support",
    loss: Refit = "squared_hinge",
    C: float | None = None,
    tol: float = 1e-3,
    random_state: int = 0,
) -> list[Expansion]:
    """Draw points at random, and minimise ½‖w‖² + C Σ ℓ over their span, the bias not regularised.

    The regulariser is ‖w‖² = βᵀK_ZZβ, as in Nyström's method; RSVM has ‖β‖². With all rows as the basis the machine is
    the full one.

    Parameters
    ----------
    task : Task
        Rows, labels, kernel and C.
    sizes : sequence of int
        How many points; the smaller bases are parts of the larger.
    candidates : {"support", "all"}, default="support"
        Draw from the support vectors of the reference, or from all rows.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        ℓ.
    C : float, default=None
        Weight of the losses; None: the task's.
    tol : float, default=1e-3
        Relative gap at which a fit stops.
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
    >>> from pegasos.experiments import Task, random_basis
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> [found.size for found in random_basis(Task(X, y, gamma=1.0), [5, 20])]
    [5, 20]
    """
    C = task.weight(C)
    if loss not in ("squared_hinge", "hinge"):
        raise ValueError(f"loss={loss!r} is neither 'squared_hinge' nor 'hinge'")
    pool = task.chosen_rows("candidates", candidates)
    sizes = checked_sizes(sizes, len(pool))
    order = np.random.default_rng(random_state).permutation(pool)
    basis, found, taken = task.basis(sizes[-1]), [], 0
    for size in sizes:
        while basis.size < size and taken < len(order):  # rows in the span of others are no points
            batch = order[taken : taken + size - basis.size]
            basis.add_rows(batch)
            taken += len(batch)
        fit = refit(basis, task.y, C, loss, tol)
        coef = basis.coefficients(fit.u)
        found.append(task.on_rows("random", basis.index, coef, fit.bias, objective=fit.objective))
    return found
