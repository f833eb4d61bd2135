"""L-BFGS with an oracle that can sum over labellings: the log loss."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from pegasos.fit.engine import Engine, Options
from pegasos.problems.base import Point
from pegasos.problems.structured_log import LogProblem
from pegasos.rows.views import Array
from pegasos.solvers.lbfgs import LbfgsEngine
from pegasos.solvers.linear.lbfgs import LBFGS


class OracleLbfgsEngine(LbfgsEngine[Array]):
    """The probabilities at the weights are the dual point, so that the weights are all there is to hand over."""

    def __init__(self, problem: LogProblem, memory: int) -> None:
        super().__init__(np.zeros(problem.size), lam=problem.lam, memory=memory)
        self.problem = problem

    def start(self, point: Point[Array]) -> None:
        """Begin at the point's weights."""
        self.W = point.model

    @property
    def largest(self) -> float:
        """Nothing is known of an oracle's features: the first steps are halved where they are too long."""
        return 1.0

    def at_zero(self) -> float:
        return float(self.problem.at_zero()[0])

    def objective(self, W: Array) -> tuple[float, Array]:
        return self.problem.value_and_gradient(W)

    def point(self, *, last: bool = False) -> Point[Array]:
        return Point(self.W)


@dataclass(frozen=True)
class OracleLBFGS:
    """:class:`LBFGS` with an oracle."""

    options: LBFGS = field(default_factory=LBFGS)
    name: ClassVar[str] = "lbfgs"

    def check(self, problem: LogProblem, intercept: str) -> None:
        """It can solve every such problem."""

    def engine(self, problem: LogProblem, options: Options) -> Engine[Array]:
        """A fresh engine for ``problem``."""
        return OracleLbfgsEngine(problem, int(self.options.memory))
