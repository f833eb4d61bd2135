"""The contract between the fitting loop and the solvers of kernel machines."""

from __future__ import annotations

from typing import Protocol

from pegasos.fit.engine import AnyEngine
from pegasos.problems.base import Bounds
from pegasos.problems.kernel_point import Point
from pegasos.rows.views import Array

#: What is reached where there is no lower bound that a gap could be measured from: LIBSVM's criterion, or MET.
CONDITIONS = "no pair of dual variables violates the optimality conditions by more than tol"
MET = "the dual value came within tol of the objective"


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
