"""Where SMO and LASVM are on one part of a problem: dual variables, scores and counts, and how they are saved."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pegasos.kernels.rounding import Drift
from pegasos.problems.part import Part
from pegasos.rows.views import Array
from pegasos.solvers.kernel.reasons import Ending
from pegasos.util.fields import MAX_FINITE, State, saved

#: Rounds in a row that may gain nothing but rounding errors.
MAX_STALE_ROUNDS = 10


class _Scalars(NamedTuple):
    """The numbers of a part in a saved state, in the order of its columns; those of ``Drift`` follow."""

    size: float
    steps: float
    stale_rounds: float
    ending: float
    goal: float
    violation: float
    best: float
    objective: float


#: The columns of ``_Scalars`` that hold whole numbers, and those that are infinite until they are known.
WHOLE, INFINITE_AT_FIRST = ("size", "steps", "stale_rounds", "ending"), ("violation", "best")


class SMOPart:
    """Where the solution of one part is.

    ``alpha`` are the dual variables, signed: y_i times LIBSVM's α_i. Each lies between ``part.lo`` and ``part.hi``, and
    if the bias is free their sum is zero. ``F`` are the scores of all rows, without a bias.
    """

    def __init__(self, part: Part, size: int, goal: float) -> None:
        self.part = part
        self.alpha, self.F = np.zeros(part.size), np.zeros(part.m)
        self.working = np.zeros(0, dtype=np.int64)
        self.size, self.goal, self.violation, self.best = size, goal, np.inf, np.inf
        self.steps, self.stale_rounds, self.ending = 0, 0, Ending.OPEN
        self.objective = 0.0
        self.drift = Drift()

    @property
    def whole(self) -> bool:
        """Whether a working set holds all variables that can move."""
        return bool(np.count_nonzero(self.part.lo < self.part.hi) <= self.size)

    @property
    def rests(self) -> bool:
        """Whether there is nothing to do for now."""
        return self.ending is not Ending.OPEN or self.violation <= self.goal

    def scalars(self) -> Array:
        """All that is not an array, for a saved state."""
        own = _Scalars(*(getattr(self, name) for name in _Scalars._fields))
        return np.array([*own, *self.drift.numbers])

    def set_scalars(self, numbers: Array) -> None:
        """Take over what ``scalars`` has saved."""
        own = _Scalars(*numbers[: len(_Scalars._fields)].tolist())
        self.size, self.steps, self.stale_rounds = int(own.size), int(own.steps), int(own.stale_rounds)
        self.ending, self.goal, self.violation = Ending(int(own.ending)), own.goal, own.violation
        self.best, self.objective = own.best, own.objective
        self.drift = Drift(numbers[len(_Scalars._fields) :].copy())


def saved_scalars(state: State, parts: int, last_ending: Ending) -> Array:
    """The scalars of all parts in a saved state, a row for each, checked."""
    drift = len(Drift().numbers)
    limits: dict[str, tuple[float, float]] = {
        "size": (4, 2**20),
        "steps": (0, 2**62),
        "stale_rounds": (0, MAX_STALE_ROUNDS),
        "ending": (0, last_ending),
        "goal": (0.0, MAX_FINITE),
        "violation": (-np.inf, MAX_FINITE),
        "best": (-np.inf, MAX_FINITE),
        "objective": (-MAX_FINITE, MAX_FINITE),
    }
    scalars = saved(state, "scalars", (parts, len(_Scalars._fields) + drift))
    for name, column in zip(_Scalars._fields, scalars.T, strict=False):
        low, high = limits[name]
        finite = np.where(np.isposinf(column), MAX_FINITE, column) if name in INFINITE_AT_FIRST else column.copy()
        saved({"scalars": finite}, "scalars", (parts,), low=low, high=high, whole=name in WHOLE)
    saved({"scalars": scalars[:, -drift:].copy()}, "scalars", (parts, drift), low=0.0, high=MAX_FINITE)
    return scalars
