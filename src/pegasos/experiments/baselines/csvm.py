"""Condensed vector machines: vectors are combined while the machine is trained (Nguyen et al. 2010)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from pegasos.estimators.svc import SVC
from pegasos.experiments.baselines.combination import Condensed
from pegasos.experiments.baselines.task import Expansion, Task, checked_sizes, count, positive
from pegasos.rows.views import Array, is_sparse
from pegasos.sparse.preimage import as_rows, gaussian
from pegasos.util.threads import with_one_blas_thread


@with_one_blas_thread
def csvm(
    task: Task,
    sizes: Sequence[int],
    *,
    batch: int = 50,
    max_rounds: int = 100,
    tol: float = 1e-3,
    random_state: int = 0,
) -> list[Expansion]:
    """Train on a working set that rows with large losses enter, and in which vectors of one class become one.

    A round trains on the working set; if there are more support vectors than wanted, it leaves out all else, combines
    the two nearest of a class until there are not, and trains on what is left. Then it takes in the ``batch`` rows, in
    equal parts from both classes where there are such, that lack the most of a margin of 1. It ends when no row lacks
    more than ``tol``. A vector counts as often as the rows that it stands for: its coefficient is at most C times their
    number, and they do not enter again unless it is left out. Where ``sizes`` leaves room for all support vectors,
    nothing is combined, and the machine is the optimum.

    The combination is that of Nguyen & Ho (2006): the point between the two whose image is nearest, see
    ``combination.py``. Of the 2010 paper, which the 2013 paper names CSVM and takes results from, we know that it puts
    such a combination into an incremental choice of working sets; order, batches, weights and the end are ours.

    Parameters
    ----------
    task : Task
        Rows, labels and C; the kernel must be "rbf".
    sizes : sequence of int
        Vectors at most, at least 2; each a run of its own.
    batch : int, default=50
        Rows that enter in a round.
    max_rounds : int, default=100
        Rounds at most.
    tol : float, default=1e-3
        What a row may lack of a margin of 1, and the precision of the machines on the working set.
    random_state : int, default=0
        Seed of the rows to begin with.

    Returns
    -------
    list of Expansion
        One for each size: the machine of the round where ½‖w‖² + C Σ hinge, over all rows, was least;
        ``details["objective"]`` is that, ``details["rounds"]`` are all rounds.

    References
    ----------
    D. D. Nguyen, K. Matsumoto, Y. Takishima and K. Hashimoto, *Condensed vector machines: learning fast machine for
    large data*, IEEE Trans. Neural Networks 21 (2010);
    D. D. Nguyen and T. Ho, *A bottom-up method for simplifying support vector solutions*, IEEE Trans. Neural Networks
    17 (2006).

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from pegasos.experiments import Task, csvm
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> (found,) = csvm(Task(X, y, gamma=1.0), [10])
    >>> found.size <= 10, found.score(X, y) > 0.9
    (True, True)
    """
    task.needs_rbf("csvm")
    batch, max_rounds, tol = count("batch", batch), count("max_rounds", max_rounds), positive("tol", tol)
    sizes = checked_sizes(sizes)
    if sizes[0] < 2:
        raise ValueError("sizes has 1, but csvm keeps a vector of each class: at least 2")
    return [_WorkingSet(task, size, batch, tol, random_state).expansion(max_rounds) for size in sizes]


class _WorkingSet:
    """Vectors, their labels, and how many rows each stands for."""

    def __init__(self, task: Task, size: int, batch: int, tol: float, random_state: int) -> None:
        self.task, self.size, self.batch, self.tol = task, size, batch, tol
        self.Z, self.y, self.weight = np.zeros((0, task.X.shape[1])), np.zeros(0), np.zeros(0)
        self.holder = np.full(task.m, -1)  # the vector that stands for each row, or none
        order = np.random.default_rng(random_state).permutation(task.m)
        self._enter(self._of_both(order))

    def expansion(self, max_rounds: int) -> Expansion:
        """The best machine until no row outside lacks more than ``tol``, or so many rounds are over."""
        X, y = self.task.X, self.task.y
        least, found = np.inf, None
        rounds = 0
        while rounds < max_rounds:
            rounds += 1
            machine = self._machine()
            slack = 1 - y * machine.decision_function(X)
            objective = self._penalty(machine) + self.task.C * float(np.maximum(0, slack).sum())
            if objective < least:
                least, found = objective, (self.Z, *self._coefficients(machine))
            lacking = np.where(self.holder < 0, slack, -np.inf)
            order = np.argsort(-lacking, kind="stable")
            order = order[lacking[order] > self.tol]
            if not len(order):
                break
            self._enter(self._of_both(order))
        assert found is not None
        (Z, coef, bias), details = found, {"rounds": rounds, "objective": least}
        used = coef != 0
        return self.task.on_points("csvm", as_rows(Z[used], X), coef[used], bias, **details)

    def _penalty(self, machine: SVC) -> float:
        """½‖w‖²."""
        coef, Z = self._coefficients(machine)[0][machine.support_], self.Z[machine.support_]
        return 0.5 * float(coef @ gaussian(Z, Z, self.task.kernel.gamma) @ coef)

    def _of_both(self, order: Array) -> Array:
        """The first rows of an order, half of each class where there are enough."""
        up, down = order[self.task.y[order] > 0], order[self.task.y[order] < 0]
        half = (self.batch + 1) // 2
        ups = min(len(up), max(half, self.batch - len(down)))
        return np.concatenate([up[:ups], down[: max(1, self.batch - ups)]])

    def _enter(self, rows: Array) -> None:
        part = self.task.X[rows]
        points = np.asarray(part.toarray() if is_sparse(part) else part, dtype=np.float64)
        self.holder[rows] = len(self.Z) + np.arange(len(rows))
        self.Z, self.y = np.concatenate([self.Z, points]), np.concatenate([self.y, self.task.y[rows]])
        self.weight = np.concatenate([self.weight, np.ones(len(rows))])

    def _machine(self) -> SVC:
        """Train; if there are too many support vectors, leave out all else and combine them, and train again."""
        machine = self._fitted()
        coef, _ = self._coefficients(machine)
        needed = self._needed(coef)
        if len(needed) <= self.size:
            return machine
        condensed = Condensed(
            self.Z[needed], self.y[needed], np.abs(coef[needed]), self.weight[needed], self.task.kernel.gamma
        )
        condensed.to(self.size)
        alive = condensed.alive
        place = np.full(len(self.Z), -1)
        place[needed] = (np.cumsum(alive) - 1)[condensed.into]
        self.holder = np.where(self.holder >= 0, place[self.holder], -1)
        self.Z, self.y, self.weight = condensed.Z[alive], condensed.y[alive], condensed.weight[alive]
        return self._fitted()

    def _needed(self, coef: Array) -> Array:
        """The support vectors, and of a class that has none any of its vectors."""
        needed = coef != 0
        for sign in (-1.0, 1.0):
            if not needed[self.y == sign].any():
                needed[np.flatnonzero(self.y == sign)[0]] = True
        return np.flatnonzero(needed)

    def _fitted(self) -> SVC:
        """The machine of the working set; a vector's coefficient is at most C times its weight."""
        k = self.task.kernel
        machine = SVC(kernel="rbf", gamma=k.gamma, C=self.task.C, tol=self.tol, n_jobs=self.task.threads)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the size is what counts here
            return machine.fit(self.Z, self.y, sample_weight=self.weight)

    def _coefficients(self, machine: SVC) -> tuple[Array, float]:
        """A coefficient of each vector, and the bias."""
        coef = np.zeros(len(self.Z))
        coef[machine.support_] = machine._dense_coefficients()[0]
        return coef, float(machine.intercept_[0])
