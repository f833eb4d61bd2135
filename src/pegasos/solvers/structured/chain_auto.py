"""``solver="auto"`` on linear chains: Pegasos first, then what reaches small gaps from its point.

Eight epochs of Pegasos predict nearly as well as the optimum. Where ``tol`` asks for more, block Frank–Wolfe goes on
from the labellings that they have decoded or, for the log loss, L-BFGS from the mean of their iterates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pegasos.fit.engine import Engine, Options
from pegasos.problems.chain import ChainModel, ChainProblem
from pegasos.solvers.linear.subgradient import Pegasos
from pegasos.solvers.structured.block_frank_wolfe import BlockFrankWolfe
from pegasos.solvers.structured.chain_base import ChainSolver
from pegasos.solvers.structured.chain_lbfgs import LBFGS, ChainLBFGS
from pegasos.solvers.structured.chain_planes import ChainBlockFrankWolfe
from pegasos.solvers.structured.chain_steps import ChainPegasos
from pegasos.solvers.structured.stages import StagedEngine

#: Epochs of Pegasos.
PEGASOS_EPOCHS = 8


@dataclass(frozen=True)
class ChainAuto(ChainSolver):
    """The default for sequences."""

    name: ClassVar[str] = "auto"
    losses: ClassVar[tuple[str, ...]] = ("hinge", "log")

    def engine(self, problem: ChainProblem, options: Options) -> Engine[ChainModel]:
        first = ChainPegasos(Pegasos(output="suffix"))
        second = ChainLBFGS(LBFGS()) if problem.loss == "log" else ChainBlockFrankWolfe(BlockFrankWolfe())
        stages = [lambda: first.engine(problem, options), lambda: second.engine(problem, options)]
        return StagedEngine(stages, PEGASOS_EPOCHS)
