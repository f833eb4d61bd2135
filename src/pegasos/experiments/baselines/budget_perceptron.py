"""The randomised budget perceptron (Cavallanti, Cesa-Bianchi & Gentile 2007)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pegasos.experiments.baselines.online import OnlineMachine, orders
from pegasos.experiments.baselines.task import Expansion, Task, checked_sizes
from pegasos.util.threads import with_one_blas_thread


@with_one_blas_thread
def budget_perceptron(task: Task, sizes: Sequence[int], *, epochs: int = 1, random_state: int = 0) -> list[Expansion]:
    """A kernel perceptron that, when a mistake finds all places taken, first gives up a point at random.

    Parameters
    ----------
    sizes : sequence of int
        Budgets, each a run of its own.
    task, epochs, random_state
        As for :func:`perceptron`.

    Returns
    -------
    list of Expansion
        One for each budget; ``details["mistakes"]`` are the mistakes of the run.

    References
    ----------
    G. Cavallanti, N. Cesa-Bianchi and C. Gentile, *Tracking the best hyperplane with a simple budget perceptron*,
    Machine Learning 69 (2007).

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from pegasos.experiments import Task, budget_perceptron
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> (found,) = budget_perceptron(Task(X, y, gamma=1.0), [10])
    >>> found.size <= 10
    True
    """
    found = []
    for budget in checked_sizes(sizes):
        rng = np.random.default_rng([random_state, budget])

        def any_but_the_newest(machine: OnlineMachine, rng: np.random.Generator = rng) -> tuple[float, int]:
            return 1.0, int(rng.integers(len(machine.rows) - 1))

        machine = OnlineMachine(task, budget, any_but_the_newest)
        machine.run(orders(task.m, epochs, random_state))
        found.append(task.on_rows("rbp", machine.rows, machine.coef, 0.0, budget=budget, mistakes=machine.mistakes))
    return found
