"""What the structured estimators share: one problem, no bias, warm starts from its planes or the state of its steps."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any, ClassVar, Literal, TypedDict

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from pegasos import solvers
from pegasos.estimators.base import Estimator
from pegasos.fit.certificate import Certificate
from pegasos.fit.engine import MAX_ITER, Engine
from pegasos.fit.loop import MAX_TIME, Result
from pegasos.fit.trace import Checkpoint
from pegasos.problems.base import Duals, M, Point, Problem
from pegasos.solvers.base import AnySolver
from pegasos.solvers.structured.stages import StagedEngine


class LastFit(TypedDict):
    """What is kept of a fit for ``warm_start``: what the problem was, but for λ; solver and its state; the point."""

    problem: dict[str, str]
    solver: object
    state: dict[str, Any] | None
    duals: Duals | None
    model: Any


class StructuredModel(Estimator):
    """Base of the structured estimators; not public."""

    #: The kind of its problem.
    _kind: ClassVar[Literal["oracle", "chain"]]

    solver: Any
    max_iter: int
    warm_start: bool
    _last_fit: LastFit | None = None

    @property
    def _intercept_word(self) -> str:
        return "none"

    @property
    def _problem_kind(self) -> Literal["oracle", "log_oracle", "chain"]:
        """The kind of problem, by which solvers are looked up."""
        return self._kind

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_flags("warm_start")
        self._check_number("max_iter", low=1, strict=False, whole=True)
        solvers.resolve(self.solver, self._problem_kind)

    def _solve(
        self,
        problem: Problem[M],
        solver: AnySolver[Any, M],
        tell: Callable[[Checkpoint, M], Checkpoint],
        max_iter: int,
        look: Callable[[M], None] | None = None,
    ) -> Result[M]:
        """Solve the problem, warn of a fit that stopped too early, and keep what the next one may start from.

        ``look`` is shown the model of every checkpoint.
        """
        solver.check(problem, "none")
        result = self._run(problem, solver, tell, max_iter=max_iter, look=look)
        c = result.certificate
        asked_for = c.goal_reached or c.reason in ("interrupted", "stopped by the callback")
        if not (c.converged or asked_for or self._has_no_objective(solver)):
            warnings.warn(self._advice(c), ConvergenceWarning, stacklevel=4)
        self._remember(result, solver, problem)
        self.n_iter_ = int(np.ceil(c.epochs))
        return result

    def _has_no_objective(self, solver: AnySolver[Any, M]) -> bool:
        """Whether a method minimises something else, so that no limit brings its gap to ``tol``."""
        return False

    def _advice(self, c: Certificate) -> str:
        """The advice in the warning of a fit that stopped too early."""
        lines = [self._stopped(c)]
        limited = c.reason in (MAX_ITER, MAX_TIME)
        if rounding := self._rounding(c) if np.isfinite(c.primal) else "":
            lines.append(rounding)
        else:
            remedy = "Raise max_iter or max_time" if limited else "Try another solver"
            lines.append(f"{remedy}, or accept the gap with a larger tol.")
        if self.checkpoint is not None and limited:
            lines.append(f"With a higher limit the fit goes on from {os.fspath(self.checkpoint)!r}.")
        return " ".join(lines)

    def _warm(self, engine: Engine[M], problem: Problem[M], solver: AnySolver[Any, M]) -> None:
        """Start from the last fit if it was of the same rows: planes of others would prove nothing of these."""
        last = self._last_fit if self.warm_start else None
        if last is None or last["problem"] != self._identity(problem):
            return
        if last["state"] is not None and last["solver"] == solver:
            engine.restore(last["state"])
        else:
            engine.start(Point(last["model"], last["duals"]))

    def _remember(self, result: Result[M], solver: AnySolver[Any, M], problem: Problem[M]) -> None:
        if not self.warm_start:
            self._last_fit = None
            return
        # Stochastic steps go on; the others, and the second of two methods, start from the point.
        continues = result.engine.returns_last and not isinstance(result.engine, StagedEngine)
        self._last_fit = {
            "problem": self._identity(problem),
            "solver": solver,
            "state": result.engine.state() if continues else None,
            "duals": result.duals,
            "model": result.model,
        }

    @staticmethod
    def _identity(problem: Problem[Any]) -> dict[str, str]:
        return {name: value for name, value in problem.digests().items() if name != "lam"}
