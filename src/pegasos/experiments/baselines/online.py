"""Kernel perceptrons and their like in one loop: rows come one by one, some add a point, a budget takes one away.

The rows come in blocks whose kernel values against the points, and among themselves, are computed together; within a
block scores are kept up to date mistake by mistake, so that the result is that of one row at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from pegasos.experiments.baselines.task import Expansion, Task, checked_sizes, count
from pegasos.kernels.gram import provider
from pegasos.rows.views import Array

#: Rows of a block.
BLOCK_ROWS = 256


def mistaken(row: int, margin: float) -> float:
    """The perceptron's step: 1 for a mistake."""
    return 0.0 if margin > 0 else 1.0


class OnlineMachine:
    """Points in the order of their steps, and their coefficients.

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
        Called after each step; a true answer ends the run.
    step
        The size of the coefficient that a row gets, 0 for none, by its number and its margin y f(x).
    merge
        Whether points that are the same row become one, between blocks.
    """

    def __init__(
        self,
        task: Task,
        budget: int | None = None,
        forget: Callable[[OnlineMachine], tuple[float, int]] | None = None,
        on_mistake: Callable[[OnlineMachine], bool] | None = None,
        *,
        step: Callable[[int, float], float] = mistaken,
        merge: bool = False,
    ) -> None:
        self.task, self.budget, self.forget, self.on_mistake = task, budget, forget, on_mistake
        self.step, self.merge = step, merge
        self.kernel_rows = provider(task.X, task.kernel, 0, task.threads)
        self.rows: Array = np.zeros(0, dtype=np.int64)
        self.coef: Array = np.zeros(0)
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
        if self.merge:
            self.rows, back = np.unique(self.rows, return_inverse=True)
            self.coef = np.bincount(back, weights=self.coef, minlength=len(self.rows))
        y, among = self.task.y, self._values(block, block)
        values = self._values(block, self.rows)
        scores = values.astype(np.float64) @ self.coef
        # Of each point, against the rows of the block: for its removal.
        columns: list[Array] = [] if self.budget is None else list(values.T)
        for k, row in enumerate(block):
            margin = float(y[row] * scores[k])
            self.mistakes += not margin > 0
            size = self.step(int(row), margin)
            if size == 0:
                continue
            coef = size * y[row]
            self.rows, self.coef = np.append(self.rows, row), np.append(self.coef, coef)
            columns.append(among[k])
            scores += coef * among[k]
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


def grown(
    task: Task,
    method: str,
    sizes: Sequence[int],
    order: Array,
    step: Callable[[int, float], float] = mistaken,
    details: Callable[[], dict[str, object]] = dict,
) -> list[Expansion]:
    """The machine when it reaches each of the sizes, and the last one if it stays smaller; ``details`` of the step."""
    sizes = checked_sizes(sizes)
    found: list[Expansion] = []
    seen: set[int] = set()

    def snapshot(machine: OnlineMachine) -> Expansion:
        return task.on_rows(method, machine.rows, machine.coef, 0.0, mistakes=machine.mistakes, **details())

    def watch(machine: OnlineMachine) -> bool:
        seen.add(int(machine.rows[-1]))
        if len(seen) < sizes[len(found)]:
            return False
        found.append(snapshot(machine))
        return len(found) == len(sizes)

    machine = OnlineMachine(task, on_mistake=watch, step=step, merge=True)
    machine.run(order)
    if len(found) < len(sizes) and seen:
        found.append(snapshot(machine))
    return found


def orders(m: int, epochs: int, random_state: int) -> Array:
    """So many permutations of the rows, one after the other."""
    epochs = count("epochs", epochs)
    rng = np.random.default_rng(random_state)
    return np.concatenate([rng.permutation(m) for _ in range(epochs)])
