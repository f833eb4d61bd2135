"""SpSVM: a basis chosen greedily, with the squared hinge (Keerthi, Chapelle & DeCoste 2006)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from pegasos.experiments.baselines.greedy import greedy_path
from pegasos.experiments.baselines.task import Expansion, Task, checked_sizes, count
from pegasos.util.threads import with_one_blas_thread


@with_one_blas_thread
def spsvm(
    task: Task,
    sizes: Sequence[int],
    *,
    pool: int = 59,
    candidates: Literal["support", "all"] = "all",
    C: float | None = None,
    random_state: int = 0,
) -> list[Expansion]:
    """Grow a basis by the best of some random rows at a time, for ½‖w‖² + C Σ max(0, 1 − y_i f(x_i))².

    Parameters
    ----------
    task : Task
        Rows, labels, kernel and C.
    sizes : sequence of int
        Sizes at which the growing basis is looked at.
    pool : int, default=59
        Rows drawn for each place. 59, as published: with probability 0.95 one of them is among the best twentieth.
    candidates : {"all", "support"}, default="all"
        Draw from all rows, as published, or from the support vectors of the reference.
    C : float, default=None
        Weight of the losses; None: the task's.
    random_state : int, default=0
        Seed.

    Returns
    -------
    list of Expansion
        One for each size; ``details["objective"]`` is what was minimised, and falls with the size.

    References
    ----------
    S. S. Keerthi, O. Chapelle and D. DeCoste, *Building support vector machines with reduced classifier complexity*,
    JMLR 7 (2006).

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from pegasos.experiments import Task, spsvm
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> small, large = spsvm(Task(X, y, gamma=1.0), [5, 20])
    >>> large.details["objective"] < small.details["objective"]
    True
    """
    C, pool = task.weight(C), count("pool", pool)
    rows = task.chosen_rows("candidates", candidates)
    sizes = checked_sizes(sizes, len(rows))
    basis, found = task.basis(sizes[-1]), []
    rng = np.random.default_rng(random_state)
    for _, fit in greedy_path(basis, task.y, C, sizes, rows, pool, rng):
        coef = basis.coefficients(fit.u)
        found.append(task.on_rows("spsvm", basis.index, coef, fit.bias, objective=fit.objective))
    return found
