"""L-BFGS on linear chains with the log loss: conditional random fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pegasos.fit.engine import Engine, Options
from pegasos.problems.base import Point
from pegasos.problems.chain import ChainModel, ChainProblem
from pegasos.rows.views import Array
from pegasos.solvers.lbfgs import LbfgsEngine
from pegasos.solvers.linear.lbfgs import LBFGS
from pegasos.solvers.structured.chain_base import ChainSolver
from pegasos.util.fields import State


class ChainLbfgsEngine(LbfgsEngine[ChainModel]):
    """A pass over the sequences finds losses and marginals, and so the gap (``problems/chain.py``)."""

    def __init__(self, problem: ChainProblem, memory: int) -> None:
        super().__init__(np.zeros(problem.size), lam=problem.lam, memory=memory)
        self.problem = problem

    def start(self, point: Point[ChainModel]) -> None:
        """Begin at the point's weights."""
        if point.model.W is not None:
            self.W = point.model.W

    @property
    def largest(self) -> float:
        return self.problem.largest_value

    def at_zero(self) -> float:
        return float(self.problem.at_zero()[0])

    def objective(self, W: Array) -> tuple[float, Array]:
        loss, G = self.problem.mean_loss_and_gradient(W)
        return self.problem.penalty(W) + loss, G + self.lam * W

    def saved_weights(self, state: State, name: str) -> Array:
        return self.problem.saved_weights(state, name)

    def point(self, *, last: bool = False) -> Point[ChainModel]:
        return Point(ChainModel(self.W))


@dataclass(frozen=True)
class ChainLBFGS(ChainSolver):
    """:class:`LBFGS` on linear chains."""

    options: LBFGS
    name: ClassVar[str] = "lbfgs"
    losses: ClassVar[tuple[str, ...]] = ("log",)

    def engine(self, problem: ChainProblem, options: Options) -> Engine[ChainModel]:
        return ChainLbfgsEngine(problem, int(self.options.memory))
