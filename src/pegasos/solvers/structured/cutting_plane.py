"""One-slack cutting planes with an oracle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pegasos.fit.engine import Engine, Options
from pegasos.problems.structured import Cut, OracleProblem
from pegasos.rows.views import Array
from pegasos.solvers.linear.cutting_plane import CuttingPlane
from pegasos.solvers.structured.base import OracleEngine, OracleSolver
from pegasos.solvers.structured.one_slack import OneSlackEngine


class OracleOneSlackEngine(OracleEngine, OneSlackEngine[Array, Cut]):
    """The engine, and its goal where the oracle is not exact."""

    def __init__(self, problem: OracleProblem, *, tol: float, max_planes: int) -> None:
        OneSlackEngine.__init__(self, problem, max_planes=max_planes)
        self.tol = tol


@dataclass(frozen=True)
class OracleCuttingPlane(OracleSolver):
    """One-slack cutting planes on a problem with an oracle."""

    options: CuttingPlane
    name: ClassVar[str] = "cutting_plane"

    def engine(self, problem: OracleProblem, options: Options) -> Engine[Array]:
        return OracleOneSlackEngine(problem, tol=options.tol, max_planes=int(self.options.max_planes))
