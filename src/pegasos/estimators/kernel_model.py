"""What the kernel estimators share: parameters, the way from arrays to a problem, and the machine that they fit."""

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
from pegasos.estimators.multiclass import coefficient_table
from pegasos.estimators.partial_fit import stream_solver
from pegasos.fit.certificate import Certificate
from pegasos.fit.trace import Checkpoint
from pegasos.kernels import functions
from pegasos.kernels.expansion import Expansion, support_columns
from pegasos.kernels.functions import Kernel, KernelFunction
from pegasos.kernels.gram import PartRows
from pegasos.kernels.pairs import laid_out
from pegasos.losses import LOSSES
from pegasos.problems.kernel import INDEFINITE, Coefficients, KernelProblem
from pegasos.problems.pair_parts import PairIndices, PairParts
from pegasos.problems.pairs import PairProblem
from pegasos.problems.part import Part
from pegasos.rows.dataset import Dataset
from pegasos.rows.frames import validate_data
from pegasos.rows.views import Array, examples, is_sparse, view
from pegasos.solvers import KernelSolver, Pegasos, Solver
from pegasos.util.arrays import Matrix
from pegasos.util.threads import thread_count

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
    n_support_: Array
    dual_coef_: Any
    intercept_: Array
    _gamma: float
    #: Of a model of LIBSVM's the order of the classes in its file, where it is not that of ``classes_``.
    _tie_order: Array | None = None
    _stream: KernelStream | None = None

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

    def _matrix(self, X: Any, *, reset: bool) -> Matrix:
        """Validated X: rows, or the values of a precomputed kernel."""
        if self.kernel != "precomputed":
            return self._rows(X, reset=reset, private=True)[1].array
        if isinstance(X, Dataset):
            X = X.X
        if is_sparse(X):
            raise TypeError("Sparse precomputed kernels are not supported; pass a dense array")
        K = validate_data(self, X, reset=reset, dtype=[np.float64, np.float32], order="C")
        if reset and K.shape[0] != K.shape[1]:
            raise ValueError(
                f"Precomputed matrix must be a square matrix. Input is a {K.shape[0]}x{K.shape[1]} matrix."
            )
        return K

    # --- fitting -----------------------------------------------------------------------------------------------------

    def _resolved(self, X: Matrix, weight: Array | None) -> Kernel:
        gamma = functions.scale(self.gamma, X, weight)
        kernel = functions.resolve(self.kernel, degree=self.degree, gamma=gamma, coef0=self.coef0)
        kernel.check_rows(X)
        return kernel

    def _problem(self, X: Matrix, kernel: Kernel, parts: Sequence[Part], lam: float, total: float) -> KernelProblem:
        if kernel.name == "precomputed":
            assert not is_sparse(X)
            _check_symmetry(X)
        pairs = parts if isinstance(parts, PairParts) else None
        indices = [part.index for part in parts] if pairs is None else PairIndices(pairs)
        rows = PartRows(X, kernel, indices, float(self.cache_size), thread_count(self.n_jobs))
        others = lam, total, rows, self._bias(), float(self.intercept_scaling)
        return KernelProblem(X, kernel, parts, *others) if pairs is None else PairProblem(X, kernel, pairs, *others)

    def _solve(self, problem: KernelProblem, codes: Array, classes: int) -> tuple[Expansion, Sequence[int] | Array]:
        """The machine that solves a problem on rows of these classes, and the steps of each part."""

        def tell(checkpoint: Checkpoint, model: Coefficients) -> Checkpoint:
            assert model.b is not None
            coef, support = support_columns(coefficient_table(problem, codes, model).copy(), codes)
            return replace(checkpoint, coef=coef, intercept=model.b.copy(), support=support)

        # Sparse rows are copies; dense ones, and kernel values, are the user's, who may have changed them by the end.
        borrowed = None if is_sparse(problem.X) else view(problem.X)
        if borrowed is not None:
            borrowed.inspect(thread_count(self.n_jobs))
        steps = None if self.max_iter == -1 else int(self.max_iter)
        result = self._run(problem, self._chosen_solver(problem), tell, max_steps=steps)
        if borrowed is not None:
            borrowed.verify(thread_count(self.n_jobs))
        bias = result.model.b
        if bias is None or not np.isfinite(bias).all():
            raise ValueError("the intercept left the range of floating-point numbers; scale the features and targets")
        c = result.certificate
        # What a user, or a solver for a goal of its own, has ended needs no warning; steps along negative curvature do.
        asked_for = c.reason in ("interrupted", "stopped by the callback")
        misled = INDEFINITE in c.reason and result.engine.indefinite
        if misled or not (c.converged or c.goal_reached or asked_for):
            warnings.warn(self._advice(c), ConvergenceWarning, stacklevel=4)
        self._count_fit(problem.X.shape, problem.kernel, problem.lam, c, int(result.engine.evaluations))
        table = coefficient_table(problem, codes, result.model)
        return Expansion.of_rows(problem.kernel, problem.X, codes, classes, table, bias), result.engine.steps

    def _count_fit(self, shape: tuple[int, int], kernel: Kernel, lam: float, c: Certificate, evaluations: int) -> None:
        """Set what is known of a fit beside its machine, certificate and trace."""
        self.lam_, self.shape_fit_, self.n_kernel_evaluations_ = lam, shape, evaluations
        self.fit_status_ = int(not (c.converged or c.goal_reached))
        self._stream = KernelStream(kernel, lam, shape[0])

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

    def _fit_piece(
        self, X: Matrix, parts: Callable[[float], Sequence[Part]], weight: Array | None, codes: Array, classes: int
    ) -> int:
        """One epoch of Pegasos on rows of these classes; the number of calls so far. ``parts`` are made for a C."""
        total = float(X.shape[0] if weight is None else weight.sum())
        if self._stream is None:
            stream = KernelStream(self._resolved(X, weight), self._lam(total))
        else:
            stream = self._stream.fork()
            gamma = stream.kernel.gamma if isinstance(self.gamma, str) else float(self.gamma)
            if functions.resolve(self.kernel, degree=self.degree, gamma=gamma, coef0=self.coef0) != stream.kernel:
                raise ValueError("the kernel or its parameters differ from those of earlier calls; fit anew")
            stream.kernel.check_rows(X)
            if stream.vectors is None:
                stream.begin(self._machine())
        # Few rows are ever needed twice: no cache beyond what a block needs.
        rows = PartRows(X, stream.kernel, [None], 1.0, thread_count(self.n_jobs))
        pieces = parts(1.0 / (stream.lam * total))
        scaling = float(self.intercept_scaling)
        problem = KernelProblem(X, stream.kernel, tuple(pieces), stream.lam, total, rows, self._bias(), scaling)
        given = Pegasos() if isinstance(self.solver, str) and self.solver == "pegasos" else self.solver
        solver = stream_solver(given if isinstance(given, Pegasos) else None, problem.loss)
        assert isinstance(solver, Pegasos)
        solvers.kernel_solver(solver, problem, self._intercept_word)
        coef, bias = stream.step(problem, codes, solver, self._seed() + stream.rows)
        table = coef.take(np.argsort(stream.codes, kind="stable"), axis=1)
        if isinstance(pieces, PairParts):
            table = laid_out(table, np.bincount(stream.codes, minlength=classes))
        assert stream.vectors is not None
        self._keep(Expansion.of_rows(stream.kernel, stream.vectors, stream.codes, classes, table, bias, stream.numbers))
        self._carry_on(stream)
        self.fit_status_, self.shape_fit_ = 1, (stream.rows, X.shape[1])
        self.n_kernel_evaluations_ = stream.evaluations
        return stream.calls

    def _advice(self, c: Certificate) -> str:
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

    # --- the fitted machine ------------------------------------------------------------------------------------------

    def _keep(self, machine: Expansion) -> None:
        """Set the attributes that a fitted machine is made of: coefficients are sparse where the vectors are."""
        if machine.numbers is None:
            self.__dict__.pop("support_", None)
        else:
            self.support_ = machine.numbers.astype(np.int32)
        self.support_vectors_, self.n_support_ = machine.vectors, machine.sizes.astype(np.int32)
        self.dual_coef_ = sparse.csr_matrix(machine.coef) if is_sparse(machine.vectors) else machine.coef
        self.intercept_, self._gamma, self._tie_order = machine.bias, machine.kernel.gamma, machine.tie_order

    def _machine(self) -> Expansion:
        """The machine that the attributes say."""
        check_is_fitted(self)
        return Expansion(
            functions.resolve(self.kernel, degree=self.degree, gamma=self._gamma, coef0=self.coef0),
            self.support_vectors_,
            np.ascontiguousarray(self._dense_coefficients(), dtype=np.float64),
            np.ascontiguousarray(self.intercept_, dtype=np.float64),
            self.n_support_,
            vars(self).get("support_"),
            self._tie_order,
            thread_count(self.n_jobs),
        )

    def _dense_coefficients(self) -> Array:
        coef: Any = self.dual_coef_
        return np.asarray(coef.toarray() if is_sparse(coef) else coef)

    @property
    def coef_(self) -> Any:
        """Weights of the functions, for ``kernel="linear"``."""
        if self.kernel != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel")
        machine = self._machine()
        if not machine.in_pairs:
            return self.dual_coef_ @ self.support_vectors_
        weights = machine.pairs.weights(machine.vectors)
        return sparse.csr_matrix(weights) if is_sparse(machine.vectors) else weights

    def _scores(self, X: Any) -> Array:
        """Of every row and decision function."""
        machine = self._machine()
        return machine.scores(self._blocks(X, machine.block_rows()))

    def _blocks(self, X: Any, size: int) -> Iterator[Matrix]:
        """Checked rows, so many at a time."""
        on_disk = isinstance(X, Dataset)
        if on_disk:
            self._check_columns(X, reset=False)
            X = X.X
        else:
            X = self._matrix(X, reset=False)
        for first in range(0, X.shape[0], size):
            block = X if X.shape[0] <= size else X[first : first + size]
            if on_disk:  # checked piece by piece, so that each page is read once
                block = examples(block, threads=thread_count(self.n_jobs), first=first, private=True).array
            yield block


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
