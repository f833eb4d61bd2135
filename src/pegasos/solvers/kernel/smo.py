"""SMO for kernel machines: its parameter, and which engine suits a problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pegasos.fit.engine import Engine, Options
from pegasos.problems.kernel import Coefficients, KernelProblem
from pegasos.solvers.base import KernelSolver
from pegasos.solvers.kernel.smo_engine import SMOEngine
from pegasos.solvers.kernel.whole_smo import suits, whole_engine


@dataclass(frozen=True)
class SMO(KernelSolver):
    """Sequential minimal optimisation with a batched working set: the default for kernel machines.

    Each round takes the variables that violate the optimality conditions most, half of them kept from the round before,
    solves the dual over them by pairs of second-order choice (Fan, Chen & Lin 2005), and updates all scores with the
    kernel rows of what has changed, computed together. Rows are kept in single precision where that is accurate enough,
    scores and dual variables in double; the bias is exact. With ``fit_intercept=False`` no constraint joins the dual
    variables, and the two of a step go each its own way (Steinwart, Hush & Scovel 2011).

    Parameters
    ----------
    working_set : int or None, default=None
        Variables of a round. None: 1024, doubled up to 4096 while most of them end up between their bounds.

    Examples
    --------
    >>> from pegasos import SMO, SVC
    >>> model = SVC(solver=SMO(working_set=256), gamma=1.0).fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 1, 0])
    >>> model.predict([[0.0], [1.5]])
    array([0, 1])
    """

    working_set: int | None = None
    name: ClassVar[str] = "smo"
    intercepts: ClassVar[tuple[str, ...]] = ("unregularized", "none")

    def __post_init__(self) -> None:
        size = self.working_set
        whole = isinstance(size, int | np.integer) and not isinstance(size, bool)
        if size is not None and not (whole and 4 <= size <= 2**15):
            raise ValueError(f"SMO: working_set={size!r} must be None or a whole number from 4 to 32768")

    def engine(self, problem: KernelProblem, options: Options) -> Engine[Coefficients]:
        if self.working_set is None and suits(problem):
            return whole_engine(problem, options)
        size = None if self.working_set is None else int(self.working_set)
        return SMOEngine(problem, options, working_set=size)
