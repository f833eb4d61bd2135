"""A fitted kernel machine: vectors, coefficients and biases, and the scores and votes that they give rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Self, TypeVar

import numpy as np

from pegasos import _core
from pegasos.kernels.cache import padded
from pegasos.kernels.functions import Kernel, checked_values
from pegasos.kernels.layout import centre, compact
from pegasos.kernels.pairs import PairMachine
from pegasos.rows.views import Array, is_sparse
from pegasos.util.arrays import DType, Matrix

#: Rows that are scored at a time, at most, and their scores, or kernel values of a user's function.
BLOCK_ROWS, BLOCK_VALUES = 1 << 14, 1 << 22

#: The largest error of scores that kernel values in float32 may cause.
MAX_SCORE_ERROR = 1e-4

Decided = TypeVar("Decided")


@dataclass(frozen=True)
class Expansion:
    """The functions f(x) = Σ_v coef_v K(vector_v, x) + bias of a classifier or a regression.

    ``coef`` has a column for each vector and a line for each function; of several classes that are compared in pairs it
    is laid out as ``kernels/pairs.py`` says. Vectors lie class by class, ``sizes`` of each (a regression has one size);
    ``numbers`` are those of the rows that they were, where that is known. A precomputed kernel has no vectors but these
    numbers. ``tie_order``: of classes that win equally often the first in it is predicted; None: in increasing order.
    """

    kernel: Kernel
    vectors: Matrix
    coef: Array
    bias: Array
    sizes: Array
    numbers: Array | None = None
    tie_order: Array | None = None
    threads: int = 1

    @classmethod
    def of_rows(
        cls,
        kernel: Kernel,
        X: Matrix,
        codes: Array,
        classes: int,
        table: Array,
        bias: Array,
        numbers: Array | None = None,
    ) -> Self:
        """Of the rows for which a table, its columns sorted by class, has other than zeros; the table is given up.

        ``codes`` are the classes of the rows of X, ``numbers`` their numbers, unless these are 0, 1, ….
        """
        coef, support = support_columns(table, codes)
        sizes = np.bincount(codes[support], minlength=classes)
        own = support if numbers is None else numbers[support]
        return cls(kernel, vectors_of(kernel, X, support), coef, bias, sizes, own)

    @property
    def in_pairs(self) -> bool:
        """Whether several classes are compared in pairs."""
        return len(self.sizes) > 2 and len(self.coef) != len(self.sizes)

    @property
    def codes(self) -> Array:
        """The class of each vector."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @property
    def rank(self) -> Array:
        """Which of several classes that win equally often is predicted: the one of least rank."""
        return np.arange(len(self.sizes), dtype=np.int64) if self.tie_order is None else np.argsort(self.tie_order)

    @cached_property
    def pairs(self) -> PairMachine:
        """The functions of all pairs of several classes."""
        return PairMachine(self.coef, self.sizes, self.bias, self.rank, self.threads)

    @property
    def functions(self) -> Array:
        """The coefficients of all vectors in each function: large, if classes are compared in pairs."""
        return self.pairs.table() if self.in_pairs else self.coef

    # --- what rows are given -----------------------------------------------------------------------------------------

    def block_rows(self, *, votes: bool = False) -> int:
        """How many rows to take at a time for scores, or for votes alone."""
        if self.in_pairs:
            width = max(0 if votes else len(self.bias), 4 * int(self.coef.shape[1]))
        else:
            width = len(self.coef) if self.kernel.function is None else max(len(self.coef), int(self.coef.shape[1]))
        return min(BLOCK_ROWS, max(1, BLOCK_VALUES // max(1, width)))

    def scores(self, blocks: Iterable[Matrix]) -> Array:
        """Of every row of all blocks, and every function."""
        if self.in_pairs:
            return _finite(_joined(self._decided(PairMachine.scores, blocks), len(self.bias)))
        return _finite(_joined(map(self._sums(), blocks), len(self.coef))) + self.bias

    def decisions(self, blocks: Iterable[Matrix]) -> Array:
        """Of every row and class the number of pairs it wins, and a fraction that says by how much."""
        return _finite(_joined(self._decided(PairMachine.decisions, blocks), len(self.sizes)))

    def winners(self, blocks: Iterable[Matrix]) -> Array:
        """The class that wins most pairs, for every row."""
        codes: list[Array] = []
        first = 0
        for found, bad in self._decided(PairMachine.winners, blocks):
            if bad >= 0:
                raise _no_finite_score(first + bad)
            codes.append(found)
            first += len(found)
        return codes[0] if len(codes) == 1 else np.concatenate([np.empty(0, dtype=np.int64), *codes])

    def classes_by(self, scores: Array) -> Array:
        """The class of every row, by its scores in all functions."""
        if len(self.sizes) == 2:
            return (scores[:, 0] > 0).astype(int)
        return self.pairs.winners_by(scores) if self.in_pairs else scores.argmax(axis=1)

    def _decided(
        self, decide: Callable[[PairMachine, Array, int], Decided], blocks: Iterable[Matrix]
    ) -> Iterator[Decided]:
        """What ``decide`` makes of the kernel values of each block."""
        values = self._padded_values()
        return (decide(self.pairs, values(block), block.shape[0]) for block in blocks)

    # --- kernel values -----------------------------------------------------------------------------------------------

    @cached_property
    def _largest_norm(self) -> float:
        """That of the coefficients of a function."""
        if self.in_pairs:
            return self.pairs.largest_norm()
        return float(np.sqrt((self.coef**2).sum(axis=1).max(initial=0.0)))

    def _sums(self) -> Callable[[Matrix], Array]:
        """A function from a block of rows to Σ_v coef_v K(vector_v, x), rows × functions."""
        if self.kernel.native and self.coef.shape[1]:
            prepared = self._prepared()

            def sums(X: Matrix) -> Array:
                vectors, rows, single = prepared(X)
                return np.asarray(vectors.scores(None, self.coef, rows, None, self.threads, single)).T

            return sums
        values = self._values()
        return lambda X: np.asarray(values(X) @ self.coef.T)

    def _values(self) -> Callable[[Matrix], Array]:
        """A function from a block of rows to the values of a kernel that the core does not compute, rows × vectors."""
        if self.kernel.name == "precomputed":
            return lambda K: np.asarray(K[:, self.numbers].astype(np.float64))
        return lambda X: function_values(self.kernel, X, self.vectors)

    def _prepared(self) -> Callable[[Matrix], tuple[_core.KernelRows, _core.KernelRows, bool]]:
        """A function from a block of rows to both sides of a native kernel.

        It returns the vectors and the rows as the core reads them, and whether single precision is enough.
        """
        kernel, threads, support = self.kernel, self.threads, as_core_reads(self.vectors)
        if (origin := centre(support, kernel)) is not None:
            support = support - origin
        vectors = kernel.core(support, threads)

        def prepare(X: Matrix) -> tuple[_core.KernelRows, _core.KernelRows, bool]:
            kernel.check_rows(X)
            if origin is not None:
                X = (X.toarray() if is_sparse(X) else X) - origin
            rows = kernel.core(compact(X, threads), threads)
            return vectors, rows, X.dtype == support.dtype == np.float32 and self._single_suffices(vectors, rows)

        return prepare

    def _single_suffices(self, vectors: _core.KernelRows, rows: _core.KernelRows) -> bool:
        """Whether kernel values in single precision, added up in double, cost the scores less than MAX_SCORE_ERROR.

        Their errors, about 1e-7 times the argument of exp or the value itself, are as good as independent.
        """
        if self.kernel.name not in ("rbf", "laplacian", "chi2"):
            return False
        largest = max(float(np.asarray(side.norms()).max(initial=0.0)) for side in (vectors, rows))
        error = 1e-7 * (1 + 2 * self.kernel.gamma * largest)
        return self.kernel.within_single(largest) and bool(error * self._largest_norm <= MAX_SCORE_ERROR)

    def _padded_values(self) -> Callable[[Matrix], Array]:
        """A function from a block of rows to K(vectors, rows), padded to a multiple of eight columns."""
        if self.kernel.native and self.coef.shape[1]:
            prepared = self._prepared()

            def native(X: Matrix) -> Array:
                vectors, rows, single = prepared(X)
                out = _room(vectors.rows, rows.rows, np.dtype(np.float32 if single else np.float64))
                vectors.cross(rows, out, self.threads)
                return out

            return native
        values = self._values()

        def given(X: Matrix) -> Array:
            found = values(X)
            out = _room(found.shape[1], found.shape[0], np.dtype(np.float64))
            out[:, : found.shape[0]] = found.T
            return out

        return given


def function_values(kernel: Kernel, X: Matrix, vectors: Matrix) -> Array:
    """The values of a user's kernel function, rows × vectors, checked."""
    shape = (int(X.shape[0]), int(vectors.shape[0]))
    if kernel.function is None or not shape[1]:
        return np.zeros((shape[0], 0))
    return checked_values(kernel.function(X, vectors), shape, "the kernel function").astype(np.float64)


def vectors_of(kernel: Kernel, X: Matrix, support: Array) -> Matrix:
    """The rows of X with these numbers, as a machine keeps them; none of a precomputed kernel."""
    if kernel.name == "precomputed":
        return np.empty((0, 0))
    return X[support] if is_sparse(X) else np.asarray(X[support])  # rows on disk are left there


def as_core_reads(X: Matrix) -> Matrix:
    """Vectors as the core takes them, whatever a user or a file has made of them."""
    X = X.tocsr() if is_sparse(X) else np.ascontiguousarray(X)
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def support_columns(table: Array, codes: Array) -> tuple[Array, Array]:
    """What a table, its columns sorted by class, has other than zeros, and the rows of that; the table is given up."""
    used = np.asarray(table.any(axis=0))
    return _with_columns(table, used), np.argsort(codes, kind="stable")[used]


def _with_columns(table: Array, used: Array) -> Array:
    """A table without some of its columns, which it is given up for: of half a million pairs it fills the memory."""
    count = int(np.count_nonzero(used))
    if count == table.shape[1]:
        return table
    if count < 0.8 * table.shape[1]:
        return table.take(np.flatnonzero(used), axis=1)
    flat = table.reshape(-1)
    for k, line in enumerate(table):
        flat[k * count : (k + 1) * count] = line[used]
    return flat[: len(table) * count].reshape(len(table), count)


def _joined(pieces: Iterable[Array], width: int) -> Array:
    """Pieces below each other."""
    found = list(pieces)
    return found[0] if len(found) == 1 else np.concatenate([np.empty((0, width)), *found])


def _finite(scores: Array) -> Array:
    """The scores, refused where one is no finite number."""
    if not np.isfinite(scores).all():
        raise _no_finite_score(int(np.flatnonzero(~np.isfinite(scores).all(axis=1))[0]))
    return scores


def _no_finite_score(row: int) -> ValueError:
    """What to say of a row of X whose score overflows."""
    return ValueError(
        f"the score of row {row} of X is no finite number: its kernel with the support vectors, or the sum of them, "
        "overflows; scale the row as those of fit"
    )


def _room(rows: int, cols: int, dtype: DType) -> Array:
    """Room for kernel values, zero where it is padded."""
    out = np.empty((rows, padded(cols)), dtype=dtype)
    out[:, cols:] = 0
    return out
