"""One-slack cutting planes on linear chains: a plane is a labelling of all tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pegasos.fit.engine import Engine, Options
from pegasos.problems.chain import ChainModel, ChainProblem
from pegasos.solvers.linear.cutting_plane import CuttingPlane
from pegasos.solvers.structured.chain_base import ChainSolver
from pegasos.solvers.structured.one_slack import OneSlackEngine


@dataclass(frozen=True)
class ChainCuttingPlane(ChainSolver):
    """:class:`CuttingPlane` on linear chains."""

    options: CuttingPlane
    name: ClassVar[str] = "cutting_plane"

    def engine(self, problem: ChainProblem, options: Options) -> Engine[ChainModel]:
        return OneSlackEngine(problem, max_planes=int(self.options.max_planes))
