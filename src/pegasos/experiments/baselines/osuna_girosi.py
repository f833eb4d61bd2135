"""A regression on the reference's own scores (Osuna & Girosi 1998)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Literal

from sklearn.exceptions import ConvergenceWarning

from pegasos.estimators.svr import SVR
from pegasos.experiments.baselines.task import Expansion, Task, checked_sizes
from pegasos.util.threads import with_one_blas_thread


@with_one_blas_thread
def osuna_girosi(
    task: Task,
    sizes: Sequence[int],
    *,
    epsilons: Sequence[float] = (1.0, 0.5, 0.25, 0.125, 0.0625),
    C: float | None = None,
    rows: Literal["all", "support"] = "all",
    tol: float = 1e-3,
) -> list[Expansion]:
    """Fit f(x_i), the scores of the reference, by ε-insensitive regression: within the tube no row costs a point.

    At every row whose coefficient is not at its bound ±C the two scores differ by at most ε.

    Parameters
    ----------
    task : Task
        Rows, labels, kernel and reference.
    sizes : sequence of int
        The largest is a limit: the tubes are gone through from wide to narrow until a machine has more points.
    epsilons : sequence of float, default=(1, 1/2, 1/4, 1/8, 1/16)
        Half the widths of the tubes.
    C : float, default=None
        Weight of the losses; None: the task's, as in the 2013 paper.
    rows : {"all", "support"}, default="all"
        Regress on all rows or on the support vectors.
    tol : float, default=1e-3
        Of :class:`~pegasos.SVR`.

    Returns
    -------
    list of Expansion
        One for each ε that kept within the limit; ``details["epsilon"]`` is its ε.

    References
    ----------
    E. Osuna and F. Girosi, *Reducing the run-time complexity of support vector machines*, ICPR 1998.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from pegasos.experiments import Task, osuna_girosi
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> found = osuna_girosi(Task(X, y, gamma=1.0, C=10.0), [40], epsilons=[0.5])
    >>> found[0].size < 40
    True
    """
    C, limit = task.weight(C), checked_sizes(sizes)[-1]
    index = task.chosen_rows("rows", rows)
    X = task.X[index]
    target = task.expansion.decision_function(X)
    k, found = task.kernel, []
    for epsilon in sorted(epsilons, reverse=True):
        model = SVR(
            kernel=k.name,
            gamma=k.gamma,
            coef0=k.coef0,
            degree=k.degree,
            C=C,
            epsilon=epsilon,
            tol=tol,
            n_jobs=task.threads,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # details say how far it came
            model.fit(X, target)
        if len(model.support_) > limit:
            break
        coef, bias = model._dense_coefficients()[0], float(model.intercept_[0])
        gap = model.certificate_.relative_gap
        found.append(task.on_rows("osuna-girosi", index[model.support_], coef, bias, epsilon=epsilon, relative_gap=gap))
    return found
