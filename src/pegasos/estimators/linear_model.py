"""What the linear estimators share: parameters, the way from arrays to a problem and back, prediction."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from pegasos import solvers
from pegasos.estimators.base import Estimator
from pegasos.estimators.partial_fit import Stream
from pegasos.fit.certificate import Certificate
from pegasos.fit.engine import MAX_ITER
from pegasos.fit.fingerprint import fingerprint
from pegasos.fit.loop import MAX_TIME, Callback, Limits, Result, Watch, run
from pegasos.fit.resume import CheckpointFile, check_path
from pegasos.fit.trace import Checkpoint
from pegasos.losses import LOSSES, Loss
from pegasos.problems.linear import Problem
from pegasos.rows.dataset import Dataset
from pegasos.rows.views import Array, Examples, check_weights, scores
from pegasos.solvers import Solver
from pegasos.util.memory import check_weights_fit
from pegasos.util.threads import thread_count


class LinearModel(Estimator):
    """Base of the linear estimators; not public."""

    _objects = MappingProxyType({"solver": solvers.SOLVERS, "loss": LOSSES})

    solver: str | Solver
    max_iter: int
    warm_start: bool
    dual: bool | Literal["auto"]

    coef_: Array
    intercept_: Array

    # --- checking ----------------------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_flags("warm_start")
        if not isinstance(self.dual, bool | np.bool_) and not (isinstance(self.dual, str) and self.dual == "auto"):
            raise ValueError(f"dual={self.dual!r} must be True, False or 'auto' (and changes nothing: solver decides)")
        self._check_number("max_iter", low=1, strict=False, whole=True)
        self._check_intercept()
        solvers.resolve(self.solver)

    # --- fitting -----------------------------------------------------------------------------------------------------

    def _problem(self, data: Examples, loss: Loss, target: Array, outputs: int, weight: Array | None) -> Problem:
        check_weights_fit(data.array, outputs, solvers.resolve(self.solver))
        total = float(data.m if weight is None else weight.sum())
        lam = self._lam(total)
        return Problem(
            examples=data,
            loss=loss,
            target=target,
            outputs=outputs,
            lam=lam,
            weight=weight,
            bias=self._bias(),
            feature=float(self.intercept_scaling),
            threads=thread_count(self.n_jobs),
        )

    def _solve(self, problem: Problem) -> Result:
        solver = solvers.resolve(self.solver)
        intercept = self.intercept if self.fit_intercept else "none"
        solver.check(problem, intercept)
        limits = Limits(float(self.tol), int(self.max_iter), self.max_time)
        watch = Watch(self._user_callback(), bool(self.verbose), on_interrupt=self.on_interrupt)
        seed = self._seed()
        file = self._checkpoint_file(problem, solver, intercept, seed)
        engine = solver.engine(problem, intercept, seed)
        self._warm(engine, problem, solver)
        result = run(problem, engine, limits, watch, file)
        if not np.isfinite(result.certificate.primal):  # it is finite only if all weights are
            check_weights(result.W, result.b)
        asked_for = ("interrupted", "stopped by the callback")
        if not result.certificate.converged and result.certificate.reason not in asked_for:
            warnings.warn(self._advice(problem, result.certificate), ConvergenceWarning, stacklevel=4)
        self._remember(result, solver, problem)
        self.lam_, self.certificate_, self.trace_ = problem.lam, result.certificate, result.trace
        self.n_iter_ = int(np.ceil(result.certificate.epochs))
        self._stream = Stream(problem.lam, problem.examples.m)
        return result

    def _checkpoint_file(self, problem: Problem, solver: Solver, intercept: str, seed: int) -> CheckpointFile | None:
        if self.checkpoint is None:
            return None
        same = fingerprint(problem, solver, intercept=intercept, seed=seed, tol=float(self.tol))
        return CheckpointFile(check_path(self.checkpoint), float(self.checkpoint_every), same)

    def _user_callback(self) -> Callback | None:
        if self.callback is None:
            return None
        user = self.callback

        def call(checkpoint: Checkpoint) -> Any:
            assert checkpoint.coef is not None
            assert checkpoint.intercept is not None
            coef, intercept = self._as_attributes(checkpoint.coef, checkpoint.intercept)
            return user(replace(checkpoint, coef=coef, intercept=np.atleast_1d(intercept)))

        return call

    def _as_attributes(self, W: Array, b: Array) -> tuple[Array, Any]:
        """Weights and biases in the shapes of ``coef_`` and ``intercept_``."""
        raise NotImplementedError

    def _warm(self, engine: Any, problem: Problem, solver: Solver) -> None:
        """Start from the last fit if it was of the same shape."""
        last = getattr(self, "_last_fit", None) if self.warm_start else None
        if last is None or last["shape"] != (problem.examples.m, problem.examples.n, problem.outputs):
            return
        if last["state"] is not None and last["solver"] == solver:
            engine.restore(last["state"])
        elif last["u"] is not None and hasattr(engine, "start"):
            engine.start(last["u"], last["b"])

    def _remember(self, result: Result, solver: Solver, problem: Problem) -> None:
        if not self.warm_start:
            self.__dict__.pop("_last_fit", None)
            return
        # Only the stochastic sub-gradient methods continue their steps; the others start from the dual point.
        resumes = isinstance(solver, solvers.Pegasos | solvers.Norma | solvers.SGD)
        self._last_fit = {
            "shape": (problem.examples.m, problem.examples.n, problem.outputs),
            "solver": solver,
            "state": result.engine.state() if resumes else None,
            "u": result.u,
            "b": result.b,
        }

    def _advice(self, problem: Problem, c: Certificate) -> str:
        """What a fit that stopped too early should be told."""
        lines = [self._stopped(c)]
        if rounding := self._rounding(c):
            return f"{lines[0]} {rounding}"
        scales = problem.examples.rows.column_scales()
        used = np.flatnonzero(scales > 0)
        if len(used) and scales[used].max() > 100 * scales[used].min():
            names = getattr(self, "feature_names_in_", None)
            name = [f"{names[j]!r}" if names is not None else f"column {j}" for j in range(len(scales))]
            order = used[np.argsort(scales[used])]
            few = [f"{name[j]} (up to {scales[j]:.3g})" for j in (*order[-2:][::-1], *order[:2])]
            lines.append(
                f"The features have very different scales: {few[0]} … {few[-1]}. Scale them first, with "
                "sklearn.preprocessing.StandardScaler or MaxAbsScaler."
            )
        if problem.hardness < 1e-2:
            lines.append(
                "The regularisation is weak for rows of this size; a smaller C (larger lam) is easier to solve."
            )
        limited = c.reason in (MAX_ITER, MAX_TIME)
        remedy = "Raise max_iter or max_time" if limited else "Try another solver"
        lines.append(f"{remedy}, or accept the gap with a larger tol.")
        if self.checkpoint is not None and limited:
            lines.append(f"With a higher limit the fit goes on from {os.fspath(self.checkpoint)!r}.")
        return " ".join(lines)

    # --- predicting --------------------------------------------------------------------------------------------------

    def _scores(self, X: Any) -> Array:
        """⟨w, x⟩ + b for every row and output."""
        check_is_fitted(self)
        coef = self.coef_.toarray() if hasattr(self.coef_, "toarray") else self.coef_  # scikit-learn's sparsify()
        W = np.ascontiguousarray(np.atleast_2d(coef), dtype=np.float64)
        b = np.ascontiguousarray(np.broadcast_to(self.intercept_, len(W)), dtype=np.float64)
        threads = thread_count(self.n_jobs)
        if not isinstance(X, Dataset):
            return scores(self._floats(X, reset=False, order=None), W, b, threads=threads)
        self._check_columns(X, reset=False)
        Z = np.empty((len(X), len(W)))
        for first, rows in X.blocks():
            Z[first : first + rows.shape[0]] = scores(rows, W, b, threads=threads, first=first)
        return Z
