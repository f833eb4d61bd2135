"""What the second-order methods for piecewise linear losses share: parts in turn, and samples first.

Problems of many rows are solved roughly on samples of their rows first. The weights of a sample are near those of all
rows, so the first iterations, which only come near them, go over few rows.
"""

from __future__ import annotations

import numpy as np

from pegasos.problems.linear import LinearProblem
from pegasos.rows.views import Array
from pegasos.solvers.linear.engine import LinearEngine
from pegasos.solvers.linear.normal_equations import STALLS, regularisation
from pegasos.util.fields import Numbers, State, as_state, saved

#: Rows of a sample's next larger sample for each of its own.
SAMPLE_RATIO = 5


def nested_samples(m: int, least: int, seed: int) -> list[Array | None]:
    """The rows of nested samples, none shorter than ``least``, the shortest last; None, for all rows, comes first."""
    sizes = []
    size = m
    while (size := size // SAMPLE_RATIO) >= least:
        sizes.append(size)
    if not sizes:
        return [None]
    shuffled = np.random.default_rng(seed).permutation(m)
    return [None, *(np.sort(shuffled[:size]) for size in sizes)]


class SampledEngine(LinearEngine):
    """An engine that iterates on each part of a problem in turn, first on its samples.

    A subclass says with ``iterate`` how, and with ``betas`` what has come of it.
    """

    #: The fewest rows of a sample, and the fewest for each column.
    MIN_SAMPLE_ROWS: int
    MIN_SAMPLE_ROWS_PER_COLUMN: int

    def __init__(self, problem: LinearProblem, seed: int) -> None:
        self.problem = problem
        self.passes, self.turn, self.tol = 0.0, 0, 0.0
        self.done = np.zeros(problem.n_parts, dtype=bool)
        self.samples = nested_samples(
            problem.examples.m, max(self.MIN_SAMPLE_ROWS, self.MIN_SAMPLE_ROWS_PER_COLUMN * problem.examples.n), seed
        )
        #: Which sample each part is at; 0: all rows.
        self.levels = [len(self.samples) - 1] * problem.n_parts
        self.zero = np.zeros(len(regularisation(problem)))

    def iterate(self, part: int) -> int:
        """Do an iteration on a part, if there is anything to do; the rows it went over."""
        raise NotImplementedError

    def betas(self) -> list[Array]:
        """(w, b) of each part; without b if there is none."""
        raise NotImplementedError

    @property
    def epochs(self) -> float:
        """Iterations on all rows; those on samples count as the share of rows they use."""
        return self.passes

    def advance(self) -> None:
        part = self.turn
        if not self.done[part]:
            self.passes += self.iterate(part) / self.problem.examples.m / self.problem.n_parts
        self.turn = (part + 1) % self.problem.n_parts

    def model(self) -> tuple[Array, Array]:
        n, betas = self.problem.examples.n, self.betas()
        W = np.stack([beta[:n] for beta in betas])
        return W, np.array([beta[n] if self.problem.bias != "none" else 0.0 for beta in betas])

    def state(self) -> State:
        named = self.named() | {
            "passes": self.passes,
            "turn": self.turn,
            "levels": self.levels,
            "done": self.done,
            "tol": self.tol,
            "stuck": STALLS.index(self.stalled),
        }
        return as_state(named)

    def named(self) -> Numbers:
        """What a subclass adds to the state."""
        raise NotImplementedError

    def restore(self, state: State) -> None:
        parts = self.problem.n_parts
        self.passes = float(saved(state, "passes", (1,), low=0, high=1e15)[0])
        (self.turn,), self.tol = whole(state, "turn", parts - 1), float(saved(state, "tol", (1,))[0])
        self.done = np.array(whole(state, "done", 1, parts), dtype=bool)
        self.stalled = STALLS[whole(state, "stuck", len(STALLS) - 1)[0]]
        self.levels = whole(state, "levels", len(self.samples) - 1, parts)


def whole(state: State, name: str, high: float, length: int = 1) -> list[int]:
    """Whole numbers 0 … ``high`` of a saved state."""
    return [int(v) for v in saved(state, name, (length,), low=0, high=high, whole=True)]
