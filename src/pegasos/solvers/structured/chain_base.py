"""What the solvers of linear chains share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pegasos.fit.engine import Engine, Options
from pegasos.problems.chain import ChainModel, ChainProblem

#: Tokens that a call into the core visits: some hundredths of a second.
CHUNK_TOKENS = 20_000


@dataclass(frozen=True)
class ChainSolver:
    """A solver of linear chains."""

    name: ClassVar[str]
    #: The losses that it can minimise.
    losses: ClassVar[tuple[str, ...]] = ("hinge",)
    #: Whether it minimises the objective: of others the certificate tells how far they are from its minimum.
    minimises: ClassVar[bool] = True

    def check(self, problem: ChainProblem, intercept: str) -> None:
        """Raise ValueError if this solver cannot solve ``problem``."""
        if problem.loss not in self.losses:
            able = ", ".join(map(repr, self.losses))
            raise ValueError(f"solver {self.name!r} cannot minimise loss {problem.loss!r} of sequences; it can {able}")

    def engine(self, problem: ChainProblem, options: Options) -> Engine[ChainModel]:
        """A fresh engine for ``problem``."""
        raise NotImplementedError
