"""The kernel perceptron (Freund & Schapire 1999)."""

from __future__ import annotations

from collections.abc import Sequence

from pegasos.experiments.baselines.online import grown, orders
from pegasos.experiments.baselines.task import Expansion, Task
from pegasos.util.threads import with_one_blas_thread


@with_one_blas_thread
def perceptron(task: Task, sizes: Sequence[int], *, epochs: int = 1, random_state: int = 0) -> list[Expansion]:
    """Add y_i φ(x_i) for each row that is misclassified when its turn comes; there is no bias.

    If some u of norm ‖u‖ has y_i⟨u, φ(x_i)⟩ ≥ 1 for all rows, and K(x, x) ≤ R², there are at most R²‖u‖² mistakes,
    however often the rows come round.

    Parameters
    ----------
    task : Task
        Rows, labels and kernel.
    sizes : sequence of int
        Sizes at which the growing machine is looked at. It may stay smaller.
    epochs : int, default=1
        Passes over the rows, each in a random order.
    random_state : int, default=0
        Seed.

    Returns
    -------
    list of Expansion
        One for each size reached, and the last machine; ``details["mistakes"]`` are the mistakes up to then.

    References
    ----------
    Y. Freund and R. E. Schapire, *Large margin classification using the perceptron algorithm*, Machine Learning 37
    (1999).

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from pegasos.experiments import Task, perceptron
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> found = perceptron(Task(X, y, gamma=1.0), [5, 200])
    >>> [model.size <= limit for model, limit in zip(found, [5, 200])]
    [True, True]
    """
    return grown(task, "perceptron", sizes, orders(task.m, epochs, random_state))
