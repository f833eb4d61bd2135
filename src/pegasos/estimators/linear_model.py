"""What the linear estimators share: parameters, the way from arrays to a problem and back, prediction."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypedDict

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from pegasos import solvers
from pegasos.estimators.base import Estimator
from pegasos.estimators.drawn import Drawn, drawn_rows, sampled, vouched_for
from pegasos.estimators.first_iterate import FirstIterate
from pegasos.estimators.partial_fit import Stream
from pegasos.fit.certificate import Certificate
from pegasos.fit.engine import MAX_ITER, Engine
from pegasos.fit.loop import MAX_TIME, Result
from pegasos.fit.trace import Checkpoint
from pegasos.losses import LOSSES, Loss
from pegasos.problems.base import Point
from pegasos.problems.linear import LinearProblem, Weights
from pegasos.rows.dataset import Dataset
from pegasos.rows.taken import taken
from pegasos.rows.targets import unpack
from pegasos.rows.views import Array, Examples, check_weights, examples, row_weights, scores
from pegasos.solvers import Solver
from pegasos.solvers.linear.horizon import all_rows
from pegasos.solvers.linear.subgradient import SubgradientSolver
from pegasos.util.arrays import Matrix
from pegasos.util.fields import State
from pegasos.util.memory import check_weights_fit
from pegasos.util.threads import thread_count


class LastFit(TypedDict):
    """What is kept of a fit for ``warm_start``: shape of the problem, solver and its state, dual variables, biases."""

    shape: tuple[int, int, int]
    solver: Solver
    state: State | None
    u: Array | None
    b: Array


class Input(NamedTuple):
    """What a fit is given: rows, checked, with their targets and weights, which are not; all rows, or those drawn."""

    X: Matrix
    data: Examples
    y: Any
    sample_weight: Any
    drawn: Drawn | None = None

    @property
    def first(self) -> int | Array:
        """What users call the rows: the number of the first, or of each."""
        return 0 if self.drawn is None else self.drawn.rows


class LinearModel(Estimator):
    """Base of the linear estimators; not public."""

    _objects = MappingProxyType({"solver": solvers.SOLVERS, "loss": LOSSES})

    solver: str | Solver
    max_iter: float
    warm_start: bool
    dual: bool | Literal["auto"]

    coef_: Array
    intercept_: Array
    _stream: Stream | None = None
    #: What ``warm_start`` starts from.
    _last_fit: LastFit | None = None

    # --- checking ----------------------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_flags("warm_start")
        if not isinstance(self.dual, bool | np.bool_) and not (isinstance(self.dual, str) and self.dual == "auto"):
            raise ValueError(f"dual={self.dual!r} must be True, False or 'auto' (and changes nothing: solver decides)")
        self._check_max_iter(solvers.resolve(self.solver))
        self._check_intercept()

    def _check_max_iter(self, solver: Solver) -> None:
        """Refuse parts of an epoch where a solver has none."""
        value = self.max_iter
        fraction = isinstance(value, Real) and not isinstance(value, Integral) and 0 < float(value) < np.inf
        if fraction and solver.partial_epochs:
            return
        try:
            self._check_number("max_iter", low=1, strict=False, whole=True)
        except ValueError as error:
            why = f": solver {solver.name!r} has no partial epochs; pegasos, norma and sgd have" if fraction else ""
            raise ValueError(f"{error}{why}") from None

    # --- fitting -----------------------------------------------------------------------------------------------------

    def _input(self, X: Any, y: Any, sample_weight: Any) -> Input:
        """Rows, targets and weights of a fit, the rows checked: all of them, or the few that it asks for."""
        threads, matrix = thread_count(self.n_jobs), self._unchecked(X, reset=True)
        if (found := self._drawn(matrix) if vouched_for(X) else None) is None:
            y, sample_weight = unpack(X, y, sample_weight)
            return Input(matrix, examples(matrix, threads=threads, on_disk=isinstance(X, Dataset)), y, sample_weight)
        rows, visits = found
        y, sample_weight = unpack(X, y, sample_weight, rows)
        m = int(matrix.shape[0])
        weight = row_weights(sample_weight, None, m)
        drawn = Drawn(rows, visits, m, float(m if weight is None else weight.sum()))
        data = examples(taken(matrix, rows), threads=threads, first=rows)
        return Input(data.array, data, y, None if weight is None else weight[rows], drawn)

    def _drawn(self, X: Matrix) -> tuple[Array, int] | None:
        """The few rows that a fit needs, and how many of them are visits; None: it needs all."""
        solver = solvers.resolve(self.solver)
        if not isinstance(solver, SubgradientSolver) or solver.estimate is None:
            return None
        # Class weights ask for all labels, and what may go on from here, with a higher limit say, for all rows.
        if self.warm_start or self.checkpoint is not None or getattr(self, "class_weight", None) is not None:
            return None
        return drawn_rows(X, solver, float(self.max_iter), self._seed())

    def _problem(
        self,
        data: Examples,
        loss: Loss,
        target: Array,
        outputs: int,
        weight: Array | None,
        drawn: Drawn | None = None,
    ) -> LinearProblem:
        """The problem of these rows; ``drawn``: as which they were drawn from all rows, if they were."""
        solver = solvers.resolve(self.solver)
        check_weights_fit(data.array, outputs, solver.numbers_per_weight(outputs))
        total = float(data.m if weight is None else weight.sum()) if drawn is None else drawn.total
        lam = self._lam(total)
        if drawn is not None and weight is None and drawn.total != drawn.all_rows:
            weight = np.ones(data.m)  # which is not the mean weight of all rows
        problem = LinearProblem(
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
        count = solver.estimate if isinstance(solver, SubgradientSolver) else None
        return problem if count is None else sampled(problem, drawn, int(count), self._seed())

    def _solve(self, problem: LinearProblem, coef_init: Any = None, intercept_init: Any = None) -> None:
        """Fit the model to a problem."""
        solver = solvers.resolve(self.solver)
        solver.check(problem, self._intercept_word)
        first = FirstIterate.of(problem, solver, self._intercept_word, coef_init, intercept_init)

        def tell(checkpoint: Checkpoint, model: Weights) -> Checkpoint:
            assert model.W is not None
            # The callback has weights of its own: what it does to them must not reach the best ones.
            coef, intercept = self._as_attributes(model.W.copy(), model.b.copy())
            return replace(checkpoint, coef=coef, intercept=np.atleast_1d(intercept))

        result = self._run(problem, solver, tell, max_iter=float(self.max_iter), first=first)
        c = result.certificate
        if not np.isfinite(c.primal):  # it is finite only if all weights are
            assert result.model.W is not None
            check_weights(result.model.W, result.model.b)
        asked_for = c.goal_reached or c.estimate is not None or c.reason in ("interrupted", "stopped by the callback")
        if not (c.converged or asked_for):
            warnings.warn(self._advice(problem, c), ConvergenceWarning, stacklevel=4)
        self._remember(result, solver, problem)
        self.lam_ = problem.lam
        self.n_iter_ = int(np.ceil(c.epochs))
        self._stream = Stream(problem.lam, all_rows(problem))
        assert result.model.W is not None
        self.coef_, self.intercept_ = self._as_attributes(result.model.W, result.model.b)

    def _fit_piece(self, problem: LinearProblem) -> None:
        """One epoch of a stochastic sub-gradient method on the rows of a problem, going on from earlier calls."""
        stream = Stream(problem.lam) if self._stream is None else self._stream.fork()
        if stream.rows and stream.last is None:
            stream.begin(np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_), problem.outputs)
        W, b = stream.step(replace(problem, lam=stream.lam), self.solver, self._intercept_word, self._seed())
        self._carry_on(stream)
        self.n_iter_ = stream.calls
        self.coef_, self.intercept_ = self._as_attributes(W, b)

    def _as_attributes(self, W: Array, b: Array) -> tuple[Array, Array]:
        """Weights and biases in the shapes of ``coef_`` and ``intercept_``."""
        raise NotImplementedError

    def _warm(self, engine: Engine[Weights], problem: LinearProblem, solver: Solver) -> None:
        """Start from the last fit if it was of the same shape."""
        last = self._last_fit if self.warm_start else None
        if last is None or last["shape"] != (problem.examples.m, problem.examples.n, problem.outputs):
            return
        if last["state"] is not None and last["solver"] == solver:
            engine.restore(last["state"])
        elif last["u"] is not None:
            engine.start(Point(Weights(None, last["b"]), last["u"]))

    def _remember(self, result: Result[Weights], solver: Solver, problem: LinearProblem) -> None:
        if not self.warm_start:
            self._last_fit = None
            return
        # Only the stochastic methods continue their steps; the others start from the dual point.
        resumes = isinstance(solver, SubgradientSolver | solvers.PassiveAggressive)
        self._last_fit = {
            "shape": (problem.examples.m, problem.examples.n, problem.outputs),
            "solver": solver,
            "state": result.engine.state() if resumes else None,
            "u": result.duals,
            "b": result.model.b,
        }

    def _advice(self, problem: LinearProblem, c: Certificate) -> str:
        """The advice in the warning of a fit that stopped too early."""
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
