"""What the kernel estimators share: parameters, the way from arrays to a problem and back, scores in blocks."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from pegasos import _kernels, solvers
from pegasos._certificate import Bounds
from pegasos._checkpoint import CheckpointFile, check_path
from pegasos._data import Array, examples
from pegasos._dataset import Dataset
from pegasos._estimator import Estimator
from pegasos._fingerprint import kernel_fingerprint
from pegasos._fit import Limits, Result, Watch, run
from pegasos._kernel_layout import centre, compact
from pegasos._kernel_problem import KernelProblem, Part
from pegasos._kernel_rows import PartRows
from pegasos._kernel_stream import KernelStream
from pegasos._kernels import Kernel, KernelFunction, checked_values
from pegasos._threads import thread_count
from pegasos.solvers import KernelSolver, Pegasos, Solver

#: Rows that are scored at a time, and kernel values that a user's function is asked for at a time.
SCORED, ASKED = 1 << 14, 1 << 22

#: Errors of scores that float32 rows may have.
ROUGH = 1e-4

#: Rows beyond which ``solver="auto"`` approximates.
MANY = 200_000


class KernelModel(Estimator):
    """Base of the kernel estimators; not public."""

    kernel: str | KernelFunction
    degree: int
    gamma: float | str
    coef0: float
    shrinking: bool
    cache_size: float
    max_iter: int
    solver: str | Solver | KernelSolver

    #: Whether rows can come in pieces.
    _streams = True

    support_: Array
    support_vectors_: Any
    dual_coef_: Any
    intercept_: Array

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.positive_only = self.kernel == "chi2"
        return tags

    # --- checking ----------------------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_number("cache_size", low=0, strict=True)
        limited = isinstance(self.max_iter, int | np.integer) and not isinstance(self.max_iter, bool)
        if not limited or (self.max_iter != -1 and self.max_iter < 1):
            raise ValueError(f"max_iter={self.max_iter!r} must be a whole number >= 1, or -1 for no limit")
        self._check_intercept()
        _kernels.check_parameters(self.kernel, self.degree, self.gamma, self.coef0)
        solvers.resolve_kernel(self.solver)

    def _matrix(self, X: Any, *, reset: bool) -> Any:
        """Validated X: rows, or the values of a precomputed kernel."""
        if self.kernel != "precomputed":
            return self._rows(X, reset=reset)[1].array
        if isinstance(X, Dataset):
            X = X.X
        if sparse.issparse(X):
            raise TypeError("Sparse precomputed kernels are not supported; pass a dense array")
        K = validate_data(self, X, reset=reset, dtype=[np.float64, np.float32], order="C")
        if reset and K.shape[0] != K.shape[1]:
            raise ValueError(
                f"Precomputed matrix must be a square matrix. Input is a {K.shape[0]}x{K.shape[1]} matrix."
            )
        return K

    # --- fitting -----------------------------------------------------------------------------------------------------

    def _resolved(self, X: Any, weight: Array | None) -> Kernel:
        gamma = _kernels.scale(self.gamma, X, weight)
        kernel = _kernels.resolve(self.kernel, degree=self.degree, gamma=gamma, coef0=self.coef0)
        kernel.check_rows(X)
        return kernel

    def _problem(self, X: Any, kernel: Kernel, pieces: list[Part], lam: float, total: float) -> KernelProblem:
        if kernel.name == "precomputed":
            _check_symmetry(X)
        rows = PartRows(X, kernel, [part.index for part in pieces], float(self.cache_size), thread_count(self.n_jobs))
        return KernelProblem(X, kernel, tuple(pieces), lam, total, rows, self._bias(), float(self.intercept_scaling))

    def _solve(self, problem: KernelProblem) -> tuple[Result, list[int]]:
        """The solution, and the steps taken on each part."""
        solver, seed = self._chosen_solver(problem), self._seed()
        steps = None if self.max_iter == -1 else int(self.max_iter)
        engine: Any = solver.engine(problem, tol=float(self.tol), max_steps=steps, seed=seed)
        limits = Limits(float(self.tol), 2**62, self.max_time)
        watch = Watch(self.callback, bool(self.verbose), on_interrupt=self.on_interrupt)

        def judge(problem: Any, gamma: Array, b: Array, u: Array | None) -> Bounds:
            bounds: Bounds = engine.certify(gamma)
            return bounds

        result = run(problem, engine, limits, watch, self._checkpoint_file(problem, solver, seed), judge)
        if not np.isfinite(result.b).all():
            raise ValueError("the intercept left the range of floating-point numbers; scale the features and targets")
        c = result.certificate
        # What a user, or a solver for a goal of its own, has ended needs no warning.
        if not c.converged and c.reason not in ("interrupted", "stopped by the callback", getattr(engine, "goal", "")):
            warnings.warn(self._advice(c), ConvergenceWarning, stacklevel=4)
        if remark := getattr(engine, "remark", ""):
            c = replace(c, reason=f"{c.reason} {remark}")
        self.certificate_, self.trace_ = c, result.trace
        self.__dict__.pop("sbp_", None)
        if isinstance(solver, solvers.SBP):
            self.sbp_ = engine.results()
        self.fit_status_ = int(not c.converged)
        self.shape_fit_ = problem.X.shape
        self.n_kernel_evaluations_ = int(engine.evaluations)
        self._gamma = problem.kernel.gamma
        self._stream = KernelStream(problem.kernel, problem.lam, problem.X.shape[0])
        return result, engine.steps

    def _chosen_solver(self, problem: KernelProblem) -> KernelSolver:
        """The solver; of very many rows "auto" means an approximation, which is said aloud."""
        intercept, m = self.intercept if self.fit_intercept else "none", int(problem.X.shape[0])
        solver = solvers.kernel_solver(self.solver, problem, intercept)
        able = self.kernel != "precomputed" and intercept in solvers.Nystroem.intercepts
        if not isinstance(self.solver, str) or self.solver != "auto" or m <= MANY or not able:
            return solver
        approximate = solvers.Nystroem()
        warnings.warn(
            f"{m} rows are many for a kernel machine: {type(self).__name__}(solver='auto') approximates it with a "
            f"basis of {approximate.n_components} rows (pegasos.solvers.Nystroem). solver='smo' solves it exactly, if "
            "you have the time; solver=Nystroem(n_components=...) chooses the basis and silences this warning.",
            solvers.NystroemWarning,
            stacklevel=5,
        )
        return approximate

    def _checkpoint_file(self, problem: KernelProblem, solver: KernelSolver, seed: int) -> CheckpointFile | None:
        if self.checkpoint is None:
            return None
        same = kernel_fingerprint(problem, solver, seed=seed, tol=float(self.tol))
        return CheckpointFile(check_path(self.checkpoint), float(self.checkpoint_every), same)

    def _fitted(self) -> tuple[Array, Array]:
        """Coefficients of the support vectors in each part, and their classes."""
        raise NotImplementedError

    def _stream_on(
        self, X: Any, pieces: Callable[[float], list[Part]], weight: Array | None
    ) -> tuple[KernelStream, KernelProblem]:
        """The stream that a call of ``partial_fit`` carries on, and the problem of its rows."""
        total = float(X.shape[0] if weight is None else weight.sum())
        last = getattr(self, "_stream", None)
        if last is None:
            kernel, lam = self._resolved(X, weight), self._lam(total)
            stream = KernelStream(kernel, lam)
        else:
            stream, lam = last.fork(), last.lam
            gamma = stream.kernel.gamma if isinstance(self.gamma, str) else float(self.gamma)
            kernel = _kernels.resolve(self.kernel, degree=self.degree, gamma=gamma, coef0=self.coef0)
            if kernel != stream.kernel:
                raise ValueError("the kernel or its parameters differ from those of earlier calls; fit anew")
            kernel.check_rows(X)
            if stream.vectors is None:
                coef, codes = self._fitted()
                stream.begin(_plain(self.support_vectors_), self.support_, codes, coef, self.intercept_)
        # Few rows are ever needed twice: no cache beyond what a block needs.
        rows = PartRows(X, kernel, [None], 1.0, thread_count(self.n_jobs))
        parts = tuple(pieces(1.0 / (lam * total)))
        return stream, KernelProblem(X, kernel, parts, lam, total, rows, self._bias(), float(self.intercept_scaling))

    def _stream_step(self, stream: KernelStream, problem: KernelProblem, codes: Array) -> tuple[Array, Array]:
        """One epoch of Pegasos; sets all but the coefficients and biases that it returns."""
        solver = self.solver if isinstance(self.solver, Pegasos) else Pegasos()
        solvers.kernel_solver(solver, problem, self.intercept if self.fit_intercept else "none")
        if solver.output != "last":
            raise ValueError(f"partial_fit keeps the last iterate only, not output={solver.output!r}")
        coef, b = stream.step(problem, codes, solver, self._seed() + stream.rows)
        self.certificate_, self.trace_ = stream.certificate(), stream.trace
        self.fit_status_, self.shape_fit_ = 1, (stream.rows, problem.X.shape[1])
        self.n_kernel_evaluations_ = stream.evaluations
        self._gamma, self._stream = problem.kernel.gamma, stream
        return coef, b

    def _advice(self, c: Any) -> str:
        """What a fit that stopped too early should be told."""
        if "semi-definite" in c.reason:
            return (
                f"{type(self).__name__} stopped early, since {c.reason}: the problem is not convex, "
                "there is no lower bound, and the solution need not be the best. Choose other kernel parameters."
            )
        lines = [self._stopped(c), "Scale the features, lower C, raise max_iter or max_time, or accept a larger tol."]
        if self.checkpoint is not None and os.path.exists(self.checkpoint):
            lines.append(f"With a higher limit the fit goes on from {os.fspath(self.checkpoint)!r}.")
        return " ".join(lines)

    @staticmethod
    def _like_rows(coef: Array, X: Any) -> Any:
        """Coefficients as scikit-learn has them: sparse where the rows are."""
        return sparse.csr_matrix(coef) if sparse.issparse(X) else coef

    def _dense_coefficients(self) -> Array:
        coef: Any = self.dual_coef_
        return np.asarray(coef.toarray() if sparse.issparse(coef) else coef)

    def _keep_support(self, X: Any, support: Array, numbers: Array | None = None) -> None:
        """Remember the support vectors, of rows with these numbers; a precomputed kernel has only their numbers."""
        self.support_ = (support if numbers is None else numbers[support]).astype(np.int32)
        if self.kernel == "precomputed":
            self.support_vectors_ = np.empty((0, 0))
        else:  # rows on disk are left there
            self.support_vectors_ = X[support] if sparse.issparse(X) else np.asarray(X[support])

    # --- predicting --------------------------------------------------------------------------------------------------

    def _scores(self, X: Any, coef: Array) -> Array:
        """Σ_i coef_oi K(x, sv_i) for every row and output, float64, block after block."""
        check_is_fitted(self)
        on_disk = isinstance(X, Dataset)
        if on_disk:
            self._check_columns(X, reset=False)
            X = X.X
        else:
            X = self._matrix(X, reset=False)
        coef = np.ascontiguousarray(coef, dtype=np.float64)
        size = SCORED if isinstance(self.kernel, str) else max(1, ASKED // max(1, len(self.support_)))
        score = self._scorer(coef)
        out = np.empty((X.shape[0], len(coef)))
        for first in range(0, X.shape[0], size):
            block = X[first : first + size]
            if on_disk:  # checked piece by piece, so that each page is read once
                block = examples(block, threads=thread_count(self.n_jobs), first=first).array
            out[first : first + size] = score(block)
        if not np.isfinite(out).all():
            row = int(np.flatnonzero(~np.isfinite(out).all(axis=1))[0])
            raise ValueError(
                f"the score of row {row} of X is no finite number: its kernel with the support vectors, or the sum of "
                "them, overflows; scale the row as those of fit"
            )
        return out

    def _scorer(self, coef: Array) -> Any:
        """A function from a block of rows to their scores."""
        if self.kernel == "precomputed":
            return lambda K: K[:, self.support_].astype(np.float64) @ coef.T
        if not isinstance(self.kernel, str):
            return self._function_scorer(self.kernel, coef)
        kernel = Kernel(self.kernel, self._gamma, float(self.coef0), int(self.degree))
        threads = thread_count(self.n_jobs)
        support = _plain(self.support_vectors_)
        if (origin := centre(support, kernel)) is not None:
            support = support - origin
        vectors = kernel.core(support, threads) if coef.shape[1] else None

        def score(X: Any) -> Array:
            kernel.check_rows(X)
            if vectors is None:
                return np.zeros((X.shape[0], len(coef)))
            if origin is not None:
                X = (X.toarray() if sparse.issparse(X) else X) - origin
            rows = kernel.core(compact(X, threads), threads)
            single = X.dtype == support.dtype == np.float32 and _single_suffices(kernel, vectors, rows, coef)
            return np.asarray(vectors.scores(None, coef, rows, None, threads, single)).T

        return score

    def _function_scorer(self, function: KernelFunction, coef: Array) -> Any:
        def score(X: Any) -> Array:
            if not coef.shape[1]:
                return np.zeros((X.shape[0], len(coef)))
            shape = (X.shape[0], coef.shape[1])
            values = checked_values(function(X, self.support_vectors_), shape, "the kernel function")
            return np.asarray(values.astype(np.float64) @ coef.T)

        return score


def _check_symmetry(K: Array) -> None:
    """Refuse a kernel matrix that is not symmetric, but for rounding."""
    size = 1024
    most = float(max(abs(K.max(initial=0.0)), abs(K.min(initial=0.0))))
    for first in range(0, len(K), size):
        for other in range(first, len(K), size):
            apart = K[first : first + size, other : other + size] - K[other : other + size, first : first + size].T
            if np.abs(apart).max() > 1e-4 * most:
                at = divmod(int(np.abs(apart).argmax()), apart.shape[1])
                i, j = first + at[0], other + at[1]
                raise ValueError(
                    f"the precomputed kernel matrix is not symmetric: entry ({i}, {j}) is {K[i, j]}, but ({j}, {i}) is "
                    f"{K[j, i]}"
                )


def _single_suffices(kernel: Kernel, vectors: Any, rows: Any, coef: Array) -> bool:
    """Whether kernel values in single precision, added up in double, cost the scores less than ROUGH.

    Their errors, about 1e-7 times the argument of exp or the value itself, are as good as independent.
    """
    largest = max(float(np.asarray(side.norms()).max(initial=0.0)) for side in (vectors, rows))
    if kernel.name not in ("rbf", "laplacian", "chi2"):
        return False
    error = 1e-7 * (1 + 2 * kernel.gamma * largest)
    return bool(error * np.sqrt((coef**2).sum(axis=1).max(initial=0.0)) <= ROUGH)


def _plain(X: Any) -> Any:
    """Support vectors as the core takes them, whatever a user or a file has made of them."""
    X = X.tocsr() if sparse.issparse(X) else np.ascontiguousarray(X)
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
