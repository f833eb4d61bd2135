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


class StepLimit:
    """An engine that ends at its horizon, within an epoch if need be."""

    horizon: Horizon
    #: Rows of a step.
    batch_size: int

    @property
    def steps_made(self) -> int:
        raise NotImplementedError

    @property
    def finished(self) -> bool:
        """Whether all steps that were asked for have been made."""
        return self.horizon.max_steps is not None and self.steps_made >= self.horizon.max_steps

    @property
    def rows_left(self) -> int | None:
        """Rows that may still be visited; None: any number."""
        return self.horizon.left(self.steps_made, self.steps_made * self.batch_size, self.batch_size)

    @property
    def goals(self) -> tuple[str, ...]:
        return (MAX_STEPS,)

    @property
    def stuck(self) -> str | None:
        return MAX_STEPS if self.finished else None
