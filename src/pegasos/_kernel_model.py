"""What the kernel estimators share: parameters, the way from arrays to a problem and back, scores in blocks."""

from __future__ import annotations

import os
import warnings
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
from pegasos._kernel_problem import KernelProblem, Part
from pegasos._kernel_rows import PartRows, lean
from pegasos._kernels import Kernel, KernelFunction, checked_values
from pegasos._threads import thread_count
from pegasos.solvers import KernelSolver

#: Rows that are scored at a time, and kernel values that a user's function is asked for at a time.
SCORED, ASKED = 1 << 14, 1 << 22


class KernelModel(Estimator):
    """Base of the kernel estimators; not public."""

    kernel: str | KernelFunction
    degree: int
    gamma: float | str
    coef0: float
    shrinking: bool
    cache_size: float
    max_iter: int
    solver: str | KernelSolver

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
        rows = PartRows(X, kernel, [part.index for part in pieces], float(self.cache_size), thread_count(self.n_jobs))
        return KernelProblem(X, kernel, tuple(pieces), lam, total, rows)

    def _solve(self, problem: KernelProblem) -> tuple[Result, list[int]]:
        """The solution, and the steps taken on each part."""
        solver = solvers.resolve_kernel(self.solver)
        steps = None if self.max_iter == -1 else int(self.max_iter)
        engine: Any = solver.engine(problem, tol=float(self.tol), max_steps=steps, seed=0)
        limits = Limits(float(self.tol), 2**62, self.max_time)
        watch = Watch(self.callback, bool(self.verbose), on_interrupt=self.on_interrupt)

        def judge(problem: Any, gamma: Array, b: Array, u: Array | None) -> Bounds:
            bounds: Bounds = engine.certify(gamma)
            return bounds

        result = run(problem, engine, limits, watch, self._checkpoint_file(problem, solver), judge)
        if not np.isfinite(result.b).all():
            raise ValueError("the intercept left the range of floating-point numbers; scale the features and targets")
        c = result.certificate
        if not c.converged and c.reason not in ("interrupted", "stopped by the callback"):
            warnings.warn(self._advice(c), ConvergenceWarning, stacklevel=4)
        self.certificate_, self.trace_ = c, result.trace
        self.fit_status_ = int(not c.converged)
        self.shape_fit_ = problem.X.shape
        self.n_kernel_evaluations_ = int(engine.evaluations)
        self._gamma, self._lam_used = problem.kernel.gamma, problem.lam
        return result, engine.steps

    def _checkpoint_file(self, problem: KernelProblem, solver: KernelSolver) -> CheckpointFile | None:
        if self.checkpoint is None:
            return None
        same = kernel_fingerprint(problem, solver, seed=0, tol=float(self.tol))
        return CheckpointFile(check_path(self.checkpoint), float(self.checkpoint_every), same)

    def _advice(self, c: Any) -> str:
        """What a fit that stopped too early should be told."""
        if "semi-definite" in c.reason:
            return (
                f"{type(self).__name__} stopped at a stationary point, but {c.reason}: the problem is not convex, "
                "there is no lower bound, and the solution need not be the best. Choose other kernel parameters."
            )
        lines = [self._stopped(c), "Scale the features, lower C, raise max_iter or max_time, or accept a larger tol."]
        if self.checkpoint is not None:
            lines.append(f"With a higher limit the fit goes on from {os.fspath(self.checkpoint)!r}.")
        return " ".join(lines)

    @staticmethod
    def _like_rows(coef: Array, X: Any) -> Any:
        """Coefficients as scikit-learn has them: sparse where the rows are."""
        return sparse.csr_matrix(coef) if sparse.issparse(X) else coef

    def _dense_coefficients(self) -> Array:
        coef: Any = self.dual_coef_
        return np.asarray(coef.toarray() if sparse.issparse(coef) else coef)

    def _keep_support(self, X: Any, support: Array) -> None:
        """Remember the support vectors; of a precomputed kernel there are only their numbers."""
        self.support_ = support.astype(np.int32)
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
        vectors = kernel.core(_plain(self.support_vectors_), threads) if coef.shape[1] else None

        def score(X: Any) -> Array:
            kernel.check_rows(X)
            if vectors is None:
                return np.zeros((X.shape[0], len(coef)))
            return np.asarray(vectors.scores(None, coef, kernel.core(lean(X), threads), None, threads)).T

        return score

    def _function_scorer(self, function: KernelFunction, coef: Array) -> Any:
        def score(X: Any) -> Array:
            if not coef.shape[1]:
                return np.zeros((X.shape[0], len(coef)))
            shape = (X.shape[0], coef.shape[1])
            values = checked_values(function(X, self.support_vectors_), shape, "the kernel function")
            return np.asarray(values.astype(np.float64) @ coef.T)

        return score


def _plain(X: Any) -> Any:
    """Support vectors as the core takes them, whatever a user or a file has made of them."""
    X = X.tocsr() if sparse.issparse(X) else np.ascontiguousarray(X)
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
