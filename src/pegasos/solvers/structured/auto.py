"""``solver="auto"`` with an oracle: Pegasos first, then block-coordinate Frank–Wolfe from its dual point.

A few epochs of Pegasos predict nearly as well as the optimum, and cost one decoding a row each. Its gap then falls
slowly, and where ``tol`` asks for more, planes that are kept make better use of decodings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pegasos.fit.engine import Engine, Options
from pegasos.problems.structured import OracleProblem
from pegasos.rows.views import Array
from pegasos.solvers.linear.subgradient import Pegasos
from pegasos.solvers.structured.base import OracleSolver
from pegasos.solvers.structured.block_frank_wolfe import BlockFrankWolfe, OracleBlockFrankWolfe
from pegasos.solvers.structured.pegasos import OraclePegasos
from pegasos.solvers.structured.stages import StagedEngine

#: Epochs of Pegasos, and what its relative gap is at least, over the epochs.
PEGASOS_EPOCHS, PEGASOS_GAP = 2, 0.1


@dataclass(frozen=True)
class OracleAuto(OracleSolver):
    """The default with an oracle."""

    name: ClassVar[str] = "auto"

    def engine(self, problem: OracleProblem, options: Options) -> Engine[Array]:
        first, second = OraclePegasos(Pegasos()), OracleBlockFrankWolfe(BlockFrankWolfe())
        stages = [lambda: first.engine(problem, options), lambda: second.engine(problem, options)]
        return StagedEngine(stages, first_epochs=PEGASOS_EPOCHS, first_gap=PEGASOS_GAP)
