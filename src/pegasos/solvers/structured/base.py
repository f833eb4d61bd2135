"""What the solvers of problems with an oracle share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pegasos.fit.engine import Engine, Options
from pegasos.problems.base import Bounds
from pegasos.problems.structured import OracleProblem
from pegasos.rows.views import Array

#: Why a fit ends whose oracle is not exact: the goal there is.
APPROXIMATE = "the oracle is approximate: the gap to the labellings that it finds is within tol"


class OracleEngine(Engine[Array]):
    """An engine on a problem with an oracle.

    Where that is not exact there is no objective to compare the bound with. Then the labellings that it finds stand in
    for the best ones: a goal of its own, which certifies nothing.
    """

    tol: float

    @property
    def goals(self) -> tuple[str, ...]:
        return (APPROXIMATE,)

    def judged(self, bounds: Bounds[Array]) -> None:
        if bounds.estimate is not None and bool((bounds.estimate - bounds.dual <= self.tol * bounds.estimate).all()):
            self.stalled = APPROXIMATE


@dataclass(frozen=True)
class OracleSolver:
    """A solver of problems with an oracle."""

    name: ClassVar[str]

    def check(self, problem: OracleProblem, intercept: str) -> None:
        """Raise ValueError if this solver cannot solve ``problem``."""

    def engine(self, problem: OracleProblem, options: Options) -> Engine[Array]:
        """A fresh engine for ``problem``."""
        raise NotImplementedError
