"""What the linear estimators share: parameters, the way from arrays to a problem and back, prediction."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache, wraps
from numbers import Integral, Real
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import ThreadpoolController

from pegasos import solvers
from pegasos._certificate import Certificate
from pegasos._checkpoint import CheckpointFile, check_path
from pegasos._data import Array, Examples, check_weights, examples
from pegasos._dataset import Dataset
from pegasos._fingerprint import fingerprint
from pegasos._fit import Callback, Limits, Result, Watch, run
from pegasos._problem import Problem
from pegasos._stream import Stream
from pegasos._threads import thread_count
from pegasos._trace import Checkpoint, Trace
from pegasos.losses import Loss
from pegasos.solvers import SDCA, Auto, Solver

INTERCEPTS = ("unregularized", "feature", "subgradient", "batch", "search")


@cache
def blas_controller() -> ThreadpoolController:
    """The BLAS libraries of this process; finding them takes longer than a small fit, so it is done once."""
    return ThreadpoolController()


Model = TypeVar("Model", bound="LinearModel")
P = ParamSpec("P")
R = TypeVar("R")


def all_or_nothing(method: Callable[Concatenate[Model, P], R]) -> Callable[Concatenate[Model, P], R]:
    """Leave the estimator as it was when ``method`` raises, be it bad input, a callback or Ctrl-C."""

    @wraps(method)
    def call(self: Model, /, *args: P.args, **kwargs: P.kwargs) -> R:
        before = dict(vars(self))
        try:
            return method(self, *args, **kwargs)
        except BaseException:
            self.__dict__ = before
            raise

    return call


class LinearModel(BaseEstimator):  # type: ignore[misc]
    """Base of the linear estimators; not public."""

    C: float
    lam: float | None
    solver: str | Solver
    tol: float
    max_iter: int
    max_time: float | None
    fit_intercept: bool
    intercept: str
    intercept_scaling: float
    random_state: Any
    n_jobs: int | None
    warm_start: bool
    verbose: int | bool
    callback: Callback | None
    on_interrupt: Literal["raise", "keep"]
    checkpoint: str | os.PathLike[str] | None
    checkpoint_every: float

    coef_: Array
    intercept_: Array
    certificate_: Certificate
    trace_: Trace

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # --- checking ----------------------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        """Refuse what no data could make right; nothing has been changed yet."""

        def number(name: str, *, low: float, strict: bool, whole: bool = False, none: bool = False) -> None:
            value = getattr(self, name)
            if none and value is None:
                return
            kind = Integral if whole else Real
            good = isinstance(value, kind) and not isinstance(value, bool) and np.isfinite(float(value))
            if not good or value < low or (strict and value == low):
                what = f"{'a whole number' if whole else 'a number'} {'>' if strict else '>='} {low:g}"
                raise ValueError(f"{name}={value!r} must be {what}{' or None' * none}")

        number("C", low=0, strict=True)
        number("lam", low=0, strict=True, none=True)
        number("tol", low=0, strict=False)
        number("max_iter", low=1, strict=False, whole=True)
        number("max_time", low=0, strict=True, none=True)
        number("intercept_scaling", low=0, strict=True)
        number("checkpoint_every", low=0, strict=False)
        if self.intercept not in INTERCEPTS:
            raise ValueError(f"intercept={self.intercept!r} is none of {', '.join(INTERCEPTS)}")
        if self.on_interrupt not in ("raise", "keep"):
            raise ValueError(f"on_interrupt={self.on_interrupt!r} is neither 'raise' nor 'keep'")
        if self.callback is not None and not callable(self.callback):
            raise ValueError(f"callback={self.callback!r} cannot be called")
        thread_count(self.n_jobs)
        solvers.resolve(self.solver)
        if self.checkpoint is not None:
            check_path(self.checkpoint)

    def _seed(self) -> int:
        """An integer seed; None means 0, so that fits repeat unless asked otherwise."""
        state = self.random_state
        if state is None:
            return 0
        if isinstance(state, Integral):
            if not 0 <= int(state) < 2**64:
                raise ValueError(f"random_state={state!r} must lie between 0 and 2**64 - 1")
            return int(state)
        if isinstance(state, np.random.RandomState):
            return int(state.randint(2**31 - 1))
        if isinstance(state, np.random.Generator):
            return int(state.integers(2**63))
        raise ValueError(f"random_state={state!r} is no seed, RandomState or Generator")

    def _rows(self, X: Any, *, reset: bool) -> tuple[Any, Examples]:
        """Validated X and the borrowed rows."""
        if isinstance(X, Dataset):
            self._check_columns(X, reset=reset)
            return X.X, examples(X.X, threads=thread_count(self.n_jobs), on_disk=True)
        X = validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",
            ensure_all_finite=False,
        )
        return X, examples(X, threads=thread_count(self.n_jobs))

    def _check_columns(self, data: Dataset, *, reset: bool) -> None:
        """What scikit-learn does for arrays and frames: remember columns and their names, or compare them."""
        if reset:
            validate_data(self, data.X, reset=True, skip_check_array=True)
            if data.feature_names is not None:
                self.feature_names_in_ = np.asarray(data.feature_names, dtype=object)
            return
        if data.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {data.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input"
            )
        known = getattr(self, "feature_names_in_", None)
        if known is not None and data.feature_names is not None:
            for j, (name, expected) in enumerate(zip(data.feature_names, known, strict=True)):
                if name != expected:
                    raise ValueError(f"column {j} of the dataset is {name!r}, but was {expected!r} when fitted")

    # --- fitting -----------------------------------------------------------------------------------------------------

    def _problem(self, data: Examples, loss: Loss, target: Array, outputs: int, weight: Array | None) -> Problem:
        total = float(data.m if weight is None else weight.sum())
        lam = float(self.lam) if self.lam is not None else 1.0 / (float(self.C) * total)
        if not np.isfinite(lam) or lam <= 0:
            raise ValueError(f"C={self.C!r} gives lam = 1/(C · {total:g}), which is out of range")
        bias: Literal["none", "feature", "free"] = "none"
        if self.fit_intercept:
            bias = "feature" if self.intercept == "feature" else "free"
        return Problem(
            examples=data,
            loss=loss,
            target=target,
            outputs=outputs,
            lam=lam,
            weight=weight,
            bias=bias,
            feature=float(self.intercept_scaling),
            threads=thread_count(self.n_jobs),
        )

    def _solve(self, problem: Problem) -> Result:
        solver = self._chosen_solver()
        intercept = self.intercept if self.fit_intercept else "none"
        solver.check(problem, intercept)
        limits = Limits(float(self.tol), int(self.max_iter), self.max_time)
        watch = Watch(self._user_callback(), bool(self.verbose), on_interrupt=self.on_interrupt)
        # Short products are slower on many BLAS threads than on one, and their bits would depend on the number.
        seed = self._seed()
        file = self._checkpoint_file(problem, solver, intercept, seed)
        with blas_controller().limit(limits=1, user_api="blas"):
            engine = solver.engine(problem, intercept, seed)
            self._warm(engine, problem, solver)
            result = run(problem, engine, limits, watch, file)
        check_weights(result.W, result.b)
        asked_for = ("interrupted", "stopped by the callback")
        if not result.certificate.converged and result.certificate.reason not in asked_for:
            warnings.warn(self._advice(problem, result.certificate), ConvergenceWarning, stacklevel=4)
        self._remember(result, solver, problem)
        self.certificate_, self.trace_ = result.certificate, result.trace
        self.n_iter_ = int(np.ceil(result.certificate.epochs))
        self._stream = Stream(problem.lam, problem.examples.m)
        return result

    def _checkpoint_file(self, problem: Problem, solver: Solver, intercept: str, seed: int) -> CheckpointFile | None:
        if self.checkpoint is None:
            return None
        same = fingerprint(problem, solver, intercept=intercept, seed=seed, tol=float(self.tol))
        return CheckpointFile(check_path(self.checkpoint), float(self.checkpoint_every), same)

    def _chosen_solver(self) -> Solver:
        """The solver; asking for threads, be it one, chooses the form of SDCA that can use them."""
        solver = solvers.resolve(self.solver)
        if self.n_jobs is not None and isinstance(solver, SDCA | Auto) and solver.blocks is None:
            return replace(solver, blocks=16)
        return solver

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
        stopped = (
            f"{type(self).__name__} stopped before the gap reached tol={self.tol:g} times the objective ({c.reason}): "
            f"objective {c.primal:.6g}, lower bound {c.dual:.6g}, relative gap {c.relative_gap:.2e} "
            f"after {c.epochs:.0f} epochs and {c.seconds:.1f} s."
        )
        lines = [stopped]
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
        lines.append("Raise max_iter or max_time, or accept the gap with a larger tol.")
        if self.checkpoint is not None:
            lines.append(f"With a higher limit the fit goes on from {os.fspath(self.checkpoint)!r}.")
        return " ".join(lines)

    # --- predicting --------------------------------------------------------------------------------------------------

    def _scores(self, X: Any) -> Array:
        """⟨w, x⟩ + b for every row and output."""
        check_is_fitted(self)
        coef = np.atleast_2d(self.coef_)
        if isinstance(X, Dataset):
            self._check_columns(X, reset=False)
            return self._scores_on_disk(X, np.ascontiguousarray(coef, dtype=np.float64))
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])
        scores = X @ coef.T
        if hasattr(scores, "toarray"):
            scores = scores.toarray()
        return np.asarray(scores, dtype=np.float64) + self.intercept_

    def _scores_on_disk(self, data: Dataset, coef: Array) -> Array:
        """The same for rows on disk: block after block is checked and scored, so each page is read once."""
        threads = thread_count(self.n_jobs)
        bias = np.ascontiguousarray(np.broadcast_to(self.intercept_, len(coef)), dtype=np.float64)
        scores = np.empty((len(data), len(coef)))
        for first, X in data.blocks():
            rows = examples(X, threads=threads, first=first).rows
            scores[first : first + X.shape[0]] = rows.scores(coef, bias, threads)
        return scores
