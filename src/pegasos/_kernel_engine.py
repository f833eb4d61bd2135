"""The contract between the fitting loop and the solvers of kernel machines, and what they offer to be certified."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from pegasos._certificate import Bounds
from pegasos._data import Array
from pegasos._engine import AnyEngine
from pegasos._kernel_rounding import Drift

#: What is reached where there is no lower bound that a gap could be measured from: LIBSVM's criterion, or MET.
CONDITIONS = "no pair of dual variables violates the optimality conditions by more than tol"
MET = "the dual value came within tol of the objective"

#: Kernel values up to which a certificate computes all scores: to find out which of them matter would take longer.
FEW = 1 << 16


class RunningScores(NamedTuple):
    """Scores without bias of all rows of a part, for these coefficients, and what their rounding errors came from."""

    values: Array
    coef: Array
    drift: Drift


class Point(NamedTuple):
    """What a solver proposes: an entry for each row of each part, one part after the other.

    ``duals`` (in the loss's unit domain) near enough to feasible; None: those of ``coef``. ``scores`` of each part, if
    there are any: a hint that spares the certificate work, and can do no harm. ``separate``: the two need kernel values
    of different rows.
    For pairs of classes ``coef`` may be the two-dimensional table of ``_pairs.py``: then it is made feasible in place.
    """

    coef: Array
    duals: Array | None = None
    scores: list[RunningScores] | None = None
    separate: bool = False


class KernelEngine(AnyEngine, Protocol):
    """Runs a solver on a kernel problem."""

    @property
    def goals(self) -> tuple[str, ...]:
        """Reasons to stop that are goals of the method itself, other than the gap."""
        ...

    @property
    def steps(self) -> list[int] | Array:
        """Steps on each part."""
        ...

    @property
    def evaluations(self) -> int:
        """Kernel values computed so far, but for certificates."""
        ...

    def point(self, *, last: bool = False) -> Point:
        """What is to be certified; for the ``last`` time if a limit has been reached."""
        ...

    def judged(self, bounds: Bounds) -> None:
        """Take note of what the problem found of the last point, before ``stuck`` is asked."""
        ...
