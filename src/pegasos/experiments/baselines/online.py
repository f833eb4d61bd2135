"""Kernel perceptrons in one loop: rows come one by one, a mistake adds a point, a budget takes one away.

The rows come in blocks whose kernel values against the points, and among themselves, are computed together; within a
block scores are kept up to date mistake by mistake, so that the result is that of one row at a time.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pegasos.experiments.baselines.task import Task, count
from pegasos.kernels.gram import provider
from pegasos.rows.views import Array

#: Rows of a block.
BLOCK_ROWS = 256


class OnlineMachine:
    """Points in the order of their mistakes, and their coefficients.

    Parameters
    ----------
    task
        Rows, labels and kernel.
    budget
        Points at most; None: no limit.
    forget
        Called with the machine when it has one point too many; says by what to scale all coefficients, and which
        point goes.
    on_mistake
        Called after each mistake; a true answer ends the run.
    """

    def __init__(
        self,
        task: Task,
        budget: int | None = None,
        forget: Callable[[OnlineMachine], tuple[float, int]] | None = None,
        on_mistake: Callable[[OnlineMachine], bool] | None = None,
    ) -> None:
        self.task, self.budget, self.forget, self.on_mistake = task, budget, forget, on_mistake
        self.kernel_rows = provider(task.X, task.kernel, 0, task.threads)
        self.rows, self.coef = np.zeros(0, dtype=np.int64), np.zeros(0)
        self.mistakes = 0

    def score(self, row: int) -> float:
        """f of one row."""
        values = self.kernel_rows.block(np.array([row]), self.rows)[0, : len(self.rows)]
        return float(values.astype(np.float64) @ self.coef)

    def run(self, order: Array) -> None:
        """Go through rows in this order, or until ``on_mistake`` says stop."""
        for first in range(0, len(order), BLOCK_ROWS):
            if self._block(np.asarray(order[first : first + BLOCK_ROWS], dtype=np.int64)):
                return

    def _block(self, block: Array) -> bool:
        y, among = self.task.y, self._values(block, block)
        values = self._values(block, self.rows)
        scores = values.astype(np.float64) @ self.coef
        columns: list[Array] = list(values.T)  # of each point, against the rows of the block
        for k, row in enumerate(block):
            if y[row] * scores[k] > 0:
                continue
            self.mistakes += 1
            self.rows, self.coef = np.append(self.rows, row), np.append(self.coef, y[row])
            columns.append(among[k])
            scores += y[row] * among[k]
            if self.budget is not None and len(self.rows) > self.budget:
                assert self.forget is not None
                scale, at = self.forget(self)
                self.coef *= scale
                scores = scale * scores - self.coef[at] * columns.pop(at)
                self.rows, self.coef = np.delete(self.rows, at), np.delete(self.coef, at)
            if self.on_mistake is not None and self.on_mistake(self):
                return True
        return False

    def _values(self, a: Array, b: Array) -> Array:
        return np.asarray(self.kernel_rows.block(a, b)[:, : len(b)])


def orders(m: int, epochs: int, random_state: int) -> Array:
    """So many permutations of the rows, one after the other."""
    epochs = count("epochs", epochs)
    rng = np.random.default_rng(random_state)
    return np.concatenate([rng.permutation(m) for _ in range(epochs)])
