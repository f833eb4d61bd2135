"""What the kernel estimators share: parameters, the way from arrays to a problem and back, scores in blocks."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from pegasos import solvers
from pegasos.estimators.base import Estimator
from pegasos.estimators.kernel_partial_fit import KernelStream
from pegasos.estimators.partial_fit import stream_solver
from pegasos.fit.loop import Result
from pegasos.fit.trace import Checkpoint
from pegasos.kernels import functions
from pegasos.kernels.cache import padded
from pegasos.kernels.functions import NATIVE, Kernel, KernelFunction, checked_values
from pegasos.kernels.gram import PartRows
from pegasos.kernels.layout import centre, compact
from pegasos.losses import LOSSES
from pegasos.problems.kernel import INDEFINITE, Coefficients, KernelProblem
from pegasos.problems.pair_parts import PairIndices, PairParts
from pegasos.problems.pairs import PairProblem
from pegasos.problems.part import Part
from pegasos.rows.dataset import Dataset
from pegasos.rows.frames import validate_data
from pegasos.rows.views import Array, examples, view
from pegasos.solvers import KernelSolver, Pegasos, Solver
from pegasos.util.threads import thread_count

#: Rows that are scored at a time, at most, and their scores, or kernel values of a user's function.
BLOCK_ROWS, BLOCK_VALUES = 1 << 14, 1 << 22

#: The largest error of scores that kernel values in float32 may cause.
MAX_SCORE_ERROR = 1e-4

#: Rows above which ``solver="auto"`` approximates by Nyström features.
MAX_EXACT_ROWS = 200_000


def takes_rows(model: Any) -> bool:
    if not model._streams:
        raise AttributeError(f"{type(model).__name__} has no partial_fit: it needs all rows at once")
    if model.kernel != "precomputed":
        return True
    raise AttributeError("partial_fit needs rows that it can keep, not kernel='precomputed'")


class KernelModel(Estimator):
    """Base of the kernel estimators; not public."""

    _objects = MappingProxyType({"solver": solvers.KERNEL_SOLVERS, "loss": LOSSES})

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
    _of_methods = ("sbp_",)

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
        self._check_flags("shrinking")
        self._check_number("cache_size", low=0, strict=True)
        limited = isinstance(self.max_iter, int | np.integer) and not isinstance(self.max_iter, bool)
        if not limited or (self.max_iter != -1 and self.max_iter < 1):
            raise ValueError(f"max_iter={self.max_iter!r} must be a whole number >= 1, or -1 for no limit")
        self._check_intercept()
        functions.check_parameters(self.kernel, self.degree, self.gamma, self.coef0)
        solvers.resolve(self.solver, "kernel")

    def _matrix(self, X: Any, *, reset: bool) -> Any:
        """Validated X: rows, or the values of a precomputed kernel."""
        if self.kernel != "precomputed":
            return self._rows(X, reset=reset, private=True)[1].array
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
        gamma = functions.scale(self.gamma, X, weight)
        kernel = functions.resolve(self.kernel, degree=self.degree, gamma=gamma, coef0=self.coef0)
        kernel.check_rows(X)
        return kernel

    def _problem(self, X: Any, kernel: Kernel, pieces: Sequence[Part], lam: float, total: float) -> KernelProblem:
        if kernel.name == "precomputed":
            _check_symmetry(X)
        pairs = pieces if isinstance(pieces, PairParts) else None
        indices = [part.index for part in pieces] if pairs is None else PairIndices(pairs)
        rows = PartRows(X, kernel, indices, float(self.cache_size), thread_count(self.n_jobs))
        others = lam, total, rows, self._bias(), float(self.intercept_scaling)
        return KernelProblem(X, kernel, pieces, *others) if pairs is None else PairProblem(X, kernel, pairs, *others)

    def _solve(
        self, problem: KernelProblem, columns: Callable[[Coefficients], tuple[Array, Array]]
    ) -> Result[Coefficients]:
        """The solution. ``columns``: the coefficients of support vectors that a model means, and their rows."""

        def tell(checkpoint: Checkpoint, model: Coefficients) -> Checkpoint:
            assert model.b is not None
            coef, support = columns(model)
            return replace(checkpoint, coef=coef.copy(), intercept=model.b.copy(), support=support)

        # Sparse rows are copies; dense ones, and kernel values, are the user's, who may have changed them by the end.
        borrowed = None if sparse.issparse(problem.X) else view(problem.X)
        if borrowed is not None:
            borrowed.inspect(thread_count(self.n_jobs))
        steps = None if self.max_iter == -1 else int(self.max_iter)
        result = self._run(problem, self._chosen_solver(problem), tell, max_steps=steps)
        if borrowed is not None:
            borrowed.verify(thread_count(self.n_jobs))
        if not np.isfinite(biases(result)).all():
            raise ValueError("the intercept left the range of floating-point numbers; scale the features and targets")
        c = result.certificate
        # What a user, or a solver for a goal of its own, has ended needs no warning; steps along negative curvature do.
        asked_for = c.reason in ("interrupted", "stopped by the callback")
        misled = INDEFINITE in c.reason and result.engine.indefinite
        if misled or not (c.converged or c.goal_reached or asked_for):
            warnings.warn(self._advice(c), ConvergenceWarning, stacklevel=4)
        self.lam_ = problem.lam
        self.fit_status_ = int(not (c.converged or c.goal_reached))
        self.shape_fit_ = problem.X.shape
        self.n_kernel_evaluations_ = int(result.engine.evaluations)
        self._gamma = problem.kernel.gamma
        self._stream = KernelStream(problem.kernel, problem.lam, problem.X.shape[0])
        return result

    def _chosen_solver(self, problem: KernelProblem) -> KernelSolver:
        """The solver; of very many rows "auto" means an approximation, which is said aloud."""
        intercept, m = self._intercept_word, int(problem.X.shape[0])
        solver = solvers.kernel_solver(self.solver, problem, intercept)
        able = self.kernel != "precomputed" and intercept in solvers.Nystroem.intercepts
        if not isinstance(self.solver, str) or self.solver != "auto" or m <= MAX_EXACT_ROWS or not able:
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

    def _fitted(self) -> tuple[Array, Array]:
        """Coefficients of the support vectors in each part, and their classes."""
        raise NotImplementedError

    def _stream_on(
        self, X: Any, pieces: Callable[[float], Sequence[Part]], weight: Array | None
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
            kernel = functions.resolve(self.kernel, degree=self.degree, gamma=gamma, coef0=self.coef0)
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
        given = Pegasos() if isinstance(self.solver, str) and self.solver == "pegasos" else self.solver
        solver = stream_solver(given if isinstance(given, Pegasos) else None, problem.loss)
        assert isinstance(solver, Pegasos)
        solvers.kernel_solver(solver, problem, self._intercept_word)
        coef, b = stream.step(problem, codes, solver, self._seed() + stream.rows)
        self.lam_, self.certificate_, self.trace_ = stream.lam, stream.certificate(), stream.trace
        self.fit_status_, self.shape_fit_ = 1, (stream.rows, problem.X.shape[1])
        self.n_kernel_evaluations_ = stream.evaluations
        self._gamma, self._stream = problem.kernel.gamma, stream
        return coef, b

    def _advice(self, c: Any) -> str:
        """The advice in the warning of a fit that stopped too early."""
        if INDEFINITE in c.reason:
            return (
                f"{type(self).__name__}: {c.reason}. The problem is not convex, and the solution need not be the best. "
                "Choose other kernel parameters."
            )
        if rounding := self._rounding(c):
            return f"{self._stopped(c)} {rounding}"
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
        coef = np.ascontiguousarray(coef, dtype=np.float64)
        score = self._scorer(coef)
        width = len(coef) if isinstance(self.kernel, str) else max(len(coef), coef.shape[1])
        pieces = [(first, score(block)) for first, block in self._blocks(X, width)]
        out = pieces[0][1] if len(pieces) == 1 else np.concatenate([np.empty((0, len(coef))), *(p for _, p in pieces)])
        return finite_scores(out)

    def _blocks(self, X: Any, width: int) -> Iterator[tuple[int, Any]]:
        """Checked rows, block after block, with the number of the first; so many values are made of each row."""
        on_disk = isinstance(X, Dataset)
        if on_disk:
            self._check_columns(X, reset=False)
            X = X.X
        else:
            X = self._matrix(X, reset=False)
        size = min(BLOCK_ROWS, max(1, BLOCK_VALUES // max(1, width)))
        for first in range(0, X.shape[0], size):
            block = X if X.shape[0] <= size else X[first : first + size]
            if on_disk:  # checked piece by piece, so that each page is read once
                block = examples(block, threads=thread_count(self.n_jobs), first=first, private=True).array
            yield first, block

    def _scorer(self, coef: Array) -> Any:
        """A function from a block of rows to their scores."""
        if self.kernel in NATIVE and coef.shape[1]:
            prepared, threads = self._prepared(), thread_count(self.n_jobs)

            def score(X: Any) -> Array:
                vectors, rows, single = prepared(X, lambda: np.sqrt((coef**2).sum(axis=1).max(initial=0.0)))
                return np.asarray(vectors.scores(None, coef, rows, None, threads, single)).T

            return score
        values = self._valuer()
        return lambda X: np.asarray(values(X) @ coef.T)

    def _valuer(self) -> Any:
        """A function from a block of rows to the values of a kernel that the core does not compute, rows × vectors."""
        if self.kernel == "precomputed":
            return lambda K: K[:, self.support_].astype(np.float64)
        count, function = self.support_vectors_.shape[0], self.kernel
        if not count:
            return lambda X: np.zeros((X.shape[0], 0))
        assert not isinstance(function, str)

        def values(X: Any) -> Array:
            shape = (X.shape[0], count)
            return checked_values(function(X, self.support_vectors_), shape, "the kernel function").astype(np.float64)

        return values

    def _prepared(self) -> Any:
        """A function from a block of rows, and the norm of the coefficients, to both sides of a native kernel.

        It returns the support vectors and the rows as the core reads them, and whether single precision is enough.
        """
        assert isinstance(self.kernel, str)
        kernel, threads = (
            Kernel(self.kernel, self._gamma, float(self.coef0), int(self.degree)),
            thread_count(self.n_jobs),
        )
        support = _plain(self.support_vectors_)
        if (origin := centre(support, kernel)) is not None:
            support = support - origin
        vectors = kernel.core(support, threads)

        def prepare(X: Any, norm: Callable[[], float]) -> tuple[Any, Any, bool]:
            kernel.check_rows(X)
            if origin is not None:
                X = (X.toarray() if sparse.issparse(X) else X) - origin
            rows = kernel.core(compact(X, threads), threads)
            single = X.dtype == support.dtype == np.float32 and _single_suffices(kernel, vectors, rows, norm)
            return vectors, rows, single

        return prepare

    def _kernel_values(self, norm: Callable[[], float]) -> Any:
        """A function from a block of rows to K(support vectors, rows), padded to a multiple of eight columns."""
        if self.kernel in NATIVE and self.support_vectors_.shape[0]:
            prepared, threads = self._prepared(), thread_count(self.n_jobs)

            def native(X: Any) -> Array:
                vectors, rows, single = prepared(X, norm)
                out = _padded(vectors.rows, rows.rows, np.float32 if single else np.float64)
                vectors.cross(rows, out, threads)
                return out

            return native
        values = self._valuer()

        def given(X: Any) -> Array:
            found = values(X)
            out = _padded(found.shape[1], found.shape[0], np.float64)
            out[:, : found.shape[0]] = found.T
            return out

        return given


def biases(result: Result[Coefficients]) -> Array:
    """Those of the parts."""
    assert result.model.b is not None
    return result.model.b


def finite_scores(scores: Array) -> Array:
    """The scores, refused where one is no finite number."""
    if not np.isfinite(scores).all():
        raise no_finite_score(int(np.flatnonzero(~np.isfinite(scores).all(axis=1))[0]))
    return scores


def no_finite_score(row: int) -> ValueError:
    """What to say of a row of X whose score overflows."""
    return ValueError(
        f"the score of row {row} of X is no finite number: its kernel with the support vectors, or the sum of them, "
        "overflows; scale the row as those of fit"
    )


def _padded(rows: int, cols: int, dtype: Any) -> Array:
    """Room for kernel values, zero where it is padded."""
    out = np.empty((rows, padded(cols)), dtype=dtype)
    out[:, cols:] = 0
    return out


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


def _single_suffices(kernel: Kernel, vectors: Any, rows: Any, norm: Callable[[], float]) -> bool:
    """Whether kernel values in single precision, added up in double, cost the scores less than MAX_SCORE_ERROR.

    Their errors, about 1e-7 times the argument of exp or the value itself, are as good as independent.
    """
    if kernel.name not in ("rbf", "laplacian", "chi2"):
        return False
    largest = max(float(np.asarray(side.norms()).max(initial=0.0)) for side in (vectors, rows))
    error = 1e-7 * (1 + 2 * kernel.gamma * largest)
    return kernel.within_single(largest) and bool(error * norm() <= MAX_SCORE_ERROR)


def _plain(X: Any) -> Any:
    """Support vectors as the core takes them, whatever a user or a file has made of them."""
    X = X.tocsr() if sparse.issparse(X) else np.ascontiguousarray(X)
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
