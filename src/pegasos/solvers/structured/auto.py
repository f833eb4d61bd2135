"""``solver="auto"`` with an oracle: Pegasos first, then block-coordinate Frank–Wolfe from its dual point.

A few epochs of Pegasos predict nearly as well as the optimum, and cost one decoding a row each. Its gap then falls
slowly, and where ``tol`` asks for more, planes that are kept make better use of decodings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pegasos.fit.engine import Engine, Options
from pegasos.problems.base import Bounds, Point
from pegasos.problems.structured import OracleProblem
from pegasos.rows.views import Array
from pegasos.solvers.linear.subgradient import Pegasos
from pegasos.solvers.structured.base import OracleEngine, OracleSolver
from pegasos.solvers.structured.block_frank_wolfe import BlockFrankWolfe, OracleBlockFrankWolfe
from pegasos.solvers.structured.pegasos import OraclePegasos
from pegasos.util.fields import saved

#: Epochs of Pegasos, and the tolerance that they may reach.
PEGASOS_EPOCHS, PEGASOS_TOL = 2, 0.05

#: The methods, in this order; a saved state holds the index.
METHODS = (OraclePegasos(Pegasos()), OracleBlockFrankWolfe(BlockFrankWolfe()))


class OracleAutoEngine(OracleEngine):
    """Delegates to the engine of the current stage."""

    def __init__(self, problem: OracleProblem, options: Options) -> None:
        self.problem, self.options, self.tol = problem, options, options.tol
        self.spent = 0.0
        self._enter(0)

    def _enter(self, stage: int) -> None:
        self.stage, self.engine = stage, METHODS[stage].engine(self.problem, self.options)

    def start(self, point: Point[Array]) -> None:
        """Begin with the planes of the point."""
        if point.duals is not None:
            self._enter(1)
            self.engine.start(point)

    @property
    def epochs(self) -> float:
        return self.spent + self.engine.epochs

    def advance(self) -> None:
        if self.stage == 0 and self.engine.epochs >= PEGASOS_EPOCHS:
            self._change()
        self.engine.advance()

    def _change(self) -> None:
        point, self.spent = self.engine.point(), self.engine.epochs
        self._enter(1)
        self.engine.start(point)

    def due(self, tol: float) -> bool:
        # A certificate costs as much as an epoch, and a few of Pegasos are not enough for less.
        return self.engine.due(tol) and (self.stage > 0 or tol >= PEGASOS_TOL)

    def point(self, *, last: bool = False) -> Point[Array]:
        return self.engine.point(last=last)

    def learn(self, bounds: Bounds[Array]) -> None:
        self.engine.learn(bounds)

    def state(self) -> dict[str, Any]:
        mine = {"auto.stage": np.array([float(self.stage)]), "auto.spent": np.array([self.spent])}
        return mine | {f"engine.{k}": v for k, v in self.engine.state().items()}

    def restore(self, state: dict[str, Any]) -> None:
        self._enter(int(saved(state, "auto.stage", (1,), low=0, high=len(METHODS) - 1, whole=True)[0]))
        self.spent = float(saved(state, "auto.spent", (1,), low=0, high=1e15)[0])
        self.engine.restore({k.removeprefix("engine."): v for k, v in state.items() if k.startswith("engine.")})


@dataclass(frozen=True)
class OracleAuto(OracleSolver):
    """The default with an oracle."""

    name: ClassVar[str] = "auto"

    def engine(self, problem: OracleProblem, options: Options) -> Engine[Array]:
        return OracleAutoEngine(problem, options)
