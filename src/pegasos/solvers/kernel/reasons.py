"""Why solvers of kernel machines stop."""

from __future__ import annotations

from enum import IntEnum

from pegasos.fit.engine import MAX_ITER
from pegasos.problems.kernel import INDEFINITE

#: What is reached where there is no lower bound that a gap could be measured from: LIBSVM's criterion, or DUAL_MET.
CONDITIONS = "no pair of dual variables violates the optimality conditions by more than tol"
SINGLE_CONDITIONS = "no dual variable violates the optimality conditions by more than tol"
DUAL_MET = "the dual value came within tol of the objective"

STALLED = "no further progress in double precision"


class NumberedReason(IntEnum):
    """Members with a number, which saved states hold, and a reason in words; the member 0 is false."""

    reason: str | None

    def __new__(cls, number: int, reason: str | None = None) -> NumberedReason:
        member = int.__new__(cls, number)
        member._value_ = number
        member.reason = reason
        return member


class Ending(NumberedReason):
    """Why SMO, LASVM or a block solver no longer works on a part."""

    OPEN = 0
    MAX_STEPS = 1, MAX_ITER
    STALLED = 2, STALLED
    INDEFINITE = 3, INDEFINITE
    PASSES_DONE = 4, "the passes over the rows are over, and finish=False"
