"""Rows of a kernel matrix that is never held as a whole: computed when asked for, and kept while there is room.

A provider offers the same to every solver:

    ``m``, ``dtype``                  its size, and the precision its rows are kept in
    ``diagonal()``                    K(x_i, x_i), float64
    ``block(rows, cols, out=None)``   K of these rows and columns, padded to a multiple of eight columns
    ``square(rows)``                  ``block(rows, rows)``, from the cache as far as that has it
    ``rows(indices)``                 whole rows, a copy
    ``add(rows, coef, F)``            F += Σ coef_r K[r, :], float64 sums; rows come from the cache or go to it
    ``exact(rows, coef, cols)``       Σ coef_r K[r, cols] in float64 throughout, for each row of a matrix coef
    ``matrix(rows, cols=None)``       K of these rows and columns, or of the rows among themselves, in float64
    ``value_errors()``                bounds of the errors of ``add``'s values, see ``kernels/rounding.py``: of those in
                                      single precision (None if they are not) and in double
    ``evaluations``                   kernel values computed so far
    ``single``                        whether ``add`` and ``block`` are in single precision; ``widen()`` ends that

Numbers never depend on threads, on what the cache holds, or on how rows are asked for together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import sparse

from pegasos import _core
from pegasos.kernels.cache import BATCH_ROWS, CachedRows, RowCache, padded
from pegasos.kernels.functions import Kernel, checked_values
from pegasos.kernels.layout import centre, lean
from pegasos.kernels.rounding import DOUBLE, SINGLE, ValueErrors, taken_as_given, unknown, value_errors
from pegasos.rows.views import Array, is_sparse
from pegasos.util.arrays import CSR, Matrix

#: Rows up to which everything is in double precision, which costs next to nothing there.
MAX_DOUBLE_ROWS = 2000

#: Entries of a row, on average, above which kernel values take longer to compute than to look up.
MAX_CHEAP_ENTRIES = 250

#: Kernel values that a user's function is asked for at a time.
VALUES_PER_CALL = 1 << 22


class NativeRows(CachedRows):
    """Kernels of the core. Single precision where that is accurate enough, on rows laid out to be read fast."""

    def __init__(self, X: Matrix, kernel: Kernel, megabytes: float, threads: int) -> None:
        X = lean(X, threads)
        if (origin := centre(X, kernel)) is not None:
            X = X - origin
        self.double = kernel.core(X, threads)
        quick = None if X.shape[0] <= MAX_DOUBLE_ROWS else _single(X, kernel, self.double)
        self.quick = self.double if quick is None else kernel.core(quick, threads)
        self.single = quick is not None
        self.costly = (X.nnz if is_sparse(X) else X.size) > MAX_CHEAP_ENTRIES * X.shape[0]
        self.kernel = kernel
        self.entries = np.diff(X.indptr) if is_sparse(X) else np.full(X.shape[0], X.shape[1])
        self._errors: list[ValueErrors | None] = [None, None]
        super().__init__(X.shape[0], np.float32 if self.single else np.float64, megabytes, threads)

    def widen(self) -> None:
        """Go over to double precision; what the cache holds is dropped."""
        self.value_errors()  # of the values so far
        self.quick, self.single, self.dtype = self.double, False, np.dtype(np.float64)
        self.cache = RowCache(self.m, np.float64, self.megabytes)

    def value_errors(self) -> tuple[ValueErrors | None, ValueErrors]:
        """Bounds of the errors of values in single precision, if there are or were such, and in double."""
        single, double = self._errors
        if double is None:
            double = value_errors(self.kernel, self.double.norms(), self.entries, DOUBLE)
            if self.single:
                single = value_errors(self.kernel, self.quick.norms(), self.entries, SINGLE)
            self._errors = [single, double]
        return single, double

    def matrix(self, rows: Array, cols: Array | None = None) -> Array:
        """K of these rows and columns, or of the rows among themselves, in float64."""
        cols = rows if cols is None else cols
        out = np.empty((len(rows), len(cols)))
        self.double.block(rows, cols, out, self.threads)
        return out

    def diagonal(self) -> Array:
        """K(x_i, x_i)."""
        return self.double.diagonal()

    def block(self, rows: Array, cols: Array, out: Array | None = None) -> Array:
        """K of these rows and columns, padded with zeros to a multiple of eight columns."""
        out = _room(rows, cols, self.dtype, out)
        self.quick.block(rows, cols, out, self.threads)
        self.evaluations += len(rows) * len(cols)
        return out

    def exact(self, rows: Array, coef: Array, cols: Array) -> Array:
        """Σ coef_r K[r, cols], in float64."""
        several = np.ascontiguousarray(np.atleast_2d(coef), dtype=np.float64)
        scores = self.double.scores(rows, several, self.double, cols, self.threads)
        return scores[0] if coef.ndim == 1 else scores

    def approximate(self, rows: Array, coef: Array, cols: Array) -> Array:
        """The same from kernel values in the precision of the cache."""
        several = np.ascontiguousarray(np.atleast_2d(coef), dtype=np.float64)
        scores = np.asarray(self.quick.scores(rows, several, self.quick, cols, self.threads, self.single))
        return scores[0] if coef.ndim == 1 else scores

    def _fill_add(self, missing: Array, missing_slots: Array, slots: Array, coef: Array, F: Array) -> None:
        self.quick.fill_add(self.cache.store, missing, missing_slots, slots, coef, F, self.threads)


class FunctionRows(CachedRows):
    """A user's function K(A, B), asked for some rows against all."""

    def __init__(self, X: Matrix, kernel: Kernel, megabytes: float, threads: int) -> None:
        super().__init__(X.shape[0], np.float64, megabytes, threads)
        self.X, self.kernel = X, kernel

    def _values(self, rows: Array, cols: Array | None) -> Array:
        B = self.X if cols is None else self.X[cols]
        assert self.kernel.function is not None
        values = self.kernel.function(self.X[rows], B)
        return checked_values(values, (len(rows), B.shape[0]), "the kernel function")

    def diagonal(self) -> Array:
        """K(x_i, x_i), by blocks along the diagonal."""
        pieces = (np.arange(k, min(k + 64, self.m)) for k in range(0, self.m, 64))
        return np.concatenate([np.diagonal(self._values(p, p)).astype(np.float64) for p in pieces])

    def block(self, rows: Array, cols: Array, out: Array | None = None) -> Array:
        """K of these rows and columns, padded with zeros to a multiple of eight columns."""
        out = _room(rows, cols, self.dtype, out)
        out[:, : len(cols)] = self._values(rows, cols)
        self.evaluations += len(rows) * len(cols)
        return out

    def exact(self, rows: Array, coef: Array, cols: Array) -> Array:
        """Σ coef_r K[r, cols], in float64."""
        size = max(1, VALUES_PER_CALL // max(len(rows), 1))
        pieces = (cols[k : k + size] for k in range(0, len(cols), size))
        none = np.zeros((*coef.shape[:-1], 0))
        return np.concatenate([none, *(coef @ self._values(rows, p).astype(np.float64) for p in pieces)], axis=-1)

    def matrix(self, rows: Array, cols: Array | None = None) -> Array:
        """K of these rows and columns, or of the rows among themselves, in float64."""
        cols = rows if cols is None else cols
        size = max(1, VALUES_PER_CALL // max(len(cols), 1))
        pieces = (rows[k : k + size] for k in range(0, len(rows), size))
        none = np.zeros((0, len(cols)))
        return np.concatenate([none, *(self._values(p, cols).astype(np.float64) for p in pieces)])

    def value_errors(self) -> tuple[ValueErrors | None, ValueErrors]:
        """Not known: a user's function may round differently for different blocks of rows."""
        return None, unknown(self.m)

    def _fill_add(self, missing: Array, missing_slots: Array, slots: Array, coef: Array, F: Array) -> None:
        if len(missing):
            self.cache.store[missing_slots] = self._values(missing, None)
        _core.add_slots(self.cache.store, slots, coef, F, self.threads)


class PrecomputedRows:
    """A kernel matrix that the user has computed, used where it lies."""

    single = False

    def __init__(self, K: Array, threads: int) -> None:
        self.K, self.m, self.dtype, self.threads, self.evaluations = K, K.shape[0], K.dtype, threads, 0
        self._errors: ValueErrors | None = None

    def widen(self) -> None:
        """Nothing to do: the matrix is used in its own precision."""

    def diagonal(self) -> Array:
        """K(x_i, x_i)."""
        return np.diagonal(self.K).astype(np.float64)

    def block(self, rows: Array, cols: Array, out: Array | None = None) -> Array:
        """K of these rows and columns, padded with zeros to a multiple of eight columns."""
        out = _room(rows, cols, self.dtype, out)
        out[:, : len(cols)] = self.K[np.ix_(rows, cols)]
        return out

    def square(self, rows: Array) -> Array:
        """K of these rows among themselves."""
        return self.block(rows, rows)

    def rows(self, indices: Array) -> Array:
        """Whole rows of the kernel matrix, a copy."""
        return self.K[indices]

    def add(self, rows: Array, coef: Array, F: Array) -> None:
        """F += Σ coef_r K[r, :]."""
        for first in range(0, len(rows), BATCH_ROWS):
            part = np.ascontiguousarray(coef[first : first + BATCH_ROWS], dtype=np.float64)
            _core.add_slots(self.K, rows[first : first + BATCH_ROWS], part, F, self.threads)

    def exact(self, rows: Array, coef: Array, cols: Array) -> Array:
        """Σ coef_r K[r, cols], in float64."""
        F = np.zeros((len(np.atleast_2d(coef)), self.m))
        for line, own in zip(F, np.atleast_2d(coef), strict=True):
            self.add(rows, own, line)
        return F[0, cols] if coef.ndim == 1 else F[:, cols]

    def matrix(self, rows: Array, cols: Array | None = None) -> Array:
        """K of these rows and columns, or of the rows among themselves, in float64."""
        return np.asarray(self.K[np.ix_(rows, rows if cols is None else cols)], dtype=np.float64)

    def value_errors(self) -> tuple[ValueErrors | None, ValueErrors]:
        """Those of their sums alone: the values count as exact."""
        if self._errors is None:
            most = max(abs(float(self.K.max(initial=0.0))), abs(float(self.K.min(initial=0.0))))
            self._errors = taken_as_given(most, self.m)
        return None, self._errors


#: The rows of a whole kernel matrix.
WholeRows = NativeRows | FunctionRows | PrecomputedRows


class SubsetRows:
    """Some rows and columns of another provider, whose cache they share."""

    def __init__(self, whole: WholeRows, index: Array) -> None:
        self.whole, self.index, self.m, self.dtype = whole, index, len(index), whole.dtype
        self._errors: tuple[ValueErrors | None, ValueErrors] | None = None

    @property
    def evaluations(self) -> int:
        """Those of the whole."""
        return self.whole.evaluations

    @property
    def single(self) -> bool:
        """As the whole."""
        return self.whole.single

    def widen(self) -> None:
        """Of the whole."""
        self.whole.widen()
        self.dtype = self.whole.dtype

    def diagonal(self) -> Array:
        """K(x_i, x_i)."""
        return self.whole.diagonal()[self.index]

    def block(self, rows: Array, cols: Array, out: Array | None = None) -> Array:
        """K of these rows and columns, padded with zeros to a multiple of eight columns."""
        return self.whole.block(self.index[rows], self.index[cols], out)

    def square(self, rows: Array) -> Array:
        """K of these rows among themselves."""
        return self.whole.square(self.index[rows])

    def rows(self, indices: Array) -> Array:
        """Rows of this part of the matrix, a copy."""
        return np.ascontiguousarray(self.whole.rows(self.index[indices])[:, self.index])

    def add(self, rows: Array, coef: Array, F: Array) -> None:
        """F += Σ coef_r K[r, :]."""
        all_of_it = np.zeros(self.whole.m)
        self.whole.add(self.index[rows], coef, all_of_it)
        F += all_of_it[self.index]

    def exact(self, rows: Array, coef: Array, cols: Array) -> Array:
        """Σ coef_r K[r, cols], in float64."""
        return self.whole.exact(self.index[rows], coef, self.index[cols])

    def matrix(self, rows: Array, cols: Array | None = None) -> Array:
        """K of these rows and columns, or of the rows among themselves, in float64."""
        return self.whole.matrix(self.index[rows], None if cols is None else self.index[cols])

    def value_errors(self) -> tuple[ValueErrors | None, ValueErrors]:
        """Those of the whole, of these rows."""
        if self._errors is None:
            single, double = self.whole.value_errors()
            self._errors = None if single is None else single.of(self.index), double.of(self.index)
        return self._errors


#: The rows of a kernel matrix, or of a part of it.
Provider = WholeRows | SubsetRows


class PartRows:
    """The kernel rows of each part of a problem.

    Parts share the rows of the whole matrix if all of them have all rows or it fits into the cache; otherwise each has
    its own columns only, and one part at a time has rows in memory.
    """

    def __init__(
        self, X: Matrix, kernel: Kernel, indices: Sequence[Array | None], megabytes: float, threads: int
    ) -> None:
        self.X, self.kernel, self.indices, self.megabytes, self.threads = X, kernel, indices, megabytes, threads
        self.wide: set[int] = set()
        self.earlier = 0
        self.at: int | None = None
        self.whole: WholeRows | None = None
        fits = kernel.name == "precomputed" or 4 * X.shape[0] ** 2 <= megabytes * 2**20
        if fits or all(index is None for index in indices):
            self.whole = provider(X, kernel, megabytes, threads)
        self.current: Provider | None = None
        self._all: WholeRows | None = None

    def __call__(self, k: int) -> Provider:
        """The provider of part k; that of the part before is dropped."""
        if self.current is None or self.at != k:
            if self.whole is None and self.current is not None:
                self.earlier += self.current.evaluations
            index, self.at = self.indices[k], k
            if self.whole is not None:
                self.current = self.whole if index is None else SubsetRows(self.whole, index)
            else:
                self.current = provider(self.X[index], self.kernel, self.megabytes, self.threads)
            if k in self.wide:
                self.widen(k)
        return self.current

    def of_all(self) -> WholeRows:
        """A provider of all rows, with a cache of 1 MB where parts do not share one."""
        if self._all is None:
            self._all = self.whole or provider(self.X, self.kernel, 1.0, self.threads)
        return self._all

    def widen(self, k: int) -> None:
        """Part k, and those that share its rows, go over to double precision."""
        self.wide |= {k} if self.whole is None else set(range(len(self.indices)))
        rows = self(k)
        if rows.single:
            rows.widen()

    @property
    def evaluations(self) -> int:
        """Kernel values computed so far."""
        if self.whole is not None:
            return self.whole.evaluations
        return self.earlier + (0 if self.current is None else self.current.evaluations)


def provider(X: Matrix, kernel: Kernel, megabytes: float, threads: int) -> WholeRows:
    """The rows of the kernel matrix of X."""
    if kernel.name == "precomputed":
        assert not is_sparse(X)
        return PrecomputedRows(X, threads)
    kind = NativeRows if kernel.native else FunctionRows
    return kind(X, kernel, megabytes, threads)


def _single(X: Matrix, kernel: Kernel, double: _core.KernelRows) -> Matrix | None:
    """The lean rows X in single precision, or None where kernel values would suffer.

    The argument of exp has an absolute error of about 1e-7 γ‖x‖². Moving dense rows to their centre, which changes no
    distance, helps where all of them are far from the origin.
    """
    with np.errstate(over="ignore"):
        norms = double.norms()
        value = float(np.abs(double.diagonal()).max(initial=0.0))
        if not kernel.within_single(float(norms.max(initial=0.0)), value):
            return None
        if kernel.name in ("rbf", "laplacian", "chi2"):
            if (origin := centre(X, kernel, 1e-7, 1e-5)) is not None:
                X = X - origin
                norms = np.einsum("ij,ij->i", X, X)
            if 1e-7 * kernel.gamma * float(norms.max(initial=0.0)) > 1e-4:
                return None
    if is_sparse(X):
        single: CSR = sparse.csr_matrix((X.data.astype(np.float32, copy=False), X.indices, X.indptr), X.shape)
        return single
    return np.ascontiguousarray(X, dtype=np.float32)


def _room(rows: Array, cols: Array, dtype: npt.DTypeLike, out: Array | None) -> Array:
    """An array for a block, zero where it is padded."""
    if out is None:
        out = np.empty((len(rows), padded(len(cols))), dtype=dtype)
    out[:, len(cols) :] = 0
    return out
