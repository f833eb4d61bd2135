"""Where a stochastic fit ends that was asked for T steps, or for a part of an epoch."""

from __future__ import annotations

from typing import NamedTuple

from pegasos.problems.linear import LinearProblem
from pegasos.problems.sampled import SampledProblem

#: Why a fit stops that was asked for so many steps.
MAX_STEPS = "max_steps reached"


def all_rows(problem: LinearProblem) -> int:
    """The rows of an epoch, of which the problem may have some alone."""
    return problem.all_rows if isinstance(problem, SampledProblem) else problem.examples.m


def visits_of(epochs: float, m: int) -> int:
    """The fewest visits of m rows that are so many epochs, be it a part of one."""
    visits = int(epochs * m)
    return visits if visits / m >= epochs else visits + 1


class Horizon(NamedTuple):
    """So many steps, and so many visits of rows, at most; None: no limit."""

    max_steps: int | None = None
    max_visits: int | None = None

    def left(self, steps: int, visits: int, batch_size: int) -> int | None:
        """Rows that may still be visited, after so many steps and visits."""
        limits = []
        if self.max_steps is not None:
            limits.append((self.max_steps - steps) * batch_size)
        if self.max_visits is not None:
            limits.append(self.max_visits - visits)
        return min(limits, default=None)
