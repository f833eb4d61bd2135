"""``solver="auto"`` on linear chains: Pegasos first, then what reaches small gaps from its point.

Eight epochs of Pegasos predict nearly as well as the optimum. Where ``tol`` asks for more, block Frank–Wolfe goes on
from the labellings that they have decoded. For the log loss, which is smooth, the mean of Pegasos' iterates comes close
to the optimum by itself; L-BFGS goes on from there, or begins where there are few sequences.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pegasos.fit.engine import Engine, Options
from pegasos.problems.chain import ChainModel, ChainProblem
from pegasos.solvers.linear.lbfgs import LBFGS
from pegasos.solvers.linear.subgradient import Pegasos
from pegasos.solvers.structured.block_frank_wolfe import BlockFrankWolfe
from pegasos.solvers.structured.chain_base import ChainSolver
from pegasos.solvers.structured.chain_lbfgs import ChainLBFGS
from pegasos.solvers.structured.chain_planes import ChainBlockFrankWolfe
from pegasos.solvers.structured.chain_steps import ChainPegasos
from pegasos.solvers.structured.stages import StagedEngine

#: Epochs of Pegasos with the hinge loss, and what its relative gap is about, over the epochs.
HINGE_EPOCHS, HINGE_GAP = 8, 2.0
#: Epochs of Pegasos with the log loss, and the sequences from which on a mean of its iterates is worth them.
LOG_EPOCHS, LOG_SEQUENCES = 32, 100


@dataclass(frozen=True)
class ChainAuto(ChainSolver):
    """The default for sequences."""

    name: ClassVar[str] = "auto"
    losses: ClassVar[tuple[str, ...]] = ("hinge", "log")

    def engine(self, problem: ChainProblem, options: Options) -> Engine[ChainModel]:
        first = ChainPegasos(Pegasos(output="suffix"))
        if problem.loss == "log":
            lbfgs = ChainLBFGS(LBFGS())
            if problem.n < LOG_SEQUENCES:
                return lbfgs.engine(problem, options)
            stages = [lambda: first.engine(problem, options), lambda: lbfgs.engine(problem, options)]
            return StagedEngine(stages, first_epochs=LOG_EPOCHS)
        planes = ChainBlockFrankWolfe(BlockFrankWolfe())
        stages = [lambda: first.engine(problem, options), lambda: planes.engine(problem, options)]
        return StagedEngine(stages, first_epochs=HINGE_EPOCHS, first_gap=HINGE_GAP)
